"""Goal: a long list of constants means the same, or fails the same, whichever way it is read.

Method: random lists, some with a constant that does not belong there, are read twice. A comment
before the list is no constant, so it leaves the list to the grammar.
"""

from random import Random

import pytest

from evertide.persist.coding.batch import COLUMNAR_ROWS
from evertide.sql.parser import literal_json
from evertide.sql.parser.entry import parse_statement
from evertide.sql.parser.literal_json import rows_as_json
from evertide.sql.parser.literal_rows import BULK_ROWS
from evertide.sql.plan.plans import InsertPlan, LiteralColumns
from evertide.sql.pretty import to_sql
from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database

COLUMNS = {
    "i2 smallint": ["0", "-32768", "32767", "NULL", "7"],
    "i4 int": ["1", "-2147483648", "2147483647", "null", "-0"],
    "i8 bigint": ["1", "-9223372036854775808", "9223372036854775807", "NULL"],
    "n numeric": ["1", "-1.50", "0", "123456789.123456789", "NULL", "100", "0.000"],
    "n2 numeric(8,2)": ["1.5", "-0.01", "999999.99", "1.234", "1.235", "-1.235", "NULL"],
    "f float8": ["1", "-2.5", "0", "-0", "1e10", "0.1", "NULL"],
    "b bool": ["true", "FALSE", "NULL", "True"],
    "t text": ["'a'", "''", "'it''s'", "''''", "'(1, 2), (3'", "'é ☃ 𝄞'", "'a\\b'", "NULL",
               "'say \"x\"'", "'line\nbreak'", "'tab\there'", "'NULL'", "';'", "'--'", "'/*'"],
    "v varchar(5)": ["'abc'", "'éé'", "NULL", "'abcde'"],
    "d date": ["'2024-02-29'", "'1970-01-01'", "'infinity'", "NULL", "'0044-03-15 BC'"],
    "s timestamp": ["'2024-01-02 03:04:05'", "'2024-01-02 03:04:05.123456'", "'2024-01-02'",
                    "NULL"],
    "z timestamptz": ["'2024-01-02 03:04:05+02'", "NULL"],
    "u uuid": ["'00000000-0000-0000-0000-000000000001'", "NULL"],
    "j jsonb": ["'{\"a\": [1, \"x\"]}'", "'1'", "NULL"],
}  # fmt: skip
# Constants of any kind in any place: casts, ranges and mistakes.
STRANGERS = [
    "'x'", "'12'", "1.5", "99999999999", "1e400", "true", "'2024-13-01'", "'abcdefgh'", "-0.0",
    "123456789012345678901234567890123456789012345", ".5", "7.", "007", "' 1 '", "'NaN'", "1E2",
    "4503599627370496.5", "9007199254740993.0", "'1_000'", "''", "NULL",
]  # fmt: skip


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(f"CREATE TABLE t ({', '.join(COLUMNS)})")
    return database


def outcome(database: Database, sql: str) -> tuple[object, ...]:
    try:
        return ("rows", repr(database.query(sql)))
    except SqlError as error:
        return ("error", error.code, error.message, error.position)


def listed(rng: Random, *, strangers: bool, least: int = BULK_ROWS) -> str:
    kinds = list(COLUMNS.values())
    rows = [[rng.choice(kind) for kind in kinds] for _ in range(least + rng.randrange(4))]
    if strangers:
        rows[rng.randrange(len(rows))][rng.randrange(len(kinds))] = rng.choice(STRANGERS)
    comma = rng.choice([",", ", ", " , ", ",\n"])
    texts = [f"({comma.join(row)})" for row in rows]
    return rng.choice([",", ", ", ",\n\t"]).join(texts)


