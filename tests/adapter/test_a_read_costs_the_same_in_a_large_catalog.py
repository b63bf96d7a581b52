"""What the planning of one SELECT does, does not grow with what there is.

Counted in lines that run, not in seconds: the count is the same on every machine.
"""

import uuid
from functools import partial
from typing import Any

import pytest

from evertide.adapter.environment import Environment
from evertide.adapter.reading.leaves import IndexLeaf
from evertide.adapter.reading.question import Question, Read
from evertide.adapter.reading.read import plan_read
from evertide.adapter.session import Session
from evertide.adapter.variables import Variables
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.clock import ManualClock
from evertide.vocab.ids import EnvironmentId
from evertide.vocab.timestamp import Timestamp
from tests.catalog.test_a_change_costs_the_same_in_a_large_catalog import steps
from tests.sql.database import Database, new_database

FEW, MANY = 5, 300


def grown(count: int) -> Database:
    """Tables, each with a view on it and an index on the view, all in the session's cluster."""
    database = new_database()
    for number in range(count):
        database.run(
            f"CREATE TABLE t{number} (a int, b int);"
            f"CREATE VIEW v{number} AS SELECT a, sum(b) AS b FROM t{number} GROUP BY a;"
            f"CREATE INDEX i{number} ON v{number} (a)"
        )
    return database


@pytest.fixture(scope="module")
def databases() -> tuple[Database, Database]:
    return grown(FEW), grown(MANY)


def environment() -> Environment:
    missing: Any = None
    return Environment(
        environment_id=EnvironmentId(str(uuid.UUID(int=1))),
        catalog=missing,
        oracle=missing,
        storage=missing,
        txns=missing,
        writes=missing,
        compute=missing,
        clock=ManualClock(),
    )


def read(database: Database, text: str) -> Read:
    plan = database.plan(text)
    assert isinstance(plan, SelectPlan)
    question = Question(plan.relation, plan.finishing)
    session = Session(user="materialize", variables=Variables({}))
    return plan_read(question, session, environment(), database.snapshot, as_of=Timestamp(1))


@pytest.mark.parametrize("text", ["SELECT 1", "SELECT b FROM t1", "SELECT b FROM v1 WHERE a = 2"])
def test_a_read_does_as_much_among_many_indexes_as_among_few(
    text: str, databases: tuple[Database, Database]
) -> None:
    for database in databases:
        read(database, text)  # what is kept between reads is there from the second on
    few, many = (steps(partial(read, database, text)) for database in databases)
    assert many <= 1.2 * few, (few, many)


def test_the_index_of_the_view_that_is_read_is_found_among_many(
    databases: tuple[Database, Database],
) -> None:
    (leaf,) = read(databases[1], "SELECT b FROM v150 WHERE a = 2").leaves.values()
    assert isinstance(leaf, IndexLeaf)
    assert leaf.name == "i150"
