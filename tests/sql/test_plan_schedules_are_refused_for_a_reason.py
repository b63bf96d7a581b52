"""SCHEDULE: MANUAL is accepted wherever it is the case; of ON REFRESH it is told what is wrong."""

import pytest

from evertide.sql.plan.clusters.plans import ChangePlan, CreateClusterPlan
from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run("CREATE CLUSTER m SIZE '1'; CREATE CLUSTER u REPLICAS (r1 (SIZE '1'))")
    return database


MANUAL = [
    ("CREATE CLUSTER c (SIZE '1', SCHEDULE = MANUAL)", CreateClusterPlan),
    ("CREATE CLUSTER c (SCHEDULE = MANUAL, REPLICAS (r1 (SIZE '1')))", CreateClusterPlan),
    ("ALTER CLUSTER m SET (SCHEDULE = MANUAL)", ChangePlan),
    ("ALTER CLUSTER m SET (MANAGED = false, SCHEDULE = MANUAL)", ChangePlan),
    ("ALTER CLUSTER u SET (SCHEDULE = MANUAL)", ChangePlan),
]


@pytest.mark.parametrize(("sql", "kind"), MANUAL)
def test_manual_is_how_it_is(sql: str, kind: type, database: Database) -> None:
    assert isinstance(database.plan(sql), kind)


_UNMANAGED = "cluster schedules other than MANUAL are not supported for unmanaged clusters"
_FACTOR = "REPLICATION FACTOR cannot be given together with any SCHEDULE other than MANUAL"
REFUSED = [
    ("CREATE CLUSTER c (SIZE '1', {})", "ON REFRESH", "0A000", "SCHEDULE = ON REFRESH is not"),
    ("CREATE CLUSTER c (SIZE '1', REPLICATION FACTOR 1, {})", "ON REFRESH", "22023", _FACTOR),
    ("CREATE CLUSTER c ({}, REPLICAS (r1 (SIZE '1')))", "ON REFRESH", "0A000", _UNMANAGED),
    ("ALTER CLUSTER m SET ({})", "ON REFRESH", "0A000", "SCHEDULE = ON REFRESH is not"),
    ("ALTER CLUSTER m SET (REPLICATION FACTOR 1, {})", "ON REFRESH", "22023", _FACTOR),
    ("ALTER CLUSTER m SET (MANAGED = false, {})", "ON REFRESH", "0A000", _UNMANAGED),
    ("ALTER CLUSTER u SET ({})", "ON REFRESH", "0A000", _UNMANAGED),
]
ESTIMATES = [
    ("0", "42601", 'Expected literal string, found number "0"'),
    ("'-1 hour'", "22023", "HYDRATION TIME ESTIMATE must be non-negative; got: -01:00:00"),
    ("'1 month'", "22023", "HYDRATION TIME ESTIMATE must not involve units larger than days"),
    ("'1 aaaa'", "22007", "invalid input syntax for type interval"),
    ("'1 hour'", "0A000", "SCHEDULE = ON REFRESH is not supported"),
]
WITH_ESTIMATES = [
    ("CREATE CLUSTER c (SIZE '1', {})", f"ON REFRESH (HYDRATION TIME ESTIMATE = {text})", *why)
    for text, *why in ESTIMATES
]


@pytest.mark.parametrize(("sql", "value", "code", "message"), [*REFUSED, *WITH_ESTIMATES])
def test_on_refresh(sql: str, value: str, code: str, message: str, database: Database) -> None:
    with pytest.raises(SqlError) as refused:
        database.plan(sql.format(f"SCHEDULE = {value}"))
    assert refused.value.code == code
    assert message in refused.value.message
