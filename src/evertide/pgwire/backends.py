"""Who is connected, how many may be, and who may cancel whom."""

import asyncio
import secrets
import time
from dataclasses import dataclass
from hmac import compare_digest
from typing import Protocol

from evertide.pgwire import metrics
from evertide.pgwire.attempts import Attempts
from evertide.pgwire.codec import MAX_MESSAGE_BYTES
from evertide.pgwire.requests import BackendKey
from evertide.pgwire.startup import TooManyConnections
from evertide.vocab.errors import SqlError

# Sockets beyond those with a session: cancel requests, clients about to be told there is no room.
_SPARE_SOCKETS = 100
# Those of operators have places of their own, which no number of other clients takes away.
_INTERNAL_SOCKETS = 200
_MAX_PID = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What clients may use up."""

    max_connections: int = 1_000
    max_message_bytes: int = MAX_MESSAGE_BYTES
    startup_timeout_s: float = 10.0
    # A client that takes nothing of its answer for so long is gone.
    drain_timeout_s: float = 600.0
    # What a statement gets to end by itself when its client left or the server stops.
    grace_s: float = 5.0


class Backend(Protocol):
    """A connection, as others may see it."""

    @property
    def key(self) -> BackendKey: ...

    def cancel(self) -> None: ...

    async def shut_down(self, error: SqlError) -> None: ...


class Backends:
    """All connections of this process, over all of its listeners."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._connected: dict[int, Backend] = {}
        # Which of them came in by an internal address.
        self._operators: set[int] = set()
        self._seated: dict[int, str] = {}
        self._last_pid = 0
        self._attempts = Attempts()

    def new_key(self) -> BackendKey:
        """A key that no connection of today has."""
        while True:
            self._last_pid = self._last_pid % _MAX_PID + 1
            if self._last_pid not in self._connected:
                return BackendKey(self._last_pid, secrets.randbits(32))

    def add(self, backend: Backend, *, internal: bool) -> bool:
        """False: there are more sockets open than can have a reason to be."""
        operators = len(self._operators)
        if internal and operators >= _INTERNAL_SOCKETS:
            return False
        most = self.limits.max_connections + _SPARE_SOCKETS
        if not internal and len(self._connected) - operators >= most:
            return False
        self._connected[backend.key.pid] = backend
        if internal:
            self._operators.add(backend.key.pid)
        return True

    async def await_turn(self, address: str, user: str) -> None:
        """Wait until this user's password may be tried again from this address."""
        wait_s = self._attempts.wait_s(address, user, time.monotonic())
        if wait_s is None:
            raise TooManyConnections("too many failed attempts to log in")
        if wait_s:
            await asyncio.sleep(wait_s)

    def note_attempt(self, address: str, user: str, *, succeeded: bool) -> None:
        """A password was tried."""
        if succeeded:
            self._attempts.succeeded(address, user)
        else:
            metrics.refused_passwords.inc()
            self._attempts.failed(address, user, time.monotonic())

    def take_seat(self, pid: int, *, internal: bool) -> None:
        """Ask for room for a session. Those who look after the server have it from the start."""
        clients = sum(by == "external" for by in self._seated.values())
        if not internal and clients >= self.limits.max_connections:
            raise TooManyConnections("sorry, too many clients already")
        listener = "internal" if internal else "external"
        self._seated[pid] = listener
        metrics.connections.labels(listener).inc()

    def release_seat(self, pid: int) -> None:
        """The session is closed, if there was one."""
        listener = self._seated.pop(pid, None)
        if listener is not None:
            metrics.connections.labels(listener).dec()

    def remove(self, pid: int) -> None:
        """The connection is gone."""
        self._connected.pop(pid, None)
        self._operators.discard(pid)

    def cancel(self, key: BackendKey) -> None:
        """Cancel what runs on the connection with this key; a wrong key does nothing."""
        backend = self._connected.get(key.pid)
        if backend is not None and compare_digest(
            key.secret.to_bytes(4), backend.key.secret.to_bytes(4)
        ):
            backend.cancel()

    def all(self) -> list[Backend]:
        return list(self._connected.values())
