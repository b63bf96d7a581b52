"""Goal: EXPLAIN names the executor that a SELECT would get, and the reason that decided it."""

import asyncio
import uuid
from typing import Any

import pytest

from evertide.adapter.environment import Environment
from evertide.adapter.explain.names import Names
from evertide.adapter.explain.read import ReadChoices, choices_of
from evertide.adapter.reading.by_replica import SPARK_RECORDS
from evertide.adapter.reading.question import Question
from evertide.adapter.reading.read import plan_read
from evertide.adapter.session import Session
from evertide.adapter.variables import Variables
from evertide.dataflow.description import Import
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.clock import ManualClock
from evertide.vocab.ids import EnvironmentId
from evertide.vocab.timestamp import Timestamp
from tests.sql.database import Database, new_database


class Counts:
    """A storage of which only the number of records is asked, and their bytes."""

    def __init__(self, records: int) -> None:
        self._records = records

    async def records(self, _: Import) -> int:
        return self._records

    async def decoded_bytes(self, _: Import) -> int:
        return 100 * self._records


def environment(records: int) -> Environment:
    missing: Any = None
    storage: Any = Counts(records)
    return Environment(
        environment_id=EnvironmentId(str(uuid.UUID(int=1))),
        catalog=missing,
        oracle=missing,
        storage=storage,
        txns=missing,
        writes=missing,
        compute=missing,
        clock=ManualClock(),
    )


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE TABLE stored (a int, b text);"
        "CREATE VIEW counted AS SELECT a, count(*) AS n FROM stored GROUP BY a;"
        "CREATE INDEX counted_idx ON counted (a);"
        "CREATE INDEX stored_idx ON stored (a, b)"
    )
    return database


def choices(database: Database, text: str, records: int = 1) -> ReadChoices:
    plan = database.plan(text)
    assert isinstance(plan, SelectPlan)
    session = Session(user="materialize", variables=Variables({}))
    env = environment(records)
    question = Question(plan.relation, plan.finishing)
    read = plan_read(question, session, env, database.snapshot, as_of=Timestamp(1))
    return asyncio.run(choices_of(read, env, Names(database.snapshot, session)))


@pytest.mark.parametrize(
    ("text", "records", "kind", "why"),
    [
        ("SELECT b FROM stored", SPARK_RECORDS, "shard", "at most 200000 records"),
        ("SELECT b FROM stored", SPARK_RECORDS + 1, "spark", "200,001 records of about 20 MB"),
        ("SELECT n FROM counted WHERE a = 1", 10**9, "index", "holds the rows"),
        ("SELECT pg_table_is_visible(a::oid) FROM stored", 10**9, "shard", "runs only there"),
        ("SELECT b FROM stored, mz_tables", 10**9, "shard", "system relations"),
        ("SELECT name FROM mz_tables", 1, "system", "only system relations"),
        ("SELECT 1", 1, "constant", "nothing is read"),
    ],
)
def test_the_executor(database: Database, text: str, records: int, kind: str, why: str) -> None:
    executor = choices(database, text, records).executor
    assert executor.kind == kind
    assert why in executor.why


def test_few_records_of_many_bytes_are_for_spark(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for most, kind in ((1_000, "shard"), (999, "spark")):
        monkeypatch.setattr("evertide.adapter.reading.by_replica.SPARK_BYTES", most)
        assert choices(database, "SELECT b FROM stored", 10).executor.kind == kind


@pytest.mark.parametrize(
    ("text", "read", "why"),
    [
        ("SELECT a FROM stored WHERE a = 1 AND b = 'x'", "index lookup", "all key columns"),
        ("SELECT b FROM stored WHERE a = 1", "index lookup (prefix)", "the first key columns"),
        ("SELECT b FROM stored WHERE a > 1", "index range", "bounds a key column"),
        ("SELECT a FROM stored WHERE b = 'x'", "shard read", "first key column of"),
        ("SELECT n FROM counted", "index scan", "stored nowhere else"),
    ],
)
def test_the_source(database: Database, text: str, read: str, why: str) -> None:
    (source,) = choices(database, text).sources
    assert source.read == read
    assert why in source.why
