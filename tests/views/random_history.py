"""Histories: random writes to random tables, while what they do to random views is followed.

Every value travels as text, so that NaN equals itself and 0 is not -0. What a view holds at a
timestamp is a Counter of rows, or the SQLSTATE that a reader of it gets then.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from random import Random

import psycopg
from psycopg.adapt import Loader

from tests.support.server import Server, eventually
from tests.support.subscriber import Told, held_at
from tests.views.random_sql import SQL_TYPES, TABLES, Maker, is_portable

Connection = psycopg.Connection[tuple]
Contents = Counter[Told] | str

KEPT = "RETAIN HISTORY FOR '1h'"
AS_TEXT = (
    "bool", "float8", "numeric", "interval", "timestamp", "text", "date", "jsonb", "int4range",
)  # fmt: skip


class TextLoader(Loader):
    """What the server sent, undigested."""

    def load(self, data: bytes | bytearray | memoryview) -> str:
        return bytes(data).decode()


@contextmanager
def opened(server: Server, schema: str, cluster: str | None = None) -> Iterator[Connection]:
    """A connection whose rows are text."""
    with server.connect() as connection:
        connection.execute("SET statement_timeout = '240s'")
        connection.execute(f"SET search_path = {schema}")
        if cluster is not None:
            connection.execute(f"SET cluster = {cluster}")
        show_text(connection)
        yield connection


def show_text(connection: Connection) -> None:
    for name in AS_TEXT:
        connection.adapters.register_loader(name, TextLoader)
    connection.adapters.register_loader(connection.adapters.types["int4"].array_oid, TextLoader)


@dataclass(slots=True)
class Segment:
    """One subscription, from where it begins to where it ended, with an error or by the end."""

    rows: list[Told] = field(default_factory=list)
    error: str | None = None

    @property
    def start(self) -> int | None:
        return self.rows[0][0] if self.rows else None

    @property
    def end(self) -> int:
        """Below it everything was told."""
        return max((row[0] for row in self.rows if row[1]), default=0)


class Follower:
    """Subscribes, and again whenever an error in the data ended that, until it is stopped."""

    def __init__(self, connection: Connection, source: str) -> None:
        self.segments: list[Segment] = []
        self._connection = connection
        self._text = f"SUBSCRIBE {source} WITH (PROGRESS)"
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            segment = Segment()
            self.segments.append(segment)
            try:
                # What is constant ends by itself.
                for row in self._connection.cursor().stream(self._text):
                    segment.rows.append((int(row[0]), row[1] == "t", *row[2:]))
                return
            except psycopg.Error as error:
                segment.error = error.sqlstate or repr(error)
                # An error in the data; anything else ends the following.
                if not segment.error.startswith("22"):
                    return
                self._stopped.wait(0.01)

    def wait_begun(self) -> None:
        eventually(lambda: self.segments and (self.segments[0].rows or self.segments[0].error))

    def wait_beyond(self, ts: int) -> None:
        """Until it has told everything up to a timestamp, or the data is in error beyond it."""
        eventually(lambda: self._is_beyond(ts) or not self._thread.is_alive(), seconds=240)

    def _is_beyond(self, ts: int) -> bool:
        segments = list(self.segments)
        if segments[-1].end > ts:
            return True
        failing = [s for s in segments[-8:] if s.error is not None and not s.rows]
        return len(failing) >= 4

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._connection.cancel_safe()
        self._thread.join(60)
        assert not self._thread.is_alive()


@dataclass(slots=True)
class History:
    """One seed on one server: what was asked, what was written when, and what was told of it."""

    seed: int
    schema: str
    views: dict[str, str] = field(default_factory=dict)
    # Per write the first timestamp at which it is seen; the first is before all writes.
    times: list[int] = field(default_factory=list)
    told: dict[str, list[Segment]] = field(default_factory=dict)

    def label(self, name: str, ts: int) -> str:
        """What a failing check says."""
        return f"HISTORY_SEED={self.seed}: {name} at {ts} ({self.views[name]})"


def plan(seed: int, views: int, writes: int, *, subqueries: int = 2) -> "Planned":
    """All that a seed decides; `subqueries`: how many a view may have in its expressions."""
    maker = Maker(Random(seed), subqueries)
    first = [f"INSERT INTO {t} VALUES {maker.rows(t, maker.random.randint(1, 12))}" for t in TABLES]
    made = {f"v{number}": maker.view() for number in range(views)}
    made |= {"failing": maker.failing_view(), "temporal": maker.temporal_view()}
    if maker.random.random() < 0.3:
        made["recursive"] = maker.recursive_view()
    return Planned(seed, first, made, [maker.write() for _ in range(writes)])


@dataclass(frozen=True, slots=True)
class Planned:
    """Statements before the views, the views, and the writes after them."""

    seed: int
    first: Sequence[str]
    views: dict[str, str]
    writes: Sequence[Sequence[str]]


def create_tables(connection: Connection, schema: str, options: str = "") -> None:
    connection.execute(f"CREATE SCHEMA {schema}")
    connection.execute(f"SET search_path = {schema}")
    for name, columns in TABLES.items():
        listed = ", ".join(f"{column} {SQL_TYPES[kind]}" for column, kind in columns.items())
        connection.execute(f"CREATE TABLE {name} ({listed}) {options}")


def run(
    server: Server,
    planned: Planned,
    schema: str,
    cluster: str | None = None,
    between: object = None,
) -> History:
    """Run it all on a server; `between` is called after every write."""
    history = History(planned.seed, schema)
    with ExitStack() as stack:
        writer = stack.enter_context(server.connect())
        writer.execute("SET statement_timeout = '240s'")
        create_tables(writer, schema, f"WITH ({KEPT})")
        for statement in planned.first:
            attempt(writer, [statement])
        begun = str(now(writer))
        history.views = {n: q.replace("{now}", begun) for n, q in planned.views.items()}
        placed = f"IN CLUSTER {cluster}" if cluster else ""
        for name, query in history.views.items():
            writer.execute(f"CREATE MATERIALIZED VIEW {name} {placed} WITH ({KEPT}) AS {query}")
        # The first of them once more, kept by nobody but whoever follows it.
        history.views["query"] = history.views["v0"]
        followers: dict[str, Follower] = {}
        for name, query in history.views.items():
            source = f"({query})" if name == "query" else name
            connection = stack.enter_context(opened(server, schema, cluster))
            followers[name] = Follower(connection, source)
            stack.callback(followers[name].stop)
        for follower in followers.values():
            follower.wait_begun()
        history.times.append(now(writer))
        for number, statements in enumerate(planned.writes):
            attempt(writer, statements)
            history.times.append(now(writer))
            if callable(between):
                between(number)
        for follower in followers.values():
            follower.wait_beyond(history.times[-1])
        history.told = {name: list(follower.segments) for name, follower in followers.items()}
    return history


def attempt(connection: Connection, statements: Sequence[str]) -> str:
    """Run them; gives the SQLSTATE of the first that failed, or nothing."""
    failed = ""
    for statement in statements:
        try:
            connection.execute(statement)
        except psycopg.errors.DataError as error:
            failed = failed or str(error.sqlstate)
    return failed


def now(connection: Connection) -> int:
    row = connection.execute("SELECT mz_now()::text").fetchone()
    assert row is not None
    return int(row[0])


def contents(connection: Connection, query: str) -> Contents:
    """What a query returns, or the SQLSTATE of the error in its data."""
    try:
        return Counter(connection.execute(query).fetchall())
    except psycopg.errors.DataError as error:
        return str(error.sqlstate)


def check(connection: Connection, history: History) -> int:
    """At every timestamp that anybody was told of, and after every write, all must agree; gives
    how many different contents there were."""
    last = history.times[-1]
    seen = 0
    for name, query in history.views.items():
        segments = history.told[name]
        check_segments(history, name)
        times = {row[0] for segment in segments for row in segment.rows}
        before: Contents | None = None
        for ts in sorted(t for t in times | set(history.times) if history.times[0] <= t <= last):
            expected = contents(connection, f"SELECT * FROM ({query}) q AS OF {ts}")
            label = history.label(name, ts)
            if name != "query":
                assert contents(connection, f"SELECT * FROM {name} AS OF {ts}") == expected, label
            for segment in segments:
                if segment.start is not None and segment.start <= ts < segment.end:
                    assert held_at(segment.rows, ts, progress=True) == expected, label
            seen += expected != before
            before = expected
    return seen


def check_segments(history: History, name: str) -> None:
    """Times go up, nothing comes below a progress, nothing twice; errors are those of data."""
    for segment in history.told[name]:
        assert segment.error is None or segment.error in ("22012", "22003", "57014"), (
            history.label(name, segment.end),
            segment.error,
        )
        previous = progress = 0
        changes: set[Told] = set()
        for row in segment.rows:
            assert row[0] >= max(previous, progress), history.label(name, row[0])
            previous = row[0]
            if row[1]:
                progress = previous
            else:
                assert (row[0], *row[3:]) not in changes, history.label(name, previous)
                assert row[2] != 0
                changes.add((row[0], *row[3:]))


def steps(connection: Connection, history: History) -> list[dict[str, Contents]]:
    """What each view held after each write, by what was told where it was, else by reading."""
    found: list[dict[str, Contents]] = []
    for ts in history.times:
        step: dict[str, Contents] = {}
        for name in history.views:
            covering = [
                s for s in history.told[name] if s.start is not None and s.start <= ts < s.end
            ]
            step[name] = (
                held_at(covering[0].rows, ts, progress=True)
                if covering
                else contents(connection, f"SELECT * FROM ({history.views[name]}) q AS OF {ts}")
            )
        found.append(step)
    return found


def check_postgres(
    connection: Connection, postgres: Connection, planned: Planned, history: History
) -> int:
    """In the end PostgreSQL holds the same, where both can say it; gives how many views that is."""
    postgres.execute(f"DROP SCHEMA IF EXISTS {history.schema} CASCADE")
    create_tables(postgres, history.schema)
    for statement in planned.first:
        attempt(postgres, [statement])
    for statements in planned.writes:
        attempt(postgres, statements)
    compared = 0
    for name, query in planned.views.items():
        if not is_portable(query):
            continue
        expected = contents(postgres, query)
        found = contents(connection, f"SELECT * FROM {name}")
        # Which rows an expression is looked at for is each system's own business.
        if isinstance(expected, str) or isinstance(found, str):
            continue
        compared += 1
        assert plain(found) == plain(expected), history.label(name, history.times[-1])
    postgres.execute(f"DROP SCHEMA {history.schema} CASCADE")
    return compared


def plain(rows: Counter[Told]) -> Counter[Told]:
    """Numbers by value: PostgreSQL shows 2.50 where 2.5 is shown here, and either of 0 and -0.

    Quotients of large numbers have fewer decimals there: 1e20 / 3 has none.
    """
    total: Counter[Told] = Counter()
    for row, count in rows.items():
        total[tuple(_plain(value) for value in row)] += count
    return total


def _plain(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        number = Decimal(value)
    except InvalidOperation:
        return value
    if not number.is_finite():
        return str(number)
    near = round(number, 12) if abs(number) < 10**15 else number.to_integral_value()
    return near.normalize() + 0
