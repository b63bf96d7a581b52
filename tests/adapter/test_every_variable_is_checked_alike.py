"""Goal: no value comes to a session by ALTER SYSTEM or ALTER ROLE that SET would have refused.

Method: each variable of the table is given each of many texts by all three statements, which must
end alike: the same value is kept, or the same error is told. A kept value is put to use.
"""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from evertide.adapter.connection import Connection, Connections
from evertide.adapter.ddl.ops import ops_for
from evertide.adapter.reading.isolation import freshness_of
from evertide.adapter.reading.result_size import check_result_size
from evertide.adapter.rights.check import CHECKS
from evertide.adapter.session import Login, Session
from evertide.adapter.settings import run_set
from evertide.adapter.shared import Shared
from evertide.adapter.stored_variables import system_ops, unknown_flags
from evertide.adapter.variables import VARIABLES, Scope, Variables
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.grace import GRACE_PERIOD
from evertide.catalog.ops import SetSystemConfigurationOp
from evertide.catalog.privilege_ops import SetRoleVariableOp
from evertide.sql.plan import keys, refresh
from evertide.sql.plan.plans import AlterSystemPlan, SetVariablePlan
from evertide.sql.plan.roles.plans import RolePlan
from evertide.sql.printer.names import quote_ident, quote_literal
from evertide.vocab.errors import SqlError, UndefinedObject
from evertide.vocab.timestamp import Timestamp
from tests.adapter.test_a_right_taken_away_is_gone import _environment, run
from tests.catalog.environment import Environment, commit
from tests.sql.database import Database, new_database

# A value that is kept, or what a client is told: SQLSTATE, message, hint.
Outcome: TypeAlias = str | tuple[str, str, str | None]

VALUES = [
    "", " ", "x", "abc", "null", "on", "NO", "True", "0", "1", "-1", "+3", "+-3", "--3", "99",
    "-15", "²", "٣", "³s", "1²", "9" * 19, "9" * 4_400, "1e3", "1.5", "5s", " 7  min ", "5 S",
    "-5 s", "1 d", "٣ h", "999999999999999999 d", "1MB", "500 kb", "²MB", "12 hours", "11 years",
    "-1 day", "soon", "UTF8", "'utf-8'", "LATIN1", "ISO, MDY", "ISO, DMY", "German", "iso", "UTC",
    "etc/gmt", "Mars", "postgres", "sql_standard", "warning", "DEBUG", "serializable",
    "Strict  Serializable", "bogus", "bounded staleness 5s", "BOUNDED STALENESS 1 min",
    "bounded staleness ²", "bounded staleness", "public", 'a,"b', '"', "''", "quickstart",
    "default", "%s{0}\\n\n", "k" * 10_000,
]  # fmt: skip
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
# Alphabets that come close to what is taken.
NUMBERS = st.from_regex(r"[+\- ]{0,2}[0-9²٣]{1,24} ?(ms|s|min|h|d|kB|MB|TB)?", fullmatch=True)

database = new_database()
database.run("CREATE ROLE joe")


def new_session() -> Session:
    return Session("joe", Variables(), Login(DEFAULT_ROLE_ID, True, False))


def told(error: SqlError) -> Outcome:
    return error.code, error.message, error.hint


def after_set(name: str, value: str) -> Outcome:
    plan = database.plan(f"SET {quote_ident(name)} = {quote_literal(value)}")
    assert isinstance(plan, SetVariablePlan)

    async def current() -> Any:
        return database.snapshot

    env: Any = SimpleNamespace(catalog=SimpleNamespace(current=current))
    session = new_session()
    try:
        asyncio.run(run_set(plan, session, env))
    except SqlError as error:
        return told(error)
    use(session)
    return session.variables.get(name)


def use(session: Session) -> None:
    """All that is made of values whenever a statement runs; none of it may fail."""
    missing: Any = None
    assert session.statement_timeout_ms >= 0
    assert session.idle_in_transaction_ms >= 0
    assert session.search_path is not None
    assert Shared(session, missing, missing).float_digits <= 1
    assert freshness_of(session, Timestamp(7)).least <= 7
    check_result_size([], session)


