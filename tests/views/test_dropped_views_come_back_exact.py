"""Goal: whatever is dropped and brought back, in whatever order and however tables change
meanwhile, every table and view that is there holds what it should, and nothing else is there. A
view either goes on where it ended, with no time left out, or begins anew where all it reads is
known.

Method: random statements against a model that keeps tables' rows and what depends on what; all is
read and compared after each step. And two views whose inputs remember much, and little.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

import psycopg
import pytest

from tests.support.server import Server, eventually, running_server

SEEDS = range(10)
STEPS = 14
Connection = psycopg.Connection[tuple]
Rows = list[tuple[object, ...]]


@dataclass(frozen=True)
class Kind:
    """An object that may be there: how it is made, what it reads, what it holds."""

    words: str
    sql: str
    reads: tuple[str, ...] = ()
    holds: Callable[["Model"], Rows] | None = None  # None: an index


def _total(rows: Rows) -> Rows:
    values = [row[1] for row in rows]
    return [(len(values), sum(values) if values else None)]  # type: ignore[arg-type]


KINDS = {
    "t": Kind("TABLE", "CREATE TABLE t (k int, v int)", (), lambda m: m.rows["t"]),
    "u": Kind(
        "TABLE",
        "CREATE TABLE u (k int, v int)",
        (),
        lambda m: m.rows["u"],
    ),
    "ti": Kind("INDEX", "CREATE INDEX ti ON t (k)", ("t",)),
    "v": Kind(
        "VIEW",
        "CREATE VIEW v AS SELECT k, v FROM t WHERE v > 5",
        ("t",),
        lambda m: [row for row in m.rows["t"] if row[1] > 5],  # type: ignore[operator]
    ),
    "m": Kind(
        "MATERIALIZED VIEW",
        "CREATE MATERIALIZED VIEW m AS SELECT k, v + 1 AS v FROM v",
        ("v",),
        lambda m: [(k, v + 1) for k, v in m.holds("v")],  # type: ignore[operator]
    ),
    "n": Kind(
        "MATERIALIZED VIEW",
        "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n, sum(u.v) AS s FROM u",
        ("u",),
        lambda m: _total(m.rows["u"]),
    ),
    "j": Kind(
        "MATERIALIZED VIEW",
        "CREATE MATERIALIZED VIEW j AS SELECT m.k, m.v, u.v AS w FROM m JOIN u ON u.k = m.k",
        ("m", "u"),
        lambda m: [(k, v, w) for k, v in m.holds("m") for other, w in m.rows["u"] if other == k],
    ),
    "ji": Kind("INDEX", "CREATE INDEX ji ON j (k)", ("j",)),
}


@dataclass
class Model:
    """What should be there, and what was dropped when."""

    rows: dict[str, Rows] = field(default_factory=lambda: {"t": [], "u": []})
    there: set[str] = field(default_factory=lambda: set(KINDS))
    drops: dict[str, int] = field(default_factory=dict)
    number: int = 0

    def holds(self, name: str) -> Rows:
        found = KINDS[name].holds
        assert found is not None
        return found(self)

    def drop(self, name: str) -> None:
        """It, and all that depends on it."""
        self.number += 1
        going = {name}
        while True:
            more = {n for n in self.there - going if going.intersection(KINDS[n].reads)}
            if not more:
                break
            going |= more
        self.there -= going
        self.drops.update(dict.fromkeys(going, self.number))

    def undrop(self, name: str) -> None:
        """It, and what was dropped along with it and has all that it reads."""
        number = self.drops.pop(name)
        self.there.add(name)
        coming = {name}
        for other in KINDS:  # inputs come first here
            reads = KINDS[other].reads
            along = self.drops.get(other) == number and coming.intersection(reads)
            if along and self.there.issuperset(reads):
                del self.drops[other]
                self.there.add(other)
                coming.add(other)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("dropped") / "data") as running:
        yield running


def run(connection: Connection, *statements: str) -> None:
    for statement in statements:
        connection.execute(statement.encode())


def check(connection: Connection, model: Model, told: list[str]) -> None:
    found = connection.execute(
        "SELECT o.name FROM mz_objects o JOIN mz_schemas s ON s.id = o.schema_id"
        " WHERE s.name = current_schema()"
    ).fetchall()
    assert {name for (name,) in found} == model.there, told
    for name in sorted(model.there):
        if KINDS[name].holds is not None:
            rows = connection.execute(f"SELECT * FROM {name}".encode()).fetchall()
            assert sorted(rows, key=repr) == sorted(model.holds(name), key=repr), (name, told)


def change(connection: Connection, model: Model, draw: Random, told: list[str]) -> None:
    """Some rows come, or some go."""
    tables = [name for name in "tu" if name in model.there]
    if not tables:
        return
    name = draw.choice(tables)
    if draw.random() < 0.6:
        new: Rows = [(draw.randrange(4), draw.randrange(12)) for _ in range(draw.randrange(1, 4))]
        told.append(f"INSERT INTO {name} VALUES {', '.join(map(str, new))}")
        model.rows[name] = model.rows[name] + new
    else:
        key = draw.randrange(4)
        told.append(f"DELETE FROM {name} WHERE k = {key}")
        model.rows[name] = [row for row in model.rows[name] if row[0] != key]
    run(connection, told[-1])


@pytest.mark.parametrize("seed", SEEDS)
def test_any_order_of_drops_and_returns_is_exact(server: Server, seed: int) -> None:
    draw = Random(seed)
    model = Model()
    told: list[str] = []
    with server.connect(options="-c statement_timeout=60s") as connection:
        schema = f"dropped_{seed}"
        run(connection, f"CREATE SCHEMA {schema}", f"SET search_path = {schema}")
        run(connection, *(kind.sql for kind in KINDS.values()))
        for _ in range(STEPS):
            for _ in range(draw.randrange(3)):
                change(connection, model, draw, told)
            ready = sorted(n for n in model.drops if model.there.issuperset(KINDS[n].reads))
            if ready and (not model.there or draw.random() < 0.6):
                name = draw.choice(ready)
                told.append(f"UNDROP {KINDS[name].words} {name}")
                model.undrop(name)
            else:
                name = draw.choice(sorted(model.there))
                told.append(f"DROP {KINDS[name].words} {name} CASCADE")
                model.drop(name)
            run(connection, told[-1])
            check(connection, model, told)


def test_a_view_that_goes_on_has_the_time_of_the_drop_filled_in(server: Server) -> None:
    """What its subscribers would have seen is what they see afterwards."""
    with server.connect() as connection:
        run(connection, "CREATE SCHEMA filled", "SET search_path = filled")
        run(connection, "CREATE TABLE t (a int) WITH (RETAIN HISTORY FOR '10 min')")
        run(connection, "CREATE MATERIALIZED VIEW m WITH (RETAIN HISTORY FOR '10 min') AS"
                        " SELECT sum(a) AS s FROM t")  # fmt: skip
        run(connection, "INSERT INTO t VALUES (1)")
        assert connection.execute("SELECT * FROM m").fetchall() == [(1,)]
        ((begin,),) = connection.execute("SELECT mz_now()::text::int8").fetchall()
        before = shard(connection)
        run(connection, "DROP MATERIALIZED VIEW m")
        times = []
        for value in (10, 100, 1_000):
            run(connection, f"INSERT INTO t VALUES ({value})")
            times.append(
                connection.execute("SELECT max(a), mz_now()::text::int8 FROM t").fetchone()
            )
        run(connection, "UNDROP MATERIALIZED VIEW m")
        assert shard(connection) == before
        assert connection.execute("SELECT * FROM m").fetchall() == [(1_111,)]
        sums = [
            connection.execute(f"SELECT s FROM m AS OF {at[1]}".encode()).fetchone()
            for at in times
            if at is not None
        ]
        assert sums == [(11,), (111,), (1_111,)]
        assert connection.execute(f"SELECT s FROM m AS OF {begin}".encode()).fetchone() == (1,)


def shard(connection: Connection) -> object:
    """Where the materialized view m of the session's schema is stored."""
    (found,) = connection.execute(
        "SELECT p.shard_id FROM mz_internal.mz_storage_shards p"
        " JOIN mz_materialized_views m ON m.id = p.object_id"
        " JOIN mz_schemas s ON s.id = m.schema_id"
        " WHERE m.name = 'm' AND s.name = current_schema()"
    ).fetchall()
    return found


