"""No text exhausts the interpreter's stack or memory: what is too deep or too long is refused.

Every limit is tried with 200 frames already in use, as below a server's event loop, and with what
other rooms do to a tree: compare, hash and print it.
"""

from collections.abc import Callable
from typing import TypeVar

import pytest

from evertide.sql.parser.entry import parse_statement, parse_statements
from evertide.sql.pretty import to_sql
from evertide.sql.syntax.command import InsertStatement
from evertide.sql.syntax.statement import Statement
from evertide.vocab.errors import StatementTooComplex

T = TypeVar("T")

NESTED: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: f"SELECT {'(' * n}1{')' * n}",
    "minus": lambda n: f"SELECT {'- ' * n}1",
    "prefix operator": lambda n: f"SELECT {'~ ' * n}1",
    "not": lambda n: f"SELECT {'NOT ' * n}a",
    "case": lambda n: f"SELECT {'CASE WHEN ' * n}a{' THEN 1 END' * n}",
    "call": lambda n: f"SELECT {'f(' * n}1{')' * n}",
    "filter": lambda n: f"SELECT {'f() FILTER (WHERE ' * n}a{')' * n}",
    "window": lambda n: f"SELECT {'f() OVER (ORDER BY ' * n}a{')' * n}",
    "array": lambda n: f"SELECT {'ARRAY[' * n}1{']' * n}",
    "brackets": lambda n: f"SELECT ARRAY{'[' * n}1{']' * n}",
    "map": lambda n: f"SELECT {'MAP[1 => ' * n}1{']' * n}",
    "row": lambda n: f"SELECT {'ROW(' * n}1{')' * n}",
    "right operand": lambda n: f"SELECT {'1 + (' * n}1{')' * n}",
    "and in or": lambda n: f"SELECT {'a OR b AND (' * n}c{')' * n}",
    "between": lambda n: f"SELECT {'a BETWEEN (' * n}1{') AND 2' * n}",
    "scalar subquery": lambda n: f"SELECT {'(SELECT ' * n}1{')' * n}",
    "exists": lambda n: f"SELECT {'EXISTS (SELECT ' * n}1{')' * n}",
    "in": lambda n: f"SELECT {'a IN (SELECT ' * n}1{')' * n}",
    "from": lambda n: f"SELECT * FROM {'(SELECT * FROM ' * n}t{') x' * n}",
    "function in from": lambda n: f"SELECT * FROM {'f(ARRAY(SELECT * FROM ' * n}t{'))' * n}",
    "join": lambda n: f"SELECT * FROM {'(' * n}a{' JOIN b ON c)' * n}",
    "with": lambda n: f"{'WITH a AS (' * n}SELECT 1{') SELECT 1' * n}",
    "query": lambda n: f"{'(' * n}SELECT 1{' LIMIT 1)' * n}",
    "map type": lambda n: f"SELECT a::{'map[text => ' * n}int{']' * n}",
    "list type": lambda n: f"SELECT a::int{' list' * n}",
    "option": lambda n: f"CREATE CLUSTER c SIZE {'(' * n}1{')' * n}",
}
LEANING: dict[str, Callable[[int], str]] = {
    "plus": lambda n: f"SELECT 1{' + 1' * n}",
    "concatenation": lambda n: f"SELECT a{' || a' * n}",
    "cast": lambda n: f"SELECT a{'::int' * n}",
    "subscript": lambda n: f"SELECT a{'[1]' * n}",
    "field": lambda n: f"SELECT (a){'.b' * n}",
    "is null": lambda n: f"SELECT a{' IS NULL' * n}",
    "in": lambda n: f"SELECT a{' IN (1)' * n}",
    "at time zone": lambda n: f"SELECT a{' AT TIME ZONE b' * n}",
    "join": lambda n: f"SELECT * FROM a{' CROSS JOIN b' * n}",
    "mixed unions": lambda n: f"SELECT 1{' UNION ALL SELECT 1 UNION SELECT 1' * n}",
    "plus in parentheses": lambda n: f"SELECT {'(' * 50}1{' + 1' * n}{(' + 1' * n + ')') * 50}",
}
FLAT: dict[str, Callable[[int], str]] = {
    "and": lambda n: f"SELECT a{' AND a' * n}",
    "or": lambda n: f"SELECT a{' OR a' * n}",
    "union all": lambda n: f"SELECT 1{' UNION ALL SELECT 1' * n}",
    "except": lambda n: f"SELECT 1{' EXCEPT SELECT 1' * n}",
    "items": lambda n: f"SELECT 1{', a + 1' * n}",
    "in list": lambda n: f"SELECT a IN (1{', 1' * n})",
    "array items": lambda n: f"SELECT ARRAY[[1]{', [1]' * n}]",
    "from": lambda n: f"SELECT * FROM a{', b JOIN c USING (d)' * n}",
    "statements": lambda n: "; ".join(["SELECT 1"] * n),
}


def below(frames: int, work: Callable[[], T]) -> T:
    return work() if frames == 0 else below(frames - 1, work)


def largest(make: Callable[[int], str]) -> int:
    """How far a shape may grow before it is refused."""
    for size in range(1, 1_000):
        try:
            parse_statements(make(size))
        except StatementTooComplex:
            return size - 1
    raise AssertionError("there is no limit")


def exercise(text: str) -> None:
    tree: Statement = parse_statement(text)
    again = parse_statement(to_sql(tree))
    assert again == tree
    assert hash(again) == hash(tree)
    assert repr(tree)


@pytest.mark.parametrize("make", [*NESTED.values(), *LEANING.values()], ids=[*NESTED, *LEANING])
def test_ten_thousand_levels_are_refused(make: Callable[[int], str]) -> None:
    with pytest.raises(StatementTooComplex) as caught:
        below(200, lambda: parse_statements(make(10_000)))
    assert caught.value.position is not None


@pytest.mark.parametrize("make", NESTED.values(), ids=NESTED)
def test_the_deepest_nesting_that_is_read_can_be_worked_with(make: Callable[[int], str]) -> None:
    size = largest(make)
    assert size >= 20
    below(200, lambda: exercise(make(size)))


@pytest.mark.parametrize("make", LEANING.values(), ids=LEANING)
def test_the_longest_chain_that_is_read_can_be_worked_with(make: Callable[[int], str]) -> None:
    size = largest(make)
    below(100, lambda: exercise(make(size)))


@pytest.mark.parametrize("make", FLAT.values(), ids=FLAT)
def test_flat_lists_of_ten_thousand_are_read(make: Callable[[int], str]) -> None:
    statements = parse_statements(make(10_000))
    assert parse_statements("; ".join(map(to_sql, statements))) == statements


def test_ten_megabytes_of_constants_are_read() -> None:
    rows = ", ".join(f"({number}, 'name {number}', {number}.5)" for number in range(330_000))
    assert len(rows) > 10_000_000
    statement = parse_statement(f"INSERT INTO t VALUES {rows}")
    assert isinstance(statement, InsertStatement)


def test_a_text_of_tokens_without_end_is_refused() -> None:
    with pytest.raises(StatementTooComplex, match="more than 2000000"):
        parse_statements("SELECT 1" + ", 1" * 1_100_000)
