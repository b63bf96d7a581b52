"""HTTP beside the wire protocol: is the process up, is it ready, what has it counted."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from evertide.pgwire.server import is_local

_BACKLOG = 128


# Asked at each request; None: ready, else why not.
Readiness: TypeAlias = Callable[[], Awaitable[str | None]]


def http_app(readiness: Readiness) -> Starlette:
    """The routes."""

    async def live(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def ready(_request: Request) -> Response:
        why_not = await readiness()
        if why_not is None:
            return PlainTextResponse("ready\n")
        return PlainTextResponse(f"not ready: {why_not}\n", status_code=503)

    async def metrics(_request: Request) -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    return Starlette(
        routes=[
            Route("/api/livez", live),
            Route("/api/readyz", ready),
            Route("/metrics", metrics),
        ]
    )


class _SignalFreeServer(uvicorn.Server):
    """Signals belong to the program, which has more to stop than HTTP."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    """One listener, served by the event loop that started it."""

    def __init__(self, readiness: Readiness) -> None:
        self._app = http_app(readiness)
        self._server: uvicorn.Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Gives the address, with the port that was found if 0 was asked for."""
        assert self._task is None, "started once"
        if not is_local(host):
            raise ValueError(f'refusing to listen on "{host}": clients are not authenticated')
        listening = socket.create_server((host, port), backlog=_BACKLOG)
        bound_host, bound_port = listening.getsockname()[:2]
        config = uvicorn.Config(
            self._app,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=2,
        )
        self._server = _SignalFreeServer(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[listening]))
        return bound_host, bound_port

    async def stop(self) -> None:
        """Finish the requests under way, then end."""
        if self._server is None or self._task is None:
            return
        self._server.should_exit = True
        await self._task
        self._server = self._task = None
