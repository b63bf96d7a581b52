"""Connections to PostgreSQL, set up the way a store needs them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import psycopg
import structlog
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from evertide.persist.faults import Corrupt, StoreUnreachable
from evertide.persist.store.attempts import NotReached
from evertide.persist.store.postgres_schema import FORMAT, FUNCTIONS, STATEMENTS, TABLES

# How long the server works on a statement before it gives up by itself.
STATEMENT_TIMEOUT_S: Final = 10
_DEFAULT_SCHEMA: Final = "evertide"

# Unless the URL says otherwise. A peer that vanished without a word is noticed in half a minute.
_DEFAULTS: Final[Mapping[str, str | int]] = {
    "application_name": "evertide",
    "client_encoding": "utf8",
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    # A standby would answer, and refuse every change.
    "target_session_attrs": "read-write",
}
# READ COMMITTED is what makes the check of the epoch right, so no default of the database may
# change it. Every statement looks up rows by their key, whatever the statistics say at the moment
# it is planned. A synchronous_commit stricter than `on` stays as the server has it.
_SETTINGS: Final = f"""
SET default_transaction_isolation = 'read committed';
SET default_transaction_read_only = off;
SET statement_timeout = '{STATEMENT_TIMEOUT_S}s';
SET idle_in_transaction_session_timeout = '5s';
SET lock_timeout = 0;
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
SET jit = off;
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write');
""".encode()
# A writer not heard of for so long has nothing under way that could still arrive.
_FORGET_WRITERS: Final = "DELETE FROM SCHEMA.writers WHERE used_at < now() - interval '1 day'"
_PATH_ELEMENT: Final = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^,\s"]+))')

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Session:
    """A connection, and the schema that the environment's objects live in."""

    connection: psycopg.AsyncConnection
    schema: str


async def open_session(url: str) -> Session:
    """A session in autocommit mode whose commits are durable; raises NotReached."""
    conninfo = _conninfo(url)
    try:
        connection = await psycopg.AsyncConnection.connect(conninfo, autocommit=True)
        try:
            await connection.execute(_SETTINGS)
            return Session(connection, await _schema(connection, url))
        except BaseException:
            await connection.close()
            raise
    except (psycopg.Error, OSError) as error:
        raise NotReached(without_password(str(error), url)) from None


async def prepare_schema(session: Session) -> None:
    """Make what is missing, once, however many processes try at the same time."""
    connection, schema = session.connection, session.schema
    async with connection.transaction():
        await lock_schema(session)
        found = await _format(session)
        if found > FORMAT:
            raise Corrupt(f'schema "{schema}" has format {found}, this program knows {FORMAT}')
        if found < FORMAT:
            await _lay_down(session, found)
        await connection.execute(_in(schema, _FORGET_WRITERS))
    row = await (await connection.execute("SHOW fsync")).fetchone()
    if row == ("off",):
        _log.warning("postgresql runs with fsync off: a power cut loses acknowledged writes")


async def lock_schema(session: Session) -> None:
    """One process at a time makes or changes tables, until its transaction ends."""
    await session.connection.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended('evertide ' || %s, 0))", (session.schema,)
    )


async def prepare_statements(session: Session) -> None:
    """Plan once what is asked again and again."""
    texts = "\n".join(f"PREPARE {name} AS {text};" for name, text in STATEMENTS.items())
    await session.connection.execute(_in(session.schema, texts))


def without_password(message: str, url: str) -> str:
    """The message, should it quote the password."""
    secrets = [str(v) for k, v in conninfo_to_dict(url).items() if k.endswith("password") and v]
    for secret in secrets:
        message = message.replace(secret, "***")
    return message.strip()


def _conninfo(url: str) -> str:
    try:
        asked = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # What libpq says of it may quote the password.
        raise StoreUnreachable("this is not a URL that PostgreSQL understands") from None
    if any("@" in str(asked.get(part, "")) for part in ("host", "dbname")):
        # Half a password would be looked up as a host, and stand in the message.
        raise StoreUnreachable("an @ within a password must be written as %40 in a URL")
    return make_conninfo(url, **{k: v for k, v in _DEFAULTS.items() if k not in asked})


async def _schema(connection: psycopg.AsyncConnection, url: str) -> str:
    """Where the objects live: the URL's own choice, so that environments may share a database."""
    if "search_path" not in str(conninfo_to_dict(url).get("options", "")):
        return _DEFAULT_SCHEMA
    cursor = await connection.execute("SELECT current_setting('search_path'), current_user")
    path, user = await cursor.fetchone() or ("", "")
    found = _PATH_ELEMENT.match(path)
    if found is None:
        return _DEFAULT_SCHEMA
    name = found[2].lower() if found[1] is None else found[1].replace('""', '"')
    return str(user) if name == "$user" else name


async def _lay_down(session: Session, found: int) -> None:
    """What is missing since the format that was found, and today's functions."""
    connection, schema = session.connection, session.schema
    known = await connection.execute("SELECT to_regnamespace(%s)", (_quoted(schema),))
    if await known.fetchone() == (None,):
        await connection.execute(f"CREATE SCHEMA {_quoted(schema)}".encode())
    for number in range(found + 1, FORMAT + 1):
        await connection.execute(_in(schema, TABLES[number]))
    await connection.execute(_in(schema, FUNCTIONS))
    await connection.execute(_in(schema, f"UPDATE SCHEMA.epoch SET format = {FORMAT}"))
    if found:
        _log.info("schema brought up to date", schema=schema, found=found, format=FORMAT)


async def _format(session: Session) -> int:
    """0: nothing is there yet."""
    table = f"{_quoted(session.schema)}.epoch"
    known = await session.connection.execute("SELECT to_regclass(%s)", (table,))
    if await known.fetchone() == (None,):
        return 0
    cursor = await session.connection.execute(
        _in(session.schema, "SELECT e.format FROM SCHEMA.epoch e")
    )
    row = await cursor.fetchone()
    return 0 if row is None else int(row[0])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _in(schema: str, text: str) -> bytes:
    """The same text about the objects of this schema."""
    return text.replace("SCHEMA.", f"{_quoted(schema)}.").encode()
