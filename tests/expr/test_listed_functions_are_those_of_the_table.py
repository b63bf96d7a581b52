"""What clients see of the function table: numbers that stay, types that PostgreSQL gives too."""

from collections.abc import Iterator

import psycopg
import pytest

from evertide.expr.functions.procedures import (
    listed_casts,
    operators,
    procedures,
    procedures_by_oid,
)
from evertide.expr.type_names import type_name
from evertide.vocab.sql_type import TEXT

# PostgreSQL has types for these, which are numbers here.
DIFFERENT_RESULTS = {"to_regnamespace", "to_regrole"}


@pytest.fixture(scope="module")
def postgres(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        yield connection


def test_numbers_are_unique_and_far_from_those_of_objects() -> None:
    numbers = [procedure.oid for procedure in procedures()]
    numbers += [operator.oid for operator in operators()]
    numbers += [cast.oid for cast in listed_casts()]
    assert len(set(numbers)) == len(numbers)
    assert all(2**31 <= number < 2**32 for number in numbers)


def test_a_number_follows_from_the_signature_alone() -> None:
    """Stored queries may hold it."""
    (upper,) = [p for p in procedures() if p.name == "upper" and p.arguments == (TEXT.oid,)]
    assert upper.oid == 3_115_498_974
    assert procedures_by_oid()[upper.oid] is upper


def test_every_type_has_a_name() -> None:
    for procedure in procedures():
        oids = [*procedure.arguments, procedure.result, *(oid for _, oid in procedure.columns)]
        assert all(type_name(oid) for oid in oids), procedure
    for operator in operators():
        assert all(type_name(oid) for oid in (operator.right, operator.result)), operator


def test_what_only_the_planner_calls_is_not_listed() -> None:
    names = {procedure.name for procedure in procedures()}
    assert not names & {"mz_at_most_one_row", "mz_key", "pack", "not", "array_get"}
    assert {"upper", "sum", "generate_series", "format", "pg_get_viewdef"} <= names


def test_results_are_those_of_postgresql(postgres: psycopg.Connection) -> None:
    found = postgres.execute(
        "SELECT proname::text, array_to_string(proargtypes::oid[], ','), prorettype::int8,"
        " proretset FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace"
    ).fetchall()
    theirs = {(name, types): (result, is_set) for name, types, result, is_set in found}
    compared = 0
    for procedure in procedures():
        key = procedure.name, ",".join(map(str, procedure.arguments))
        if key in theirs and procedure.name not in DIFFERENT_RESULTS:
            assert theirs[key] == (procedure.result, procedure.returns_set), procedure
            compared += 1
    assert compared > 300


def test_operators_give_what_postgresql_s_give(postgres: psycopg.Connection) -> None:
    found = postgres.execute(
        "SELECT oprname::text, oprleft::int8, oprright::int8, oprresult::int8 FROM pg_operator"
    ).fetchall()
    theirs = {(name, left, right): result for name, left, right, result in found}
    compared = 0
    for operator in operators():
        key = operator.name, operator.left, operator.right
        if key in theirs:
            assert theirs[key] == operator.result, operator
            compared += 1
    assert compared > 200


def test_casts_are_as_free_as_postgresql_s(postgres: psycopg.Connection) -> None:
    found = postgres.execute(
        "SELECT castsource::int8, casttarget::int8, castcontext::text FROM pg_cast"
    ).fetchall()
    theirs = {(source, target): context for source, target, context in found}
    ours = {(cast.source, cast.target): cast.context for cast in listed_casts()}
    shared = theirs.keys() & ours.keys()
    assert len(shared) > 60
    assert {pair: ours[pair] for pair in shared} == {pair: theirs[pair] for pair in shared}
