"""One connection to PostgreSQL, asked one prepared statement after the other.

Drives libpq through psycopg's thin wrapper. Beside costing less than a cursor this leaves no doubt
about three things: a caller that gives up leaves an answer behind which the link reads to its end
before it is used again; nobody sends a cancel request, which could end the wait for a standby of a
change that is committed already; and a connection that breaks while idle is noticed at once.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import psycopg
from psycopg import errors, pq
from psycopg.pq.abc import PGconn, PGresult

from evertide.persist.store.attempts import OutcomeUnknown

_BINARY: Final = pq.Format.BINARY
_FAILED: Final = pq.ExecStatus.FATAL_ERROR


class Link:
    """Calls `on_free` whenever it is ready for another question, `on_lost` when it has ended."""

    def __init__(
        self,
        connection: psycopg.AsyncConnection,
        *,
        on_free: Callable[["Link"], None],
        on_lost: Callable[["Link"], None],
        on_notify: Callable[[pq.PGnotify], None] | None = None,
    ) -> None:
        # Kept, because it complains of being forgotten while open.
        self._connection = connection
        self._pgconn: PGconn = connection.pgconn
        self._on_free = on_free
        self._on_lost = on_lost
        self._on_notify = on_notify
        self._loop = asyncio.get_running_loop()
        self._socket = self._pgconn.socket
        self._question: _Question | None = None
        self._loop.add_reader(self._socket, self._readable)

    @property
    def backend_pid(self) -> int:
        """The server's process at the other end."""
        return self._pgconn.backend_pid

    async def ask(
        self, statement: bytes, arguments: Sequence[bytes | None], timeout_s: float
    ) -> PGresult:
        """The answer; raises psycopg.Error if that is a refusal, OutcomeUnknown if none came."""
        assert self._question is None, "one question at a time"
        timer = self._loop.call_later(timeout_s, self._end, f"no answer within {timeout_s:g} s")
        asked = self._question = _Question(self._loop.create_future(), timer)
        try:
            self._pgconn.send_query_prepared(
                statement, arguments, (_BINARY,) * len(arguments), _BINARY
            )
            self._flush()
        except psycopg.Error as error:
            self._end(str(error))
        return await asked.answer

    def close(self) -> None:
        """Let go of the connection, whatever it is doing."""
        self._end("the connection was closed")

    def _flush(self) -> None:
        if self._pgconn.flush():
            self._loop.add_writer(self._socket, self._writable)

    def _writable(self) -> None:
        self._loop.remove_writer(self._socket)
        try:
            self._flush()
        except psycopg.Error as error:
            self._end(str(error))

    def _readable(self) -> None:
        try:
            self._pgconn.consume_input()
            while (notify := self._pgconn.notifies()) is not None:
                if self._on_notify is not None:
                    self._on_notify(notify)
            while self._question is not None and not self._pgconn.is_busy():
                result = self._pgconn.get_result()
                if result is None:
                    self._answered(self._question)
                else:
                    self._question.results.append(result)
        except psycopg.Error as error:
            self._end(str(error))

    def _answered(self, question: "_Question") -> None:
        if self._pgconn.status != pq.ConnStatus.OK:
            self._end(_message(question.results))
            return
        self._question = None
        question.timer.cancel()
        # Before the asker goes on: it may ask again at once.
        self._on_free(self)
        if question.answer.done():
            return  # its asker has given up
        failed = [result for result in question.results if result.status == _FAILED]
        if failed:
            question.answer.set_exception(errors.error_from_result(failed[0]))
        else:
            question.answer.set_result(question.results[-1])

    def _end(self, reason: str) -> None:
        if self._socket < 0:
            return
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket = -1
        self._pgconn.finish()
        question, self._question = self._question, None
        if question is not None:
            question.timer.cancel()
            if not question.answer.done():
                question.answer.set_exception(OutcomeUnknown(reason.strip()))
        self._on_lost(self)


class _Question:
    """What was asked and is not yet answered to the end."""

    def __init__(self, answer: "asyncio.Future[PGresult]", timer: asyncio.TimerHandle) -> None:
        self.answer = answer
        self.timer = timer
        self.results: list[PGresult] = []


def _message(results: Sequence[PGresult]) -> str:
    said = [result.get_error_message() for result in results if result.status == _FAILED]
    return said[0] if said else "the connection was lost"
