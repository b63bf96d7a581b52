"""`evertide demo`: a server, an auction house, and a live picture of views that follow it."""

import asyncio
import contextlib
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from evertide.cli.config import EXIT_OK
from evertide.cli.demo_data import PROGRESS, SOURCE, VIEW_NAMES, VIEWS

PAUSE_SECONDS = 0.2
SHOWN_ROWS = 8

Connection = psycopg.AsyncConnection[tuple[object, ...]]


@dataclass(slots=True)
class Picture:
    """What was last seen of the views."""

    sql_address: str
    bids: int = 0
    rows: dict[str, Sequence[tuple[object, ...]]] = field(default_factory=dict)
    columns: dict[str, Sequence[str]] = field(default_factory=dict)
    answered_ms: dict[str, float] = field(default_factory=dict)

    @property
    def connect_hint(self) -> str:
        """How to look at the same data."""
        host, port = self.sql_address.rsplit(":", 1)
        return f"psql -h {host} -p {port} -U materialize materialize"


def run(seconds: float | None, data: Path | None, *, plain: bool) -> int:
    """Run until the time is over, or Ctrl-C. Keeps nothing unless --data was given."""
    try:
        return asyncio.run(_demo(seconds, data, plain=plain or not sys.stdout.isatty()))
    except KeyboardInterrupt:
        return EXIT_OK


async def _demo(seconds: float | None, data: Path | None, *, plain: bool) -> int:
    directory = _directory(data)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        async with _server(directory) as address:
            picture = Picture(address)
            async with await _connect(address) as connection:
                for statement in (SOURCE, *VIEWS):
                    await connection.execute(statement.encode())
                deadline = None if seconds is None else time.monotonic() + seconds
                show = _show_plain if plain else _show_live
                await show(picture, connection, stop, deadline)
    finally:
        if data is None:
            shutil.rmtree(directory, ignore_errors=True)
    return EXIT_OK


def _directory(data: Path | None) -> Path:
    if data is None:
        return Path(tempfile.mkdtemp(prefix="evertide-demo-"))
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    return data


@contextlib.asynccontextmanager
async def _server(directory: Path) -> AsyncIterator[str]:
    """A server of its own on free ports; yields its SQL address."""
    log_path = directory / "demo.log"
    with log_path.open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "evertide.cli.main", "serve", "--data", str(directory),
            "--sql-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0",
            "--internal-sql-addr", "127.0.0.1:0",
            stdout=asyncio.subprocess.PIPE, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        yield await _ready_address(process, log_path)
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


async def _ready_address(process: asyncio.subprocess.Process, log_path: Path) -> str:
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    fields = dict(part.split("=", 1) for part in line.split() if "=" in part)
    if "sql" not in fields:
        raise RuntimeError(f"the server did not start; see {log_path}")
    return fields["sql"].split(",")[0]


async def _connect(address: str) -> Connection:
    host, port = address.rsplit(":", 1)
    return await psycopg.AsyncConnection.connect(
        host=host, port=int(port), user="materialize", dbname="materialize", autocommit=True
    )


async def _looks(
    picture: Picture,
    connection: Connection,
    stop: asyncio.Event,
    deadline: float | None,
) -> AsyncIterator[None]:
    """Look at the views, again and again. Nobody writes: the auction house goes on by itself.

    Each SELECT is strict serializable: it waits until the view has everything up to its time.
    """
    while not stop.is_set() and (deadline is None or time.monotonic() <= deadline):
        found = await (await connection.execute(PROGRESS.encode())).fetchone()
        picture.bids = 0 if found is None else int(str(found[0]))
        for name in VIEW_NAMES:
            started = time.perf_counter()
            cursor = await connection.execute(f"SELECT * FROM {name} ORDER BY 1".encode())
            picture.rows[name] = await cursor.fetchall()
            picture.columns[name] = [column.name for column in cursor.description or ()]
            picture.answered_ms[name] = (time.perf_counter() - started) * 1_000
        yield
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), PAUSE_SECONDS)


async def _show_live(
    picture: Picture, connection: Connection, stop: asyncio.Event, deadline: float | None
) -> None:
    with Live(console=Console(), refresh_per_second=8, screen=False) as live:
        async for _ in _looks(picture, connection, stop, deadline):
            live.update(draw(picture))


async def _show_plain(
    picture: Picture, connection: Connection, stop: asyncio.Event, deadline: float | None
) -> None:
    print(f"connect meanwhile: {picture.connect_hint}", flush=True)
    async for _ in _looks(picture, connection, stop, deadline):
        parts = [
            f"{name}: {len(picture.rows[name])} rows, {picture.answered_ms[name]:.1f} ms"
            for name in VIEW_NAMES
        ]
        best = picture.rows["winning_bids"][:1]
        print(f"{picture.bids} bids: {'; '.join(parts)}; first {best}", flush=True)


def draw(picture: Picture) -> Panel:
    """The picture as a person sees it."""
    tables = [_draw_view(name, picture) for name in VIEW_NAMES]
    hint = Text(f"{picture.bids} bids so far. Look yourself: {picture.connect_hint}")
    return Panel(Group(Columns(tables), hint), title="evertide: views that stay fresh on Spark")


def _draw_view(name: str, picture: Picture) -> Table:
    title = f"{name} ({picture.answered_ms[name]:.1f} ms)"
    table = Table(*picture.columns[name], title=title)
    for row in picture.rows[name][:SHOWN_ROWS]:
        table.add_row(*(_shown(value) for value in row))
    return table


def _shown(value: object) -> str:
    return f"{value:.2f}" if hasattr(value, "as_tuple") else str(value)
