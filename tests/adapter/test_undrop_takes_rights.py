"""Goal: only who owned what was dropped brings it back, where he may still create it; and what
others get back with it, they may still have there.

Method: statements are planned and checked against a catalog in which rights come and go.
"""

from dataclasses import replace

import pytest

from evertide.adapter.rights.check import authorize
from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.entry import Planned, plan_statement
from evertide.sql.plan.undrop.plans import UndropPlan
from evertide.vocab.errors import InsufficientPrivilege
from evertide.vocab.ids import RoleId
from tests.sql.database import Database, new_database

OBJECTS = """
    CREATE ROLE joe; CREATE ROLE ann; CREATE SCHEMA s;
    CREATE TABLE s.t (a int);
    CREATE MATERIALIZED VIEW s.m AS SELECT a FROM s.t;
    ALTER TABLE s.t OWNER TO joe; ALTER MATERIALIZED VIEW s.m OWNER TO ann;
    GRANT USAGE, CREATE ON SCHEMA s TO joe, ann;
    GRANT CREATE ON CLUSTER "default" TO ann;
    DROP TABLE s.t CASCADE;
"""


@pytest.fixture
def database() -> Database:
    database = new_database()
    database.run(OBJECTS)
    return database


def role(database: Database, name: str) -> RoleId:
    found = database.snapshot.role_named(name)
    assert found is not None
    return found.role_id


def planned(database: Database, name: str, sql: str = "UNDROP TABLE s.t") -> Planned:
    context = replace(database.context, role_id=role(database, name), user=name)
    return plan_statement(parse_statement(sql), context)


def check(database: Database, name: str, sql: str = "UNDROP TABLE s.t") -> None:
    who = role(database, name)
    authorize(planned(database, name, sql), who, "default", database.snapshot)


def refused(database: Database, name: str, message: str, sql: str = "UNDROP TABLE s.t") -> None:
    with pytest.raises(InsufficientPrivilege) as raised:
        check(database, name, sql)
    assert message in raised.value.message


def test_its_owner_may_and_nobody_else(database: Database) -> None:
    check(database, "joe")
    check(database, "materialize")
    refused(database, "ann", "must be owner of TABLE materialize.s.t")
    database.run("GRANT joe TO ann")
    check(database, "ann")


def test_he_must_still_be_allowed_to_create_it(database: Database) -> None:
    database.run("REVOKE CREATE ON SCHEMA s FROM joe")
    refused(database, "joe", 'permission denied for SCHEMA "materialize.s"')
    check(database, "materialize")


def test_what_comes_back_to_others_must_be_allowed_to_them(database: Database) -> None:
    database.run('REVOKE CREATE ON CLUSTER "default" FROM ann')
    refused(database, "joe", 'permission denied for CLUSTER "default"')
    check(database, "joe", "UNDROP TABLE s.t RESTRICT")
    check(database, "materialize")


def test_what_belonged_to_nobody_left_takes_a_superuser(database: Database) -> None:
    database.run("REVOKE ALL ON SCHEMA s FROM joe; DROP ROLE joe")
    refused(database, "ann", "permission denied to undrop what belonged to a role that is gone")
    plan = planned(database, "materialize").plan
    assert isinstance(plan, UndropPlan)
    owners = {one.name: one.owner for one in plan.items}
    assert owners == {"t": role(database, "materialize"), "m": role(database, "ann")}


def without_ann(database: Database) -> None:
    database.run("REVOKE ALL ON SCHEMA s FROM ann")
    database.run('REVOKE CREATE ON CLUSTER "default" FROM ann; DROP ROLE ann')


def test_what_others_owned_that_are_gone_is_not_handed_to_who_is_no_superuser(
    database: Database,
) -> None:
    """It may show what only they might read."""
    database.run("UNDROP TABLE s.t; CREATE INDEX mi ON s.m (a); CREATE VIEW s.w AS TABLE s.m")
    database.run("ALTER VIEW s.w OWNER TO joe; DROP TABLE s.t CASCADE")
    without_ann(database)
    plan = planned(database, "joe").plan
    assert isinstance(plan, UndropPlan)
    assert {one.name: one.owner for one in plan.items} == {"t": role(database, "joe")}
    check(database, "joe")
    m, gone = 'materialized view "m"', "it belonged to a role that is gone"
    assert sorted((notice.message, notice.hint) for notice in plan.notices) == [
        (f'index "mi" stays dropped: {gone}', "Superusers can bring it back."),
        (f"{m} stays dropped: {gone}", "Superusers can bring it back."),
        (
            f'view "w" stays dropped: it depends on {m}, which is dropped, too',
            'UNDROP MATERIALIZED VIEW "m" brings back what was dropped along with it.',
        ),
    ]


def test_what_others_owned_that_are_gone_goes_to_a_superuser(database: Database) -> None:
    without_ann(database)
    plan = planned(database, "materialize").plan
    assert isinstance(plan, UndropPlan)
    owners = {one.name: one.owner for one in plan.items}
    assert owners == {"t": role(database, "joe"), "m": role(database, "materialize")}
    assert plan.notices == ()
