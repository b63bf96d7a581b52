"""A long list of constant rows is read on its own path, and means what the grammar would read."""

from random import Random

import pytest

from evertide.sql.parser.entry import parse_statement
from evertide.sql.parser.literal_rows import BULK_ROWS
from evertide.sql.pretty import to_sql
from evertide.sql.syntax.command import InsertStatement
from evertide.sql.syntax.expression import (
    BooleanLiteral,
    Expression,
    NullLiteral,
    NumberLiteral,
    StringLiteral,
    Unary,
)
from evertide.sql.syntax.literal_values import LiteralValues
from evertide.sql.syntax.query import QueryBody, Values
from evertide.vocab.errors import SqlSyntaxError

CELLS = ["1", "-2.5", ".5e3", "'a'", "'it''s, (ok)'", "''", "NULL", "true", "False", "null"]


def source(text: str) -> QueryBody:
    statement = parse_statement(text)
    assert isinstance(statement, InsertStatement)
    assert statement.source is not None
    return statement.source.body


def as_pair(node: Expression) -> tuple[str, str]:
    match node:
        case Unary("-", NumberLiteral(text)):
            return "n", "-" + text
        case NumberLiteral(text):
            return "n", text
        case StringLiteral(value):
            return "s", value
        case BooleanLiteral(value):
            return ("t" if value else "f"), ""
        case NullLiteral():
            return "0", ""
        case _:
            raise AssertionError(node)


@pytest.mark.parametrize("seed", range(20))
def test_both_paths_read_the_same_rows(seed: int) -> None:
    rng = Random(seed)
    width = rng.randint(1, 4)
    rows = [
        "(" + " , ".join(rng.choice(CELLS) for _ in range(width)) + ")" for _ in range(BULK_ROWS)
    ]
    compact = source("INSERT INTO t VALUES " + ",\n".join(rows))
    grammar = source("INSERT INTO t VALUES /* not plain */ " + ", ".join(rows))
    assert isinstance(compact, LiteralValues)
    assert isinstance(grammar, Values)
    assert list(compact.rows()) == [tuple(map(as_pair, row)) for row in grammar.rows]


def test_a_compact_list_survives_printing_and_parsing() -> None:
    text = "INSERT INTO t (a, b) VALUES " + ", ".join(["(-1, 'it''s')", "(NULL, true)"] * 40)
    statement = parse_statement(text + " RETURNING a")
    assert to_sql(statement) == text + " RETURNING a"
    assert parse_statement(to_sql(statement)) == statement


@pytest.mark.parametrize(
    "odd", ["(now())", "(DEFAULT)", "($1)", "(1 + 1)", "('a'::text)", "(E'a')", "(- 1)"]
)
def test_one_row_that_is_no_constant_leaves_all_to_the_grammar(odd: str) -> None:
    text = "INSERT INTO t VALUES " + ", ".join(["(1)"] * 50 + [odd])
    found = source(text)
    assert isinstance(found, Values)
    assert len(found.rows) == 51


def test_few_rows_keep_their_offsets() -> None:
    found = source("INSERT INTO t VALUES (1), (2)")
    assert isinstance(found, Values)
    assert [row[0].at for row in found.rows] == [22, 27]


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ("(1, 2)", "VALUES lists must all be the same length"),
        ("", "Expected left parenthesis, found EOF"),
        ("(1", "Expected right parenthesis, found EOF"),
        ("('a", "unterminated quoted string"),
    ],
)
def test_a_broken_row_is_found_by_the_grammar(last: str, message: str) -> None:
    text = "INSERT INTO t VALUES " + "(1), " * 50 + last
    with pytest.raises(SqlSyntaxError, match=message) as caught:
        parse_statement(text)
    assert caught.value.position is not None
    assert caught.value.position > 21 + 5 * 50


def test_a_compact_list_may_stand_in_any_query() -> None:
    rows = ", ".join(["(1, 'a')"] * BULK_ROWS)
    text = f"SELECT * FROM (VALUES {rows}) AS v (a, b) ORDER BY a"
    assert to_sql(parse_statement(text)) == text