def frontier(connection: Connection, name: str, column: str) -> int:
    ((found,),) = connection.execute(
        f"SELECT f.{column}::text::int8 FROM mz_internal.mz_frontiers f"
        " JOIN mz_objects o ON o.id = f.object_id JOIN mz_schemas s ON s.id = o.schema_id"
        f" WHERE o.name = '{name}' AND s.name = current_schema()".encode()
    ).fetchall()
    return int(found)


def test_a_view_whose_inputs_have_forgotten_begins_anew(server: Server) -> None:
    with server.connect() as connection:
        run(connection, "CREATE SCHEMA forgotten", "SET search_path = forgotten")
        run(connection, "CREATE TABLE t (a int) WITH (RETAIN HISTORY FOR '1 s')")
        run(connection, "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t")
        run(connection, "CREATE MATERIALIZED VIEW mm AS SELECT n + 1 AS n FROM m")
        run(connection, "INSERT INTO t VALUES (0)")
        assert connection.execute("SELECT n FROM mm").fetchall() == [(2,)]
        ended, before = frontier(connection, "m", "write_frontier"), shard(connection)
        ((was,),) = connection.execute("SELECT mz_now()::text::int8").fetchall()
        run(connection, "DROP MATERIALIZED VIEW m CASCADE")
        written = 1

        def forgotten() -> bool:
            nonlocal written
            run(connection, "INSERT INTO t VALUES (1)")
            written += 1
            return frontier(connection, "t", "read_frontier") > ended

        eventually(forgotten, seconds=60, pause=0.05)
        run(connection, "UNDROP MATERIALIZED VIEW m")
        assert shard(connection) != before
        assert connection.execute("SELECT n FROM m").fetchall() == [(written,)]
        assert connection.execute("SELECT n FROM mm").fetchall() == [(written + 1,)]
        with pytest.raises(psycopg.Error, match="could not find a valid timestamp"):
            run(connection, f"SELECT n FROM m AS OF {was}")
        run(connection, "DELETE FROM t WHERE a = 1")
        assert connection.execute("SELECT n FROM mm").fetchall() == [(2,)]


