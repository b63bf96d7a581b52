"""Operators group as they do in PostgreSQL, so expressions mean what their writers think."""

import pytest

from evertide.sql.parser.entry import parse_expression
from evertide.sql.pretty import to_sql
from evertide.sql.syntax.expression import And, Or
from evertide.vocab.errors import SqlSyntaxError


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a OR b AND c", "a OR (b AND c)"),
        ("NOT a AND b", "(NOT a) AND b"),
        ("NOT a = b", "NOT (a = b)"),
        ("NOT a IS NULL", "NOT (a IS NULL)"),
        ("a = NOT b", "a = (NOT b)"),
        ("a = b IS NULL", "(a = b) IS NULL"),
        ("a < b + c", "a < (b + c)"),
        ("a = b LIKE c", "a = (b LIKE c)"),
        ("a LIKE b || c", "a LIKE (b || c)"),
        ("a BETWEEN b AND c AND d", "(a BETWEEN b AND c) AND d"),
        ("a BETWEEN b + 1 AND c || d", "a BETWEEN (b + 1) AND (c || d)"),
        ("a IN (1) = b", "(a IN (1)) = b"),
        ("a || b + c", "a || (b + c)"),
        ("a -> b ->> c", "(a -> b) ->> c"),
        ("a + b -> c", "(a + b) -> c"),
        ("a - b - c", "(a - b) - c"),
        ("a - b * c / d % e", "a - (((b * c) / d) % e)"),
        ("a ^ b ^ c", "(a ^ b) ^ c"),
        ("a * b ^ c", "a * (b ^ c)"),
        ("-a ^ b", "(-a) ^ b"),
        ("-a * b", "(-a) * b"),
        ("- - a", "-(-a)"),
        ("-a::int", "-(a::int)"),
        ("a::int::text", "(a::int)::text"),
        ("a + b::int", "a + (b::int)"),
        ("-a[1]", "-(a[1])"),
        ("~ a + b", "~ (a + b)"),
        ("~ a || b", "(~ a) || b"),
        ("a OPERATOR(pg_catalog.*) b + c", "a OPERATOR(pg_catalog.*) (b + c)"),
        ("a AT TIME ZONE b || c", "(a AT TIME ZONE b) || c"),
        ("a + b AT TIME ZONE c", "a + (b AT TIME ZONE c)"),
        ("a COLLATE x || b", "(a COLLATE x) || b"),
        ("a IS DISTINCT FROM b = c", "a IS DISTINCT FROM (b = c)"),
        ("a = ANY (b) AND c", "(a = ANY (b)) AND c"),
        ("a IS NULL IS NULL", "(a IS NULL) IS NULL"),
        ("a NOT LIKE b AND c", "(a NOT LIKE b) AND c"),
        ("(a)", "a"),
        ("((a) + (b))", "a + b"),
    ],
)
def test_operators_group_like_this(written: str, meant: str) -> None:
    assert parse_expression(written) == parse_expression(meant)


@pytest.mark.parametrize("text", ["a < b < c", "a = b <> c", "a LIKE b LIKE c"])
def test_comparisons_do_not_chain(text: str) -> None:
    with pytest.raises(SqlSyntaxError, match="Expected end of expression"):
        parse_expression(text)


def test_chains_of_and_and_or_are_one_node_each() -> None:
    tree = parse_expression("a AND b AND c OR d OR e AND f")
    assert isinstance(tree, Or)
    assert isinstance(tree.terms[0], And)
    assert len(tree.terms) == 3


def test_parentheses_around_a_part_of_a_chain_are_kept() -> None:
    assert parse_expression("a AND (b AND c)") != parse_expression("a AND b AND c")


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("((a + b))", "a + b"),
        ("(a * b) + c", "a * b + c"),
        ("a * (b + c)", "a * (b + c)"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a OR b) AND c", "(a OR b) AND c"),
        ("a OR (b AND c)", "a OR b AND c"),
        ("NOT (a AND b)", "NOT (a AND b)"),
        ("- (-a)", "- -a"),
        ("(-1)::int", "(-1)::int"),
        ("(a::int)[1]", "(a::int)[1]"),
        ("(a).b", "(a).b"),
        ("(a = b) = c", "(a = b) = c"),
        ("CAST(a + b AS int)", "(a + b)::int"),
    ],
)
def test_parentheses_are_printed_exactly_where_needed(written: str, printed: str) -> None:
    assert to_sql(parse_expression(written)) == printed
