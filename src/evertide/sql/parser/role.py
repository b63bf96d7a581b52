"""CREATE and ALTER ROLE, GRANT, REVOKE, and what is owned."""

from typing import Final

from evertide.sql.parser import session
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.names import (
    comma_separated,
    identifier,
    label,
    one_of,
    qualified_name,
    string_literal,
)
from evertide.sql.syntax.command import AlterSystemSetStatement
from evertide.sql.syntax.definition import CreateRoleStatement
from evertide.sql.syntax.expression import Name
from evertide.sql.syntax.password import PasswordClause
from evertide.sql.syntax.role import (
    AlterRoleSetStatement,
    AlterRoleStatement,
    DefaultPrivilegesStatement,
    DropOwnedStatement,
    GrantKind,
    MembershipStatement,
    OnAll,
    OnObjects,
    OnSystem,
    PrivilegesStatement,
    ReassignOwnedStatement,
)
from evertide.vocab.errors import SqlSyntaxError

_FLAGS: Final = frozenset(
    f"{no}{flag}"
    for flag in ("SUPERUSER", "CREATEDB", "CREATECLUSTER", "CREATEROLE", "INHERIT", "LOGIN")
    for no in ("", "NO")
)
PRIVILEGES: Final = (
    "SELECT", "INSERT", "UPDATE", "DELETE", "USAGE", "CREATE", "CREATEROLE", "CREATEDB",
    "CREATECLUSTER", "CREATENETWORKPOLICY",
)  # fmt: skip
_KINDS: Final = {str(kind): kind for kind in GrantKind}
PLURALS: Final = {kind.plural: kind for kind in GrantKind}
_IN_SCHEMAS: Final = (GrantKind.TABLE, GrantKind.TYPE, GrantKind.SECRET, GrantKind.CONNECTION)
_UNQUALIFIED: Final = (GrantKind.CLUSTER, GrantKind.DATABASE)


def create_role(cursor: Cursor, at: int) -> CreateRoleStatement:
    """The cursor is behind CREATE ROLE or CREATE USER."""
    user = cursor.key == "USER"
    cursor.advance()
    name = role_name(cursor)
    attributes, password = _attributes(cursor)
    if user and not {"LOGIN", "NOLOGIN"} & set(attributes):
        attributes = ("LOGIN", *attributes)
    return CreateRoleStatement(name, attributes, password, at=at)


def _attributes(cursor: Cursor) -> tuple[tuple[str, ...], PasswordClause | None]:
    """The flags, and the password that stands among them."""
    cursor.accept("WITH")
    found: list[str] = []
    password: PasswordClause | None = None
    while cursor.key in _FLAGS or cursor.key in ("PASSWORD", "ENCRYPTED"):
        if cursor.key in _FLAGS:
            found.append(cursor.key)
            cursor.advance()
            continue
        if password is not None:
            raise SqlSyntaxError("conflicting or redundant options", position=cursor.at + 1)
        cursor.accept("ENCRYPTED")
        cursor.expect("PASSWORD")
        cleared = cursor.accept("NULL")
        password = PasswordClause(None if cleared else string_literal(cursor).value)
    return tuple(found), password


def role_name(cursor: Cursor) -> str:
    """A role; `GROUP` before it means nothing."""
    if cursor.key == "GROUP":
        cursor.advance()
    return label(cursor) if cursor.key in ("ALL", "CURRENT_USER", "USER") else identifier(cursor)


def alter_role(cursor: Cursor, at: int) -> AlterRoleStatement | AlterRoleSetStatement:
    """The cursor is behind ALTER ROLE or ALTER USER."""
    name = role_name(cursor)
    if cursor.key in ("SET", "RESET"):
        found = session.alter_system(cursor, at)
        values = found.values if isinstance(found, AlterSystemSetStatement) else None
        return AlterRoleSetStatement(name, found.name, values, at=at)
    return AlterRoleStatement(name, *_attributes(cursor), at=at)


def grant(cursor: Cursor) -> PrivilegesStatement | MembershipStatement:
    at = cursor.at
    cursor.expect("GRANT")
    return _granted(cursor, revoke=False, at=at)


def revoke(cursor: Cursor) -> PrivilegesStatement | MembershipStatement:
    at = cursor.at
    cursor.expect("REVOKE")
    return _granted(cursor, revoke=True, at=at)