def after_alter(of: str, name: str, value: str) -> Outcome:
    """What the catalog keeps after ALTER SYSTEM or ALTER ROLE."""
    plan = database.plan(f"ALTER {of} SET {quote_ident(name)} = {quote_literal(value)}")
    assert isinstance(plan, AlterSystemPlan | RolePlan)
    try:
        (op,) = ops_for(plan, DEFAULT_ROLE_ID, Timestamp(0), database.snapshot)
    except SqlError as error:
        return told(error)
    assert isinstance(op, SetSystemConfigurationOp | SetRoleVariableOp)
    assert op.name == name.lower(), "where sessions look for it"
    assert op.value is not None
    return op.value


def check_alike(name: str, value: str) -> None:
    by_set, by_role = after_set(name, value), after_alter("ROLE joe", name, value)
    by_system = after_alter("SYSTEM", name, value)
    assert by_role == by_set
    variable = VARIABLES.get(name.lower())
    if variable is None or variable.scope is not Scope.SYSTEM:
        assert by_system == by_set
        return
    assert by_set[0] == "55P02", "it is not a session's to set"
    if isinstance(by_system, str):
        assert variable.check(by_system) == by_system, "what is kept is canonical"
    else:
        assert by_system[0] == "22023"


@pytest.mark.parametrize("name", sorted(v.name for v in VARIABLES.values()))
def test_each_value_is_kept_by_all_or_refused_by_all(name: str) -> None:
    for value in [*VALUES, VARIABLES[name.lower()].default]:
        check_alike(name, value)


@given(st.sampled_from(sorted(v.name for v in VARIABLES.values())), TEXTS | NUMBERS)
def test_any_value_is_kept_by_all_or_refused_by_all(name: str, value: str) -> None:
    check_alike(name, value)


@pytest.mark.parametrize("name", ["max_tables", "nope", "Nope", "statement timeout"])
def test_what_is_no_variable_is_refused_by_all(name: str) -> None:
    check_alike(name, "1")
    assert after_alter("SYSTEM", name, "1")[0] == "42704"
    for of in ("SYSTEM", "ROLE joe"):
        plan = database.plan(f"ALTER {of} RESET {quote_ident(name)}")
        assert isinstance(plan, AlterSystemPlan | RolePlan)
        with pytest.raises(UndefinedObject):
            ops_for(plan, DEFAULT_ROLE_ID, Timestamp(0), database.snapshot)


def test_flags_of_the_peer_are_kept_in_experimental_mode() -> None:
    ops = system_ops("Enable_Anything", "on", database.snapshot, any_name=True)
    assert ops == [SetSystemConfigurationOp("enable_anything", "on")]
    (notice,) = unknown_flags(ops)
    assert "enable_anything" in notice.message
    known = system_ops("statement_timeout", "5s", database.snapshot, any_name=True)
    assert not unknown_flags(known)
    with pytest.raises(SqlError):
        system_ops("statement_timeout", "soon", database.snapshot, any_name=True)


@pytest.mark.parametrize(
    ("name", "value", "sqlstate"),
    [
        ("transaction_isolation", "bogus", "22023"),
        ("statement_timeout", "²", "22023"),
        ("statement_timeout", "9" * 4_400, "22023"),
        ("statement_timeout", "abc", "22023"),
        ("max_query_result_size", "x", "22023"),
        ("client_encoding", "LATIN1", "22023"),
        ("standard_conforming_strings", "off", "22023"),
        ("extra_float_digits", "+-3", "22023"),
        ("drop_grace_period", "9" * 4_400, "22023"),
        ("enable_rbac_checks", "maybe", "22023"),
        ("server_version", "9", "55P02"),
        ("is_superuser", "on", "55P02"),
    ],
)
def test_the_system_refuses(name: str, value: str, sqlstate: str) -> None:
    assert after_alter("SYSTEM", name, value)[0] == sqlstate


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("extra_float_digits", "+3", "3"),
        ("Extra_Float_Digits", "-015", "-15"),
        ("statement_timeout", " 7  min ", "7  min"),
        ("welcome_message", "NO", "off"),
        ("enable_rbac_checks", "False", "off"),
        ("drop_grace_period", "24 hours", "1 d"),
        ("transaction_isolation", "Strict  Serializable", "strict serializable"),
        ("client_encoding", "'utf-8'", "UTF8"),
    ],
)
def test_the_system_keeps_the_canonical_form(name: str, value: str, kept: str) -> None:
    assert after_alter("SYSTEM", name, value) == kept


