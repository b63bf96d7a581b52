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


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_local("localhost"), is_local("127.0.0.1"), is_local("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class PgServer:
    """Any number of listeners over one set of connections: a cancel may come in by any of them."""

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        tls: ssl.SSLContext | None = None,
        passwords: bool = False,
    ) -> None:
        self._backends = Backends(limits or Limits())
        self._tls = tls
        # Whether users have to know one; the internal address trusts whoever reaches it.
        self._passwords = passwords
        self._listening: list[asyncio.Server] = []

    async def start(
        self, host: str, port: int, factory: SessionFactory, internal: bool
    ) -> tuple[str, int]:
        """Accept clients; gives the address, with the port that was found if 0 was asked for.

        Nobody beyond this machine may reach an address where clients are trusted to be who they
        say, or where others could read what they say.
        """
        passwords = self._passwords and not internal
        remote = not is_local(host)
        if remote and not (passwords and self._tls is not None):
            raise ValueError(f'refusing to listen on "{host}": it takes passwords and TLS')
        listener = Listener(
            self._backends,
            factory,
            internal,
            self._tls,
            demands_password=passwords,
            demands_tls=remote,
        )
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
