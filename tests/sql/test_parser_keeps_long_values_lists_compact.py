"""A long list of constant rows is read on its own path, and means what the grammar would read."""

from random import Random

import pytest

from evertide.sql.lexer import LITERAL_LIST, tokenize
from evertide.sql.parser.entry import parse_statement, parse_statements
from evertide.sql.parser.literal_rows import BULK_ROWS
from evertide.sql.pretty import to_sql
from evertide.sql.syntax.command import InsertStatement, PrepareStatement
from evertide.sql.syntax.expression import (
    BooleanLiteral,
    Expression,
    NullLiteral,
    NumberLiteral,
    StringLiteral,
    Unary,
)
from evertide.sql.syntax.literal_values import LiteralValues
from evertide.sql.syntax.query import QueryBody, Select, Subquery, Values
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
    found = source("INSERT INTO t SELECT * FROM (VALUES (1), (2)) AS v")
    assert isinstance(found, Select)
    (table,) = found.from_
    assert isinstance(table, Subquery)
    assert isinstance(table.query.body, Values)
    assert [row[0].at for row in table.query.body.rows] == [37, 42]


@pytest.mark.parametrize("before", ["", "SELECT 1; ", "PREPARE p AS "])
def test_what_an_insert_writes_is_compact_however_little_it_is(before: str) -> None:
    *_, statement = parse_statements(f"{before}INSERT INTO t (a) VALUES (1), (2)")
    if isinstance(statement, PrepareStatement):
        statement = statement.statement
    assert isinstance(statement, InsertStatement)
    assert statement.source is not None
    found = statement.source.body
    assert isinstance(found, LiteralValues)
    offsets = [node.at - len(before) for node in found.nodes()]
    assert offsets == [26, 31]


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


@pytest.mark.parametrize(
    ("text", "compact"),
    [
        ("DELETE FROM t WHERE a IN (1, 2, 3, 4)", True),
        ("UPDATE t SET b = 1 WHERE a IN (1, 2, 3, 4)", True),
        ("DELETE FROM t WHERE a IN (1, 2, 3)", False),
        ("SELECT 1 FROM t WHERE a IN (1, 2, 3, 4)", False),
        ("DELETE FROM t WHERE b = (SELECT 1 FROM u WHERE a IN (1, 2, 3, 4))", False),
        ("DELETE FROM t; SELECT 1 FROM t WHERE a IN (1, 2, 3, 4)", False),
    ],
)
def test_short_lists_that_choose_rows_to_change_are_compact(text: str, compact: bool) -> None:
    tokens = tokenize(text)
    assert (LITERAL_LIST in tokens.keys) == compact