def forget(connection: Connection, name: str, before: int) -> None:
    """Write to a table until nobody can read it at this time any more."""

    def forgotten() -> bool:
        run(connection, f"INSERT INTO {name} VALUES (9)")
        return frontier(connection, name, "read_frontier") > before

    eventually(forgotten, seconds=60, pause=0.05)


def test_a_view_that_is_finished_comes_back_whatever_its_inputs_have_forgotten(
    server: Server,
) -> None:
    with server.connect() as connection:
        run(connection, "CREATE SCHEMA finished", "SET search_path = finished")
        run(connection, "CREATE TABLE t (a int) WITH (RETAIN HISTORY FOR '1 s')")
        run(connection, "INSERT INTO t VALUES (1), (2)")
        run(connection, "CREATE MATERIALIZED VIEW m WITH (REFRESH AT CREATION) AS SELECT a FROM t")
        run(connection, "CREATE MATERIALIZED VIEW above AS SELECT sum(a) AS s FROM m")
        run(connection, "CREATE INDEX mi ON m (a)")
        assert connection.execute("SELECT s FROM above").fetchall() == [(3,)]
        sealed = (
            "SELECT bool_and(write_frontier IS NULL) FROM mz_internal.mz_frontiers f"
            " JOIN mz_materialized_views m ON m.id = f.object_id"
            " JOIN mz_schemas s ON s.id = m.schema_id WHERE s.name = current_schema()"
        )
        eventually(lambda: connection.execute(sealed).fetchall() == [(True,)], seconds=60)
        created, before = frontier(connection, "m", "read_frontier"), shard(connection)
        forget(connection, "t", created)
        for undone in ("TABLE t", "MATERIALIZED VIEW m", "TABLE t"):
            run(connection, f"DROP {undone} CASCADE", f"UNDROP {undone}")
            assert shard(connection) == before
            assert connection.execute("SELECT a FROM m ORDER BY a").fetchall() == [(1,), (2,)]
            assert connection.execute("SELECT a FROM m WHERE a = 2").fetchall() == [(2,)]
            assert connection.execute("SELECT s FROM above").fetchall() == [(3,)]
            at = f"SELECT a FROM m WHERE a > 1 AS OF {created}"
            assert connection.execute(at.encode()).fetchall() == [(2,)]
        # It holds nothing back.
        forget(connection, "t", frontier(connection, "t", "read_frontier"))


def test_a_view_that_missed_its_last_refresh_stays_dropped_and_nothing_else(
    server: Server,
) -> None:
    with server.connect() as connection:
        run(connection, "CREATE SCHEMA missed", "SET search_path = missed")
        run(connection, "CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)")
        run(connection, "CREATE TABLE u (a int) WITH (RETAIN HISTORY FOR '1 s')")
        run(connection, "CREATE MATERIALIZED VIEW m WITH (REFRESH AT mz_now()::text::int8 + 2000)"
                        " AS SELECT t.a FROM t, u")  # fmt: skip
        run(connection, "CREATE VIEW above AS SELECT a FROM m", "CREATE INDEX mi ON m (a)")
        run(connection, "CREATE MATERIALIZED VIEW n AS SELECT a + 1 AS a FROM t")
        refresh = frontier(connection, "m", "read_frontier")
        run(connection, "DROP TABLE t CASCADE")
        forget(connection, "u", refresh)
        told: list[tuple[str | None, str | None]] = []
        connection.add_notice_handler(lambda d: told.append((d.message_primary, d.message_hint)))
        run(connection, "UNDROP TABLE t")
        along = 'UNDROP MATERIALIZED VIEW "m" brings back what was dropped along with it.'
        reads_it = 'stays dropped: it depends on materialized view "m", which is dropped, too'
        assert sorted(told, key=repr) == [
            (f'index "mi" {reads_it}', along),
            ('materialized view "m" stays dropped: its last refresh is over, and what it read then'
             " is no longer known", "Create it anew."),
            (f'view "above" {reads_it}', along),
        ]  # fmt: skip
        assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]
        assert connection.execute("SELECT a FROM n").fetchall() == [(2,)]
        with pytest.raises(psycopg.Error, match="its last refresh is over") as refused:
            run(connection, "UNDROP MATERIALIZED VIEW m")
        assert refused.value.sqlstate == "55000"