@pytest.mark.parametrize("seed", range(40))
def test_short_texts_are_changed_as_long_ones_are(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a string holds a quote, or none is left to end it, there is one way for both."""
    rng = Random(seed)
    text = listed(rng, strangers=True, least=rng.choice([1, 4]))
    if rng.random() < 0.8:
        text = text.replace("''", rng.choice(["x", "'A\nB'", "E"]))
    short = rows_as_json(text)
    monkeypatch.setattr(literal_json, "_SHORT_BYTES", -1)
    assert rows_as_json(text) == short


@pytest.mark.parametrize(
    "text", ["(1, 'A')", "(1, 'A' , TRUE)", "('\n', 1E2)", "('a', 'b'), ('(', 'd')"]
)
def test_short_texts_are_rows(text: str) -> None:
    assert rows_as_json(text) is not None


@pytest.mark.parametrize("seed", range(60))
def test_insert(seed: int, database: Database) -> None:
    rng = Random(seed)
    text = listed(rng, strangers=seed % 3 > 0)
    quick = outcome(database, f"INSERT INTO t VALUES        {text} RETURNING *")
    grammar = outcome(database, f"INSERT INTO t VALUES /* */  {text} RETURNING *")
    assert quick == grammar
    before = [len(rows) for rows in database.rows.values()]
    direct = outcome(database, f"INSERT INTO t VALUES        {text}")
    if grammar[0] == "error":
        assert direct == grammar
    else:
        (stored,) = (r[n:] for r, n in zip(database.rows.values(), before, strict=True) if r[n:])
        assert repr(stored) == grammar[1]


@pytest.mark.parametrize("seed", range(20))
def test_plain_lists_are_read_as_columns(seed: int, database: Database) -> None:
    text = listed(Random(seed), strangers=False, least=COLUMNAR_ROWS)
    plan = database.plan(f"INSERT INTO t VALUES {text}")
    assert isinstance(plan, InsertPlan)
    assert isinstance(plan.source, LiteralColumns), "or else it was slow"
    grammar = database.query(f"INSERT INTO t VALUES /* */ {text} RETURNING *")
    columns = database.query(f"INSERT INTO t VALUES {text} RETURNING *")
    assert repr(columns) == repr(grammar)


@pytest.mark.parametrize("seed", range(60))
def test_in_list(seed: int, database: Database) -> None:
    rng = Random(seed)
    column, kinds = rng.choice(list(COLUMNS.items()))
    name = column.split()[0]
    items = [rng.choice(kinds) for _ in range(40)]
    if seed % 3 == 0:
        items[rng.randrange(40)] = rng.choice(STRANGERS)
    constants = ", ".join(items)
    negation = rng.choice(["", "NOT "])
    rows = "".join(f" UNION ALL SELECT {text}::{column.split(maxsplit=1)[1]}" for text in kinds)
    source = f"(SELECT NULL::{column.split(maxsplit=1)[1]} AS {name}{rows}) AS x"
    before, after = f"SELECT {name}, {name} {negation}IN ", f" ({constants}) FROM {source}"
    quick = outcome(database, before + "     " + after)
    grammar = outcome(database, before + "/* */" + after)
    assert quick == grammar


def test_in_lists_survive_printing_and_parsing() -> None:
    items = ", ".join(["1", "-2.5", "'it''s'", "NULL", "true"] * 10)
    text = f"SELECT a FROM t WHERE a NOT IN ({items}) AND b IN (1)"
    assert to_sql(parse_statement(text)) == text
    assert parse_statement(to_sql(parse_statement(text))) == parse_statement(text)


@pytest.mark.parametrize(
    "source",
    ["(1 2)", "(1,)", "()", "(1), ( )", "(1), (1, 2)",
     "(1) (2)", "((1))", "([1])", '("a")', "(1), ", "('a)",
     "('a' 'b')", "('a'\n'b')", "(E'a')", "(1), x", "(nul)", "(--1\n1)", "({})", "(1:2)", "(\x011)",
     "('\x01')", "(+1)", "(01)", "(1.)", "(.5)", "(- 1)", "($1)", "($$a$$)", "(1e)", "(\\1)"],
)  # fmt: skip
def test_what_is_no_json_is_left_to_the_grammar(source: str) -> None:
    assert rows_as_json(source) is None


def test_statements_behind_a_list_are_read_too(database: Database) -> None:
    rows = ", ".join(["(1, ';')"] * BULK_ROWS)
    database.run("CREATE TABLE IF NOT EXISTS two (a int, b text)")
    database.run(f"INSERT INTO two VALUES {rows} ; INSERT INTO two VALUES {rows};;")
    assert database.query("SELECT count(*), min(b) FROM two") == [(2 * BULK_ROWS, ";")]
