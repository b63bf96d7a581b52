"""Values that are fixed when a statement starts: who, where and when."""

import time
import uuid

from evertide.adapter.environment import Environment
from evertide.adapter.rights.identity import is_superuser
from evertide.adapter.session import Session
from evertide.adapter.variables import SERVER_VERSION, VERSION, VERSION_NUMBER
from evertide.catalog.snapshot import Snapshot
from evertide.expr.scalar import Literal, Parameter, Scalar, SessionCall
from evertide.vocab.datum import MICROS_PER_DAY, Interval
from evertide.vocab.sql_type import (
    BOOL,
    DATE,
    INT4,
    INTERVAL,
    MZ_TIMESTAMP,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    array_of,
)
from evertide.vocab.timestamp import Timestamp

# Schemas that are looked through before the path, unless it says when.
_ALWAYS_THERE = ("mz_catalog", "pg_catalog")
# When this adapter was loaded, which is when it started.
_STARTED_US = time.time_ns() // 1_000


def session_bindings(
    session: Session, env: Environment, snapshot: Snapshot, as_of: Timestamp
) -> dict[Parameter | SessionCall, Scalar]:
    """What stands for each session call. All of a statement's calls of now() agree."""
    literals = {**_literals(session, env, as_of), **_schemas(session, snapshot)}
    superuser = is_superuser(session.role_id, snapshot)
    literals["mz_is_superuser"] = Literal(superuser, BOOL)
    return {SessionCall(name, literal.type): literal for name, literal in literals.items()}


def _literals(session: Session, env: Environment, as_of: Timestamp) -> dict[str, Literal]:
    now_us = env.clock.now_ms() * 1_000
    texts = {
        "current_user": session.user,
        "session_user": session.user,
        "current_role": session.user,
        "user": session.user,
        "current_database": session.database,
        "current_catalog": session.database,
        "version": f"PostgreSQL {SERVER_VERSION} on evertide {VERSION}",
        "mz_version": f"{VERSION} (evertide)",
        "mz_environment_id": env.environment_id,
    }
    literals = {name: Literal(value, TEXT) for name, value in texts.items()}
    for name in ("now", "current_timestamp", "transaction_timestamp", "statement_timestamp"):
        literals[name] = Literal(now_us, TIMESTAMPTZ)
    literals["localtimestamp"] = Literal(now_us, TIMESTAMP)
    literals["current_date"] = Literal(now_us // MICROS_PER_DAY, DATE)
    literals["mz_now"] = Literal(as_of, MZ_TIMESTAMP)
    literals["localtime"] = Literal(now_us % MICROS_PER_DAY, TIME)
    literals["pg_postmaster_start_time"] = Literal(_STARTED_US, TIMESTAMPTZ)
    literals["mz_uptime"] = Literal(Interval(0, 0, now_us - _STARTED_US), INTERVAL)
    literals["mz_version_num"] = Literal(VERSION_NUMBER, INT4)
    installation = uuid.UUID(env.environment_id).bytes
    literals["mz_legacy_installation_id"] = Literal(installation, UUID)
    literals["pg_backend_pid"] = Literal(session.connection_id, INT4)
    return literals


def _schemas(session: Session, snapshot: Snapshot) -> dict[str, Literal]:
    """Where names are looked for: those schemas of the path that there are."""
    database = snapshot.database_named(session.database)
    owners = (None,) if database is None else (database.database_id, None)
    there = tuple(
        name
        for name in session.search_path
        if any(snapshot.schema_named(owner, name) is not None for owner in owners)
    )
    implicit = tuple(name for name in _ALWAYS_THERE if name not in there)
    texts = array_of(TEXT)
    return {
        "current_schema": Literal(next(iter(there), None), TEXT),
        "current_schemas(false)": Literal(there, texts),
        "current_schemas(true)": Literal((*implicit, *there), texts),
    }
