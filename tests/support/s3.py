"""A real S3 endpoint for tests: moto's server as a process, and a proxy that can misbehave."""

import asyncio
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import IO
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from evertide.persist.store.s3 import Patience, S3Blob

KEY_ID = "test-key-id"
SECRET = "test-secret-never-shown"
REGION = "us-east-1"

_READY = re.compile(rb"Running on (http://127\.0\.0\.1:\d+)")


@contextmanager
def running_s3() -> Iterator[str]:
    """An empty object store as long as the block lasts; gives its address."""
    # Port 0: the server says which one it got, so nobody can take it in between.
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    reader = _LogReader(process.stderr)
    reader.start()
    try:
        yield reader.address()
    finally:
        process.terminate()
        process.wait(timeout=30)
        reader.join(timeout=30)
        process.stderr.close()


class _LogReader(threading.Thread):
    """Reads all that the server logs: it would stop once a pipe that nobody reads is full."""

    def __init__(self, log: IO[bytes]) -> None:
        super().__init__(name="s3-log", daemon=True)
        self._log = log
        self._known = threading.Event()
        self._address: str | None = None
        self._said: list[bytes] = []

    def run(self) -> None:
        for line in self._log:
            if self._address is None:
                self._said.append(line)
                if found := _READY.search(line):
                    self._address = found[1].decode()
                    self._known.set()
        self._known.set()

    def address(self) -> str:
        assert self._known.wait(timeout=60), "the server said nothing"
        assert self._address is not None, b"".join(self._said).decode()
        return self._address


def environment_of(endpoint: str) -> dict[str, str]:
    """The variables that lead to this endpoint."""
    return {
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": REGION,
        "AWS_ENDPOINT_URL": endpoint,
    }


def create_bucket(endpoint: str) -> str:
    """A new, empty bucket; its name."""
    name = f"bucket-{uuid.uuid4().hex}"
    with urlopen(Request(f"{endpoint}/{name}", method="PUT")) as answer:
        assert answer.status == 200
    return name


def s3_blob(
    endpoint: str, patience: Patience | None = None, *, place: str = "", through: str = ""
) -> S3Blob:
    """A blob store at this endpoint, perhaps through a proxy; in a bucket of its own or `place`."""
    url = f"s3://{place or create_bucket(endpoint)}"
    environment = environment_of(through or endpoint)
    return S3Blob.from_url(url, environment=environment, patience=patience)


def error_answer(status: str, code: str) -> bytes:
    """An HTTP answer as S3 gives errors; some of them say back who was asking."""
    said = f"<Code>{code}</Code><AWSAccessKeyId>{KEY_ID}</AWSAccessKeyId>"
    body = f"<Error>{said}<Message>as the test wished</Message></Error>".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


SLOW_DOWN = error_answer("503 Slow Down", "SlowDown")


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that the proxy was sent."""

    method: str
    path: str


Ask = Callable[[], Awaitable[bytes]]
# What to do with a request and the answer that the endpoint would give; None drops the connection.
Meddler = Callable[[Seen, Ask], Awaitable[bytes | None]]


async def _honest(_: Seen, ask: Ask) -> bytes | None:
    return await ask()


@dataclass(slots=True)
class Proxy:
    """Stands before an endpoint; `meddler` may be exchanged at any time."""

    upstream: str
    address: str = ""
    meddler: Meddler = _honest
    seen: list[Seen] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
            body = await reader.readexactly(int(length[1]) if length else 0)
            method, path, _ = head.split(b"\r\n")[0].decode().split(" ")
            self.seen.append(Seen(method, path))

            async def ask() -> bytes:
                return await self._ask(head, body)

            answer = await self.meddler(self.seen[-1], ask)
            if answer is not None:
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client gave up, or the test has ended
        finally:
            writer.close()

    async def _ask(self, head: bytes, body: bytes) -> bytes:
        address = urlsplit(self.upstream)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        try:
            writer.write(head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1) + body)
            return await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()


@asynccontextmanager
async def running_proxy(upstream: str) -> AsyncIterator[Proxy]:
    """A proxy before the endpoint, honest until told otherwise."""
    proxy = Proxy(upstream)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        await proxy.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    proxy.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
