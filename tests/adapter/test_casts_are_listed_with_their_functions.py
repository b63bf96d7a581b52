"""pg_cast names for each cast the function that makes it, which is called as the target is."""

from collections.abc import Iterator

import psycopg
import pytest

from evertide.adapter.lookups.listed_functions import listed_functions
from evertide.catalog.builtin.postgres import pg_desc
from evertide.expr.functions.procedures import Procedure, procedures_by_oid

# oid, the types that name objects by one, and varchar: PostgreSQL's casts to them are functions
# of other types with the same bytes.
SAME_BYTES = {24, 26, 1043, 2205, 2206}


@pytest.fixture(scope="module")
def postgres(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        yield connection


def cast_functions() -> dict[tuple[int, int], Procedure]:
    """By source and target."""
    source, target, function = map(
        pg_desc("pg_cast").names.index, ("castsource", "casttarget", "castfunc")
    )
    return {
        (row[source], row[target]): procedures_by_oid()[row[function]]  # type: ignore[index, misc]
        for row in listed_functions("pg_cast")
    }


def test_each_function_takes_the_source_and_gives_the_target() -> None:
    for (source, target), function in cast_functions().items():
        assert (function.kind, function.arguments, function.result) == ("f", (source,), target)


def test_names_are_those_of_postgresql(postgres: psycopg.Connection) -> None:
    found = postgres.execute(
        "SELECT castsource::int8, casttarget::int8, proname::text FROM pg_cast"
        " JOIN pg_proc ON pg_proc.oid = castfunc"
    ).fetchall()
    theirs = {(source, target): name for source, target, name in found}
    ours = {pair: function.name for pair, function in cast_functions().items()}
    shared = {pair for pair in theirs.keys() & ours.keys() if pair[1] not in SAME_BYTES}
    assert len(shared) > 40
    assert {pair: ours[pair] for pair in shared} == {pair: theirs[pair] for pair in shared}
