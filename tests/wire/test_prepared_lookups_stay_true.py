"""Goal: a statement that is prepared once and looks rows up by an index's key is right every time,
whatever changes between two runs of it, and whoever else asks.

Method: over a socket, each statement is run until the server's own count says that it found its
rows without asking a replica. Then something changes, and the very next run must show it.
"""

import random
import re
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import errors

from tests.support.server import Server, eventually

Connection = psycopg.Connection[tuple]


def copied(server: Server) -> float:
    with urllib.request.urlopen(f"http://{server.http[0]}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = re.search(r'evertide_index_reads_total{outcome="copied"} (\S+)', text)
    return 0.0 if found is None else float(found[1])


@contextmanager
def preparing(server: Server, user: str = "materialize") -> Iterator[Connection]:
    """Every statement is prepared the first time it is run."""
    with server.connect(user=user) as connection:
        connection.prepare_threshold = 0
        yield connection


def warm(server: Server, connection: Connection, text: str, key: object) -> None:
    """Returns once the statement goes the short way."""

    def short() -> bool:
        before = copied(server)
        for _ in range(10):
            connection.execute(text, (key,))
        return copied(server) > before

    eventually(short, seconds=60, pause=0.05)


@pytest.fixture(scope="module")
def keyed(server: Server) -> Iterator[Connection]:
    with preparing(server) as connection:
        connection.execute("CREATE TABLE looked (id int, v text, f float8)")
        connection.execute(
            "INSERT INTO looked VALUES (1, 'one', 0.123456789), (2, 'two', 1), (2, 'b', 2)"
        )
        connection.execute("INSERT INTO looked VALUES (NULL, 'none', NULL), (3, NULL, 'NaN')")
        connection.execute("CREATE INDEX looked_id ON looked (id)")
        yield connection
        connection.execute("DROP TABLE looked CASCADE")


LOOK = "SELECT v, f FROM looked WHERE id = %s"


def test_rows_come_in_every_format(server: Server, keyed: Connection) -> None:
    warm(server, keyed, LOOK, 1)
    before = copied(server)
    for binary in (False, True):
        found = keyed.execute(LOOK, (1,), binary=binary).fetchall()
        assert found == [("one", 0.123456789)]
        assert sorted(keyed.execute(LOOK, (2,), binary=binary)) == [("b", 2.0), ("two", 1.0)]
        assert keyed.execute(LOOK, (9,), binary=binary).fetchall() == []
        assert keyed.execute(LOOK, (None,), binary=binary).fetchall() == []
        ((text, number),) = keyed.execute(LOOK, (3,), binary=binary).fetchall()
        assert text is None
        assert number != number
    assert copied(server) > before
    with pytest.raises(errors.InvalidTextRepresentation):
        keyed.execute("SELECT v FROM looked WHERE id = %s", ("x",))


def test_writes_are_seen_at_once_while_others_ask(server: Server, keyed: Connection) -> None:
    warm(server, keyed, LOOK, 1)
    stop = threading.Event()
    failures: list[psycopg.Error] = []

    def ask_on() -> None:
        try:
            with preparing(server) as connection:
                while not stop.is_set():
                    connection.execute(LOOK, (random.randint(1, 3),)).fetchall()
        except psycopg.Error as failure:
            failures.append(failure)

    threads = [threading.Thread(target=ask_on) for _ in range(4)]
    before = copied(server)
    with preparing(server) as writer:
        writer.execute("INSERT INTO looked VALUES (7, 'v', 0)")
        for thread in threads:
            thread.start()
        try:
            for number in range(1, 60):
                writer.execute("UPDATE looked SET f = %s WHERE id = 7", (number,))
                assert keyed.execute(LOOK, (7,)).fetchall() == [("v", float(number))]
                if number % 10 == 0:
                    writer.execute("DELETE FROM looked WHERE id = 7")
                    assert keyed.execute(LOOK, (7,)).fetchall() == []
                    writer.execute("INSERT INTO looked VALUES (7, 'v', 0)")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        writer.execute("DELETE FROM looked WHERE id = 7")
    assert not failures
    assert copied(server) > before


def test_views_show_each_write_at_once(server: Server) -> None:
    """Without an index: what the view's shard lacks is told by its replica."""
    look = "SELECT n, total FROM looked_sums WHERE k = %s"
    sums: dict[int, tuple[int, int]] = {}
    draw = random.Random(7)
    with preparing(server) as connection, preparing(server) as writer:
        writer.execute("CREATE TABLE looked_at (k int, v int)")
        writer.execute(
            "CREATE MATERIALIZED VIEW looked_sums AS"
            " SELECT k, count(*) AS n, sum(v) AS total FROM looked_at GROUP BY k"
        )
        connection.execute(look, (1,))
        for number in range(60):
            key, value = draw.randrange(5), draw.randrange(100)
            count, total = sums.get(key, (0, 0))
            if number % 7 == 6:
                writer.execute("DELETE FROM looked_at WHERE k = %s", (key,))
                sums.pop(key, None)
            else:
                writer.execute("INSERT INTO looked_at VALUES (%s, %s)", (key, value))
                sums[key] = count + 1, total + value
            for asked in (key, draw.randrange(6)):
                expected = [sums[asked]] if asked in sums else []
                assert connection.execute(look, (asked,)).fetchall() == expected
        replaced = "SELECT k, count(*) AS n, -sum(v) AS total FROM looked_at GROUP BY k"
        writer.execute(f"CREATE MATERIALIZED VIEW looked_minus REPLACING looked_sums AS {replaced}")
        writer.execute("ALTER MATERIALIZED VIEW looked_sums APPLY REPLACEMENT looked_minus")
        for key, (count, total) in sums.items():
            assert connection.execute(look, (key,)).fetchall() == [(count, -total)]
        writer.execute("DROP TABLE looked_at CASCADE")
        with pytest.raises(errors.UndefinedTable):
            connection.execute(look, (1,))


def test_settings_and_blocks_between_two_runs(server: Server, keyed: Connection) -> None:
    with preparing(server) as connection:
        warm(server, connection, LOOK, 1)
        connection.execute("SET extra_float_digits = -10")
        text = connection.execute(LOOK, (1,)).pgresult
        assert text is not None
        assert text.get_value(0, 1) == b"0.12346"
        connection.execute("RESET extra_float_digits")
        with connection.transaction():
            assert connection.execute(LOOK, (1,)).fetchall() == [("one", 0.123456789)]
            keyed.execute("INSERT INTO looked VALUES (1, 'later', 5)")
            assert connection.execute(LOOK, (1,)).fetchall() == [("one", 0.123456789)]
        assert len(connection.execute(LOOK, (1,)).fetchall()) == 2
        keyed.execute("DELETE FROM looked WHERE v = 'later'")
        connection.execute("CREATE TEMPORARY TABLE looked (id int, v text, f float8)")
        assert connection.execute(LOOK, (1,)).fetchall() == []
        connection.execute("DROP TABLE looked")
        assert connection.execute(LOOK, (1,)).fetchall() == [("one", 0.123456789)]


def test_rights_that_are_taken_away(server: Server, keyed: Connection) -> None:
    keyed.execute("CREATE ROLE onlooker")
    keyed.execute("GRANT SELECT ON looked TO onlooker")
    with preparing(server, user="onlooker") as connection:
        warm(server, connection, LOOK, 1)
        keyed.execute("REVOKE SELECT ON looked FROM onlooker")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute(LOOK, (1,))
        keyed.execute("GRANT SELECT ON looked TO onlooker")
        assert connection.execute(LOOK, (1,)).fetchall() == [("one", 0.123456789)]
    keyed.execute("REVOKE SELECT ON looked FROM onlooker")
    keyed.execute("DROP ROLE onlooker")


def test_objects_that_go_and_come_again(server: Server) -> None:
    text = "SELECT v FROM swapped WHERE id = %s"
    with preparing(server) as connection, preparing(server) as other:
        other.execute("CREATE TABLE swapped (id int, v text)")
        other.execute("INSERT INTO swapped VALUES (1, 'first')")
        other.execute("CREATE INDEX swapped_id ON swapped (id)")
        warm(server, connection, text, 1)
        other.execute("DROP INDEX swapped_id")
        assert connection.execute(text, (1,)).fetchall() == [("first",)]
        other.execute("CREATE INDEX swapped_id ON swapped (id)")
        warm(server, connection, text, 1)
        other.execute("DROP TABLE swapped CASCADE")
        with pytest.raises(errors.UndefinedTable):
            connection.execute(text, (1,))
        other.execute("CREATE TABLE swapped (id int, v text)")
        other.execute("CREATE INDEX swapped_id ON swapped (id)")
        other.execute("INSERT INTO swapped VALUES (1, 'second')")
        assert connection.execute(text, (1,)).fetchall() == [("second",)]
        warm(server, connection, text, 1)
        other.execute("DROP TABLE swapped CASCADE")
        other.execute("CREATE TABLE swapped (id int, v int)")
        other.execute("CREATE INDEX swapped_id ON swapped (id)")
        with pytest.raises(errors.FeatureNotSupported, match="must not change result type"):
            connection.execute(text, (1,))
        other.execute("DROP TABLE swapped CASCADE")


def test_views_that_stand_still(server: Server) -> None:
    text = "SELECT n FROM counted WHERE grp = %s"
    with preparing(server) as connection, preparing(server) as writer:
        writer.execute("CREATE TABLE to_count (grp int)")
        writer.execute("INSERT INTO to_count VALUES (1), (1), (2)")
        writer.execute(
            "CREATE MATERIALIZED VIEW counted AS"
            " SELECT grp, count(*) AS n FROM to_count GROUP BY grp"
        )
        writer.execute("CREATE INDEX counted_grp ON counted (grp)")
        warm(server, connection, text, 1)
        for number in range(3, 13):
            writer.execute("INSERT INTO to_count VALUES (1)")
            assert connection.execute(text, (1,)).fetchall() == [(number,)]
        writer.execute("DROP TABLE to_count CASCADE")
