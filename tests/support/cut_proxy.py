"""A proxy before a PostgreSQL server that cuts connections at chosen moments."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path


class Fate(Enum):
    """What becomes of something that a client sends."""

    ARRIVES = auto()
    # The connection ends, and the server never sees it.
    IS_LOST = auto()
    # The server gets it and answers, and the connection ends before the client hears of it.
    ANSWER_IS_LOST = auto()
    # The server gets it while the connection ends on both sides.
    IS_CUT = auto()
    # The client's side ends; the server gets it some time afterwards.
    ARRIVES_LATE = auto()


def is_change(sent: bytes) -> bool:
    """Whether this is a statement that makes a change, told by its name in the protocol."""
    names = (b"\0change\0", b"\0change_one\0", b"\0change_with_stash\0")
    return sent.startswith(b"B") and any(name in sent[:32] for name in names)


def cut_changes(rng: random.Random, share: float = 0.5) -> Callable[[bytes], Fate]:
    """Some fate for this share of changes; everything else arrives."""
    fates = [fate for fate in Fate if fate is not Fate.ARRIVES]

    def choose(sent: bytes) -> Fate:
        cut = is_change(sent) and rng.random() < share
        return rng.choice(fates) if cut else Fate.ARRIVES

    return choose


@dataclass(slots=True)
class CutProxy:
    """Listens on a port of its own; `choose` may be exchanged at any time."""

    socket: Path
    choose: Callable[[bytes], Fate] = lambda _: Fate.ARRIVES
    late_s: float = 0.05
    port: int = 0
    # How many bytes clients were sent, and how many changes had each fate.
    answered_bytes: int = 0
    fates: list[Fate] = field(default_factory=list)

    def url(self, dsn: str) -> str:
        """The same place by way of this proxy."""
        _, _, rest = dsn.partition("/postgres?host=")
        _, _, options = rest.partition("&")
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres?sslmode=disable&{options}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        answers, server = await asyncio.open_unix_connection(str(self.socket))
        down = asyncio.create_task(self._down(answers, writer))
        try:
            while sent := await reader.read(1024**2):
                fate = self.choose(sent)
                if is_change(sent):
                    self.fates.append(fate)
                if fate is Fate.IS_LOST:
                    return
                swallow = fate in (Fate.ANSWER_IS_LOST, Fate.ARRIVES_LATE)
                if swallow:
                    await _ended(down)
                if fate is Fate.ARRIVES_LATE:
                    writer.close()
                    await asyncio.sleep(self.late_s)
                server.write(sent)
                await server.drain()
                if swallow:
                    assert await answers.read(1024), "the server answers what it gets"
                if fate is not Fate.ARRIVES:
                    return
        except ConnectionError:
            pass  # one of both sides has gone, so the other goes too
        finally:
            await _ended(down)
            for side in (server, writer):
                side.close()

    async def _down(self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while answer := await answers.read(1024**2):
            self.answered_bytes += len(answer)
            writer.write(answer)
            await writer.drain()
        writer.close()


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError, ConnectionError):
        await task


@asynccontextmanager
async def running_cut_proxy(dsn: str) -> AsyncIterator[CutProxy]:
    """A proxy before the server that this URL leads to, honest until told otherwise."""
    directory = dsn.partition("host=")[2].partition("&")[0]
    proxy = CutProxy(Path(directory) / ".s.PGSQL.5432")
    tasks: list[asyncio.Task[None]] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.create_task(proxy.serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
        failed = [end for end in ends if isinstance(end, Exception)]
        assert not failed, failed
