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
            conditions.append("id > 300")
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


# Expressions to keep an index by, and what a condition compares each of them with. With COLLATE "C"
# PostgreSQL's lower() leaves other letters than ASCII's as they are, so no text here has such.
EXPRESSIONS = {
    "lower(b)": ["'a'", "'ab'", "'zz top'", "''", "'B'"],
    "(a % 3)": ["0", "1", "-1", "2"],
    "coalesce(c, 0::numeric)": [f"{number}::numeric" for number in NUMBERS],
    "(b || a::text)": ["'a1'", "'ab-1'", "'b'", "'7'"],
    "(a IS NULL)": ["true", "false"],
    "(j->>'k')": ["'x'", "'y'", "'1'"],
}

DOCUMENTS = ['{"k": "x"}', '{"k": "y"}', '{"k": 1}', '{"k": null}', "{}"]


def expression_query(chance: random.Random, key: list[str]) -> str:
    """Conditions on the first of these expressions, or columns."""
    conditions = []
    for part in key[: chance.randint(1, len(key))]:
        values = EXPRESSIONS.get(part) or [literal(chance, part)]
        one, other = chance.choice(values), chance.choice(values)
        operator = chance.choice(["=", "=", "<", ">="])
        forms = [f"{part} {operator} {one}", f"{one} = {part}", f"{part} IN ({one}, {other})"]
        conditions.append(chance.choice([*forms, f"{part} IS NULL"]))
    if chance.random() < 0.3:
        conditions.append("id > 300")
    return f"WHERE {' AND '.join(conditions)}"


@pytest.mark.parametrize("seed", range(4))
def test_lookups_by_expressions(seed: int, server: Server, postgres_dsn: str) -> None:
    chance = random.Random(seed)
    table = f"by_expression_{seed}"
    key = chance.sample([*EXPRESSIONS, "a"], 2 + seed % 2)
    columns = "id int, a int, b text {}, c numeric, j jsonb"
    with server.connect() as ours, psycopg.connect(postgres_dsn, autocommit=True) as theirs:
        ours.execute(f"CREATE TABLE {table} ({columns.format('')})")
        by_bytes = columns.format('COLLATE "C"')
        theirs.execute(f"CREATE TEMP TABLE {table} ({by_bytes})")
        on = table
        if seed % 2:
            on = f"{table}_view"
            ours.execute(f"CREATE VIEW {on} AS SELECT * FROM {table} WHERE id > 0")
        ours.execute(f"CREATE INDEX {table}_key ON {on} ({', '.join(key)})")
        first = EXPRESSIONS.get(key[0], ["1"])[0]
        wait_for_index(server, ours, f"SELECT * FROM {on} WHERE {key[0]} = {first}")
        forms: Counter[str] = Counter()
        for number in range(1, 16):
            rows = [
                f"({number * 100 + i}, {', '.join(value(chance, c) for c in 'abc')},"
                f" '{chance.choice(DOCUMENTS)}')"
                for i in range(20)
            ]
            for connection in (ours, theirs):
                connection.execute(f"INSERT INTO {table} VALUES {', '.join(rows)}")
                connection.execute(f"UPDATE {table} SET a = a + 1 WHERE id % 7 = {number % 7}")
                connection.execute(f"DELETE FROM {table} WHERE id % 11 = {number % 11}")
            for _ in range(6):
                where = expression_query(chance, key)
                plan = explained(ours, f"SELECT * FROM {on} {where}")
                forms[_form(plan)] += 1
                found = ours.execute(f"SELECT id, a, b, c FROM {on} {where}").fetchall()
                wanted = theirs.execute(f"SELECT id, a, b, c FROM {table} {where}").fetchall()
                assert Counter(found) == Counter(wanted), (where, plan)
        assert forms["none"] == 0, "all conditions are on the first key"
        assert forms["lookup"] > 2
        assert forms["lookup (prefix)"] > 5
        shown = ours.execute(f"SHOW INDEXES ON {on}").fetchone()
        assert shown is not None
        assert len(shown[3]) == len(key)
        ours.execute(f"DROP TABLE {table} CASCADE")


def test_an_expression_that_fails_harms_only_who_asks_for_it(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE ratios (a int, b int)")
        connection.execute("INSERT INTO ratios VALUES (6, 3), (5, 0)")
        connection.execute("CREATE INDEX ratio ON ratios ((a / b))")
        by_ratio = "SELECT a FROM ratios WHERE a / b = 2"
        assert _form(explained(connection, by_ratio)) == "lookup"
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute(by_ratio)
        found = connection.execute("SELECT a FROM ratios WHERE b = 0").fetchall()
        assert found == [(5,)]
        guarded = "SELECT a FROM ratios WHERE b <> 0 AND a / b = 2"
        assert _form(explained(connection, guarded)) == "lookup"
        assert connection.execute(guarded).fetchall() == [(6,)]
        connection.execute("CREATE INDEX by_divisor ON ratios (b, (a / b))")
        by_divisor = "SELECT a FROM ratios WHERE b = 0"
        assert _form(explained(connection, by_divisor)) == "lookup (prefix)"
        assert connection.execute(by_divisor).fetchall() == [(5,)]
        connection.execute("CREATE VIEW of_ratios AS SELECT b, a FROM ratios")
        connection.execute("CREATE INDEX ON of_ratios ((a / b))")
        found = connection.execute("SELECT * FROM of_ratios").fetchall()
        assert sorted(found) == [(0, 5), (3, 6)]
        connection.execute("DELETE FROM ratios WHERE b = 0")
        assert connection.execute(by_ratio).fetchall() == [(6,)]
        connection.execute("UPDATE ratios SET b = 1 WHERE a / b = 2")
        assert connection.execute("SELECT * FROM ratios WHERE a / b = 6").fetchall() == [(6, 1)]
        connection.execute("DROP TABLE ratios CASCADE")


def test_readers_see_no_column_behind_those_of_the_relation(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE people (name text)")
        connection.execute("INSERT INTO people VALUES ('Ada'), ('Ben')")
        connection.execute("CREATE INDEX ON people (lower(name))")
        joined = (
            "SELECT * FROM people p JOIN (VALUES ('Ada', 1), ('Ben', 2)) o (of, n) ON p.name = o.of"
            " WHERE lower(p.name) = 'ada'"
        )
        assert _form(explained(connection, joined)) == "lookup"
        assert connection.execute(joined).fetchall() == [("Ada", "Ada", 1)]
        connection.execute("DROP TABLE people")


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