def test_what_the_system_looks_up_is_in_the_table() -> None:
    looked_up = {CHECKS, GRACE_PERIOD, keys.ALLOWED, refresh.ALLOWED}
    assert {v.key for v in VARIABLES.values() if v.scope is Scope.SYSTEM} == looked_up


def test_another_spelling_of_case_is_the_same_variable() -> None:
    mine = Database(database.snapshot)
    mine.run('ALTER SYSTEM SET "Cluster" = a; ALTER SYSTEM SET CLUSTER = b')
    assert mine.snapshot.system_configurations == {"cluster": "b"}
    mine.run('ALTER SYSTEM RESET "CLUSTER"')
    assert mine.snapshot.system_configurations == {}


class Site:
    """An environment whose catalog keeps what an earlier release took."""

    def __init__(self, environment: Environment, opening: Connections) -> None:
        self.environment = environment
        self._opening = opening

    async def enter(self, user: str) -> Connection:
        return await self._opening.open_session({"user": user}, internal=user.startswith("mz_"))


OLD: Sequence[tuple[str, str]] = [
    ("statement_timeout", "²"),
    ("client_encoding", "LATIN1"),
    ("Max_Query_Result_Size", "x"),
    ("server_version", "9"),
    ("max_tables", "3"),
    ("welcome_message", "NO"),
]


async def opened() -> Site:
    environment = Environment()
    service = await environment.serve()
    await commit(service, *(SetSystemConfigurationOp(name, value) for name, value in OLD))
    return Site(environment, Connections(_environment(environment, service), lambda _: None))


@pytest.mark.parametrize("user", ["materialize", "mz_system"])
async def test_a_session_begins_without_what_was_stored_unchecked(user: str) -> None:
    site = await opened()
    with capture_logs() as logs:
        session = await site.enter(user)
        await site.enter(user)
    notices = session.take_events().notices
    assert {(notice.severity, notice.sqlstate, notice.hint) for notice in notices} == {
        ("WARNING", "22023", "ALTER SYSTEM RESET statement_timeout removes it."),
        ("WARNING", "22023", "ALTER SYSTEM RESET client_encoding removes it."),
        ("WARNING", "22023", 'ALTER SYSTEM RESET "Max_Query_Result_Size" removes it.'),
        ("WARNING", "55P02", "ALTER SYSTEM RESET server_version removes it."),
    }
    warned = [line["event"] for line in logs if line["log_level"] == "warning"]
    assert sorted(warned) == sorted(notice.message for notice in notices), "once each"
    assert 'stored value ignored: invalid value for parameter "statement_timeout": "²"' in warned
    assert session.parameters["client_encoding"] == "UTF8"
    assert session.parameters["server_version"] == VARIABLES["server_version"].default
    variables = session._session.variables
    assert variables.get("welcome_message") == "off", "what a variable takes counts"
    assert session._session.statement_timeout_ms == 60_000
    await site.environment.close()


async def test_what_was_stored_unchecked_can_be_reset() -> None:
    site = await opened()
    owner = await site.enter("materialize")
    await run(owner, *(f"ALTER SYSTEM RESET {quote_ident(name)}" for name, _ in OLD))
    owner = await site.enter("materialize")
    assert owner.take_events().notices == []
    assert owner._session.variables.get("welcome_message") == "on"
    await site.environment.close()


async def test_a_role_is_let_in_whatever_was_stored_for_it() -> None:
    site = await opened()
    owner = await site.enter("materialize")
    await run(owner, 'CREATE ROLE "Joe"')
    service = await site.environment.join()
    joe = (await service.current()).role_named("Joe")
    assert joe is not None
    for name, value in (("statement_timeout", "²"), ("gone", "1")):
        await commit(service, SetRoleVariableOp(role_id=joe.role_id, name=name, value=value))
    session = await site.enter("Joe")
    hints = [notice.hint for notice in session.take_events().notices]
    assert 'ALTER ROLE "Joe" RESET statement_timeout removes it.' in hints
    assert not any("gone" in str(hint) for hint in hints), "nobody looks at it"
    await run(session, 'ALTER ROLE "Joe" RESET gone', 'ALTER ROLE "Joe" RESET ALL')
    found = (await service.current()).role_named("Joe")
    assert found is not None
    assert found.variables == ()
    await site.environment.close()
