"""Listening sockets for PostgreSQL clients."""

import asyncio
import ipaddress
import ssl

import structlog

from evertide.adapter.client import SessionFactory
from evertide.pgwire.backends import Backends, Limits
from evertide.pgwire.connection import Connection, Listener
from evertide.vocab.errors import AdminShutdown

_log = structlog.get_logger(__name__)

_BACKLOG = 1_024


def check_host(host: str, *, allow_remote: bool) -> None:
    """Clients are trusted to be who they say, so nobody beyond this machine may reach us.

    >>> check_host("localhost", allow_remote=False)
    """
    if allow_remote or host == "localhost":
        return
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise ValueError(f'refusing to listen on "{host}": clients are not authenticated')


class PgServer:
    """Any number of listeners over one set of connections: a cancel may come in by any of them."""

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        tls: ssl.SSLContext | None = None,
        allow_remote: bool = False,
    ) -> None:
        self._backends = Backends(limits or Limits())
        self._tls = tls
        self._allow_remote = allow_remote
        self._listening: list[asyncio.Server] = []

    async def start(
        self, host: str, port: int, factory: SessionFactory, internal: bool
    ) -> tuple[str, int]:
        """Accept clients; gives the address, with the port that was found if 0 was asked for."""
        check_host(host, allow_remote=self._allow_remote)
        listener = Listener(self._backends, factory, internal, self._tls)
        server = await asyncio.get_running_loop().create_server(
            lambda: Connection(listener), host, port, backlog=_BACKLOG
        )
        self._listening.append(server)
        bound_host, bound_port = server.sockets[0].getsockname()[:2]
        _log.info("listening for clients", host=bound_host, port=bound_port, internal=internal)
        return bound_host, bound_port

    async def stop(self) -> None:
        """Accept nobody any more, hang up on everybody, and wait until all sessions are closed."""
        for server in self._listening:
            server.close()
        error = AdminShutdown("terminating connection due to administrator command")
        await asyncio.gather(*(backend.shut_down(error) for backend in self._backends.all()))
        for server in self._listening:
            await server.wait_closed()
        self._listening.clear()
