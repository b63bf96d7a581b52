"""Goal: a query that an index answers gives what PostgreSQL gives, whatever part of the key it
names, after any inserts, updates and deletes, and only indexes of the active cluster are asked.

Method: the same random statements run on Evertide and on PostgreSQL. That the index answered, and
not the shards in its place, is told by the server's own count.
"""

import random
import re
import urllib.request
from collections import Counter

import psycopg
import pytest

from tests.support.server import Server, eventually

Connection = psycopg.Connection[tuple]

TEXTS = ["", "a", "ab", "b", "B", "Äö", "zz top"]
NUMBERS = ["0", "-1.5", "1.50", "7", "123456789.125", "-0.001"]


def literal(chance: random.Random, column: str) -> str:
    match column:
        case "a":
            return str(chance.randint(-4, 8))
        case "b":
            return "'" + chance.choice(TEXTS) + "'"
        case _:
            return f"{chance.choice(NUMBERS)}::numeric"


def value(chance: random.Random, column: str) -> str:
    return "NULL" if chance.random() < 0.1 else literal(chance, column)


def condition(chance: random.Random, column: str) -> str:
    """About one column, in any of the forms that choose keys."""
    one, other = literal(chance, column), literal(chance, column)
    many = ", ".join(value(chance, column) for _ in range(chance.randint(1, 5)))
    operator = chance.choice(["<", "<=", ">", ">="])
    return chance.choice(
        [
            f"{column} = {one}",
            f"{one} = {column}",
            f"{column} IN ({many})",
            f"({column} = {one} OR {column} = {other})",
            f"{column} {operator} {one}",
            f"{one} {operator} {column}",
            f"{column} BETWEEN {one} AND {other}",
            f"({column} < {one} OR {column} > {other})",
            f"{column} IS NULL",
            f"({column} IS NULL OR {column} = {one})",
        ]
    )


def query(chance: random.Random, key: str) -> str:
    """Conditions on the key's first columns, and sometimes one on another."""
    count = chance.randint(1, len(key))
    conditions = [condition(chance, column) for column in key[:count]]
    match chance.random():
        case dice if dice < 0.2:
            pairs = [f"({literal(chance, 'a')}, {literal(chance, 'b')})" for _ in range(3)]
            conditions = [f"(a, b) IN ({', '.join(pairs)})"]
        case dice if dice < 0.35:
            conditions = [f"({' OR '.join([*conditions, condition(chance, key[0])])})"]
        case dice if dice < 0.5:
            conditions.append("id % 2 = 0")
        case _:
            pass
    chance.shuffle(conditions)
    return f"WHERE {' AND '.join(conditions)}"


def statement(chance: random.Random, number: int, table: str) -> str:
    match chance.random():
        case dice if dice < 0.6:
            rows = [
                f"({number * 100 + i}, {', '.join(value(chance, c) for c in 'abc')})"
                for i in range(chance.randint(1, 40))
            ]
            return f"INSERT INTO {table} VALUES {', '.join(rows)}"
        case dice if dice < 0.8:
            return f"UPDATE {table} SET c = c + 1, a = a + 1 WHERE a = {literal(chance, 'a')}"
        case _:
            return f"DELETE FROM {table} WHERE b = {literal(chance, 'b')} AND id % 3 = 0"


def index_reads(server: Server, outcome: str) -> float:
    with urllib.request.urlopen(f"http://{server.http[0]}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = re.search(rf'evertide_index_reads_total{{outcome="{outcome}"}} (\S+)', text)
    return 0.0 if found is None else float(found[1])


def explained(connection: Connection, text: str) -> str:
    row = connection.execute(f"EXPLAIN {text}").fetchone()
    assert row is not None
    return str(row[0])


def wait_for_index(server: Server, connection: Connection, text: str) -> None:
    """Returns once a replica answers it from an index that it keeps on Spark."""

    def answered() -> bool:
        before = index_reads(server, "answered")
        connection.execute(text)
        return index_reads(server, "answered") > before

    eventually(answered, seconds=120, pause=0.2)


@pytest.mark.parametrize("seed", range(3))
def test_lookups_of_every_form(seed: int, server: Server, postgres_dsn: str) -> None:
    chance = random.Random(seed)
    table, key = f"looked_up_{seed}", ["ab", "bac", "ca"][seed]
    with server.connect() as ours, psycopg.connect(postgres_dsn, autocommit=True) as theirs:
        ours.execute(f"CREATE TABLE {table} (id int, a int, b text, c numeric)")
        theirs.execute(f'CREATE TEMP TABLE {table} (id int, a int, b text COLLATE "C", c numeric)')
        on = table
        if seed == 1:
            # An index on a view is all there is of it: nothing else could answer.
            ours.execute(
                f"CREATE VIEW {table}_view AS SELECT id, a, b, c FROM {table} WHERE id > 0"
            )
            on = f"{table}_view"
        ours.execute(f"CREATE INDEX {table}_key ON {on} ({', '.join(key)})")
        wait_for_index(
            server, ours, f"SELECT * FROM {on} WHERE {key[0]} > {literal(chance, key[0])}"
        )
        unanswered = index_reads(server, "unanswered")
        forms: Counter[str] = Counter()
        for number in range(1, 25):
            text = statement(chance, number, table)
            ours.execute(text)
            theirs.execute(text)
            for _ in range(6):
                where = query(chance, key)
                plan = explained(ours, f"SELECT * FROM {on} {where}")
                forms[_form(plan)] += 1
                found = ours.execute(f"SELECT id, a, b, c FROM {on} {where}").fetchall()
                wanted = theirs.execute(f"SELECT id, a, b, c FROM {table} {where}").fetchall()
                assert Counter(found) == Counter(wanted), (where, plan)
        assert index_reads(server, "unanswered") == unanswered
        assert forms["lookup"] > 5
        assert forms["lookup (prefix)"] > 5
        assert forms["range"] > 20
        ours.execute(f"DROP TABLE {table} CASCADE")


def _form(plan: str) -> str:
    found = re.search(r"index (lookup \(prefix\)|lookup|range)", plan)
    return "none" if found is None else found[1]


def test_only_indexes_of_the_active_cluster_are_asked(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE here (a int, b int)")
        connection.execute("INSERT INTO here VALUES (1, 2), (3, 4)")
        connection.execute("CREATE CLUSTER elsewhere REPLICAS (r1 (SIZE '1'))")
        connection.execute("CREATE INDEX here_a IN CLUSTER default ON here (a)")
        connection.execute("CREATE INDEX here_b IN CLUSTER elsewhere ON here (b)")
        found = {"default": (True, False), "elsewhere": (False, True)}
        for cluster, asked in found.items():
            connection.execute(f"SET cluster = {cluster}")
            by_a = explained(connection, "SELECT * FROM here WHERE a = 1")
            by_b = explained(connection, "SELECT * FROM here WHERE b > 1")
            assert (_form(by_a) == "lookup", _form(by_b) == "range") == asked
            assert ("here_a" in by_a, "here_b" in by_b) == asked
            assert connection.execute("SELECT * FROM here WHERE a = 1").fetchall() == [(1, 2)]
            assert connection.execute("SELECT * FROM here WHERE b > 2").fetchall() == [(3, 4)]
        connection.execute("SET cluster = default")
        connection.execute("DROP TABLE here CASCADE")
        connection.execute("DROP CLUSTER elsewhere CASCADE")
