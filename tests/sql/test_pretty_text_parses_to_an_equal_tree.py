"""What to_sql prints means what was parsed: the catalog stores printed statements."""

from random import Random
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evertide.sql.parser import literal_rows
from evertide.sql.parser.entry import parse_data_type, parse_expression, parse_statement
from evertide.sql.pretty import to_sql
from tests.sql import parse_statement_trees, parse_trees

_randoms = st.randoms(use_true_random=False)
_many = settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@_many
@given(_randoms)
def test_any_expression_survives_printing_and_parsing(rng: Random) -> None:
    tree = parse_trees.expression(rng, 4)
    assert parse_expression(to_sql(tree)) == tree


@_many
@given(_randoms)
def test_any_type_survives_printing_and_parsing(rng: Random) -> None:
    tree = parse_trees.data_type(rng, 4)
    assert parse_data_type(to_sql(tree)) == tree


@_many
@given(_randoms)
def test_any_definition_survives_printing_and_parsing(rng: Random) -> None:
    tree = parse_statement_trees.definition(rng)
    assert parse_statement(to_sql(tree)) == tree


@_many
@given(_randoms)
def test_any_command_survives_printing_and_parsing(rng: Random) -> None:
    """Constants that a statement writes are read without a node for each; not here, since those
    are what is compared."""
    tree = parse_statement_trees.command(rng)
    with (
        patch.object(literal_rows, "CHANGED_ROWS", literal_rows.BULK_ROWS),
        patch.object(literal_rows, "CHANGED_ITEMS", literal_rows.BULK_ITEMS),
    ):
        assert parse_statement(to_sql(tree)) == tree
