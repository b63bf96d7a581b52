"""The driver's end of one incarnation of a resident task: asks, and knows when it is gone."""

import asyncio
from collections import deque
from typing import Protocol, TypeAlias

import structlog

from evertide.dataflow.channel import Channel, FrameTooLarge
from evertide.spark.arrangements.arrangement import BelowSince
from evertide.spark.channel import (
    PASSING_KINDS,
    BelowSinceReply,
    FailedReply,
    Hello,
    Reply,
    Request,
)
from evertide.spark.engine import Engine, EngineFailing, EngineLost
from evertide.vocab.timestamp import Timestamp

Incoming: TypeAlias = Hello | Reply

log = structlog.get_logger()


class ResidentFault(Exception):
    """The task could not carry out a request; a bug, not a state of the world."""

    def __init__(self, reply: FailedReply) -> None:
        super().__init__(f"{reply.kind}: {reply.message}\n{reply.trace}")
        self.kind = reply.kind
        # Whether state is at an end with it.
        self.broken = reply.broken


class Asked(Protocol):
    """Whoever answers requests one after another, in the order in which they were asked."""

    async def ask(self, request: Request) -> Reply:
        """Raises EngineLost, EngineFailing, ResidentFault or BelowSince."""
        ...


class Connection:
    """One socket. `owner` is the engine that is lost with it."""

    def __init__(self, channel: Channel[Incoming], hello: Hello) -> None:
        self.hello = hello
        self.owner: Engine | None = None
        self._channel = channel
        self._waiting: deque[asyncio.Future[Reply]] = deque()
        self._lost = False

    async def ask(self, request: Request) -> Reply:
        """Replies come in the order of requests, and nothing waits between the next two lines."""
        if self._lost:
            raise self._gone()
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await self._channel.send(request)
        except ConnectionError:
            self._forget(future)
            raise self._gone() from None
        except FrameTooLarge:
            # It was not sent, so no reply will come.
            self._forget(future)
            raise
        return checked(await future)

    def _forget(self, future: "asyncio.Future[Reply]") -> None:
        """Nobody will wait for this reply."""
        if future in self._waiting:
            self._waiting.remove(future)

    async def listen(self) -> None:
        """Take the task's replies until the connection ends; then every waiting call is lost."""
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._channel.push(self._take, lambda fault: _end(ended, fault))
        try:
            await ended
        finally:
            self.close()

    def _take(self, reply: Incoming) -> None:
        if isinstance(reply, Hello) or not self._waiting:
            log.error("resident task spoke out of turn", pid=self.hello.pid)
            self.close()
            return
        future = self._waiting.popleft()
        if not future.done():
            future.set_result(reply)

    def close(self) -> None:
        """End the incarnation: the task finds its socket closed and returns."""
        self._lost = True
        self._channel.close()
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_exception(self._gone())

    def _gone(self) -> EngineLost:
        assert self.owner is not None, "an engine owns the connection"
        return EngineLost(self.owner)


def _end(ended: "asyncio.Future[None]", fault: Exception | None) -> None:
    if ended.done():
        return  # nobody listens any more
    if fault is None:
        ended.set_result(None)
    else:
        ended.set_exception(fault)


def checked(reply: Reply) -> Reply:
    """The reply, unless it says that something went wrong."""
    match reply:
        case FailedReply(kind=kind, message=message, broken=broken) if kind in PASSING_KINDS:
            raise EngineFailing(f"{kind}: {message}", broken=broken)
        case FailedReply():
            raise ResidentFault(reply)
        case BelowSinceReply(as_of=as_of, since=since):
            raise BelowSince(Timestamp(as_of), Timestamp(since))
        case _:
            return reply
