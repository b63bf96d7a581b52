"""Table functions side by side are one function, on whatever machine it is found again."""

import pytest

from evertide.expr.codec import decode_relation, encode_relation
from evertide.expr.flat_rows import compile_flat_rows
from evertide.expr.functions.row import TableFunction
from evertide.expr.functions.rows import find_table_functions, table_function_by_signature
from evertide.expr.functions.rows_in_step import in_step
from evertide.expr.functions.table import by_signature
from evertide.expr.relation import Constant, FlatMap
from evertide.expr.scalar import ColumnRef, Literal
from evertide.vocab.datum import Row
from evertide.vocab.sql_type import INT4, TEXT, array_of

SERIES = table_function_by_signature("generate_series(integer,integer)")
WORDS = table_function_by_signature("unnest(text[])")
PAIRS = table_function_by_signature("_pg_expandarray(text[])")
ARRAY = array_of(TEXT)


def rows_of(function: TableFunction, row: Row, *, ordinality: bool = False) -> list[Row]:
    arguments = [ColumnRef(i, sql_type) for i, sql_type in enumerate(function.arguments)]
    return compile_flat_rows(function, arguments, ordinality=ordinality)(row)


def test_the_shorter_is_filled_up_with_nulls() -> None:
    both = in_step([SERIES, WORDS])
    assert rows_of(both, (1, 3, ("a",))) == [(1, "a"), (2, None), (3, None)]
    assert rows_of(both, (1, 1, ("a", None, "c"))) == [(1, "a"), (None, None), (None, "c")]


def test_a_null_argument_ends_its_own_function_only() -> None:
    both = in_step([SERIES, PAIRS])
    assert rows_of(both, (1, None, ("a", "b"))) == [(None, "a", 1), (None, "b", 2)]
    assert rows_of(both, (1, None, None)) == []


def test_rows_are_numbered_together() -> None:
    both = in_step([SERIES, WORDS])
    assert rows_of(both, (5, 6, ("x",)), ordinality=True) == [(5, "x", 1), (6, None, 2)]


def test_one_function_is_itself() -> None:
    assert in_step([SERIES]) is SERIES


@pytest.mark.parametrize("parts", [[SERIES, WORDS], [PAIRS, PAIRS, SERIES], [WORDS]])
def test_it_is_found_again_by_its_signature(parts: list[TableFunction]) -> None:
    made = in_step(parts)
    found = table_function_by_signature(made.signature)
    assert (found.signature, found.arguments, found.columns) == (
        made.signature, made.arguments, made.columns,
    )  # fmt: skip
    assert found.strict == made.strict


def test_it_travels_in_a_tree() -> None:
    one_row = Constant((((), 1),), ())
    given = (Literal(1, INT4), Literal(2, INT4), Literal(("a",), ARRAY))
    node = FlatMap(one_row, in_step([SERIES, WORDS]), given, True)
    read = decode_relation(encode_relation(node), by_signature)
    assert isinstance(read, FlatMap)
    rows = compile_flat_rows(read.function, read.arguments, ordinality=read.ordinality)
    assert rows(()) == [(1, "a", 1), (2, None, 2)]
    assert read.types == node.types


@pytest.mark.parametrize("name", ["string_to_table"])
def test_only_functions_that_say_so_look_at_nulls(name: str) -> None:
    assert not any(row.strict for row in find_table_functions(name))
    (split, _) = find_table_functions(name)
    assert rows_of(split, ("ab", None)) == [("a",), ("b",)]
    assert rows_of(split, (None, ",")) == []