def _granted(cursor: Cursor, *, revoke: bool, at: int) -> PrivilegesStatement | MembershipStatement:
    if cursor.key in (*PRIVILEGES, "ALL") and cursor.peek() not in ("TO", "FROM"):
        privileges = _privileges(cursor)
        cursor.expect("ON")
        target = _target(cursor)
        cursor.expect("FROM" if revoke else "TO")
        return PrivilegesStatement(privileges, target, _roles(cursor), revoke, at=at)
    groups = _roles(cursor)
    cursor.expect("FROM" if revoke else "TO")
    return MembershipStatement(groups, _roles(cursor), revoke, at=at)


def _roles(cursor: Cursor) -> tuple[str, ...]:
    return comma_separated(cursor, role_name)


def _privileges(cursor: Cursor) -> tuple[str, ...] | None:
    """None: all of them."""
    if cursor.accept("ALL"):
        cursor.accept("PRIVILEGES")
        return None
    return comma_separated(cursor, lambda inner: one_of(inner, *PRIVILEGES))


def _target(cursor: Cursor) -> OnSystem | OnObjects | OnAll:
    if cursor.accept("SYSTEM"):
        return OnSystem()
    if cursor.key == "ALL":
        cursor.advance()
        kind = PLURALS[one_of(cursor, *PLURALS)]
        return _places(cursor, kind)
    kind = GrantKind.TABLE
    if cursor.key in _KINDS and cursor.peek() not in (".", ",", "TO", "FROM"):
        kind = _KINDS[cursor.key]
        cursor.advance()
    return OnObjects(kind, comma_separated(cursor, lambda inner: _object(inner, kind)))


def _object(cursor: Cursor, kind: GrantKind) -> Name:
    if kind in _UNQUALIFIED:
        at = cursor.at
        wanted = label(cursor) if cursor.key == "DEFAULT" else identifier(cursor)
        return Name((wanted,), at=at)
    return qualified_name(cursor)


def _places(cursor: Cursor, kind: GrantKind) -> OnAll:
    if kind in _IN_SCHEMAS and cursor.accept_words("IN", "SCHEMA"):
        return OnAll(kind, schemas=comma_separated(cursor, qualified_name))
    inside = (*_IN_SCHEMAS, GrantKind.SCHEMA)
    if kind in inside and cursor.accept_words("IN", "DATABASE"):
        return OnAll(kind, databases=comma_separated(cursor, identifier))
    return OnAll(kind)


def alter_default_privileges(cursor: Cursor, at: int) -> DefaultPrivilegesStatement:
    """The cursor is behind ALTER DEFAULT PRIVILEGES."""
    creators: tuple[str, ...] | None = ()
    if cursor.accept_words("FOR", "ALL", "ROLES"):
        creators = None
    elif cursor.accept("FOR"):
        one_of(cursor, "ROLE", "USER")
        creators = _roles(cursor)
    schemas: tuple[Name, ...] = ()
    databases: tuple[str, ...] = ()
    if cursor.accept_words("IN", "SCHEMA"):
        schemas = comma_separated(cursor, qualified_name)
    elif cursor.accept_words("IN", "DATABASE"):
        databases = comma_separated(cursor, identifier)
    taken = one_of(cursor, "GRANT", "REVOKE") == "REVOKE"
    privileges = _privileges(cursor)
    cursor.expect("ON")
    kind = PLURALS[one_of(cursor, *PLURALS)]
    cursor.expect("FROM" if taken else "TO")
    target = OnAll(kind, schemas, databases)
    roles = _roles(cursor)
    return DefaultPrivilegesStatement(creators, target, privileges, roles, taken, at=at)


def reassign_owned(cursor: Cursor) -> ReassignOwnedStatement:
    at = cursor.at
    cursor.expect("REASSIGN", "OWNED", "BY")
    old_roles = _roles(cursor)
    cursor.expect("TO")
    return ReassignOwnedStatement(old_roles, role_name(cursor), at=at)


def drop_owned(cursor: Cursor, at: int) -> DropOwnedStatement:
    """The cursor is behind DROP OWNED."""
    cursor.expect("BY")
    roles = _roles(cursor)
    cascade = cursor.accept("CASCADE")
    if not cascade:
        cursor.accept("RESTRICT")
    return DropOwnedStatement(roles, cascade, at=at)
