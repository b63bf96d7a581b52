"""Statements about roles and privileges, as text."""

from __future__ import annotations

from typing import assert_never

from evertide.sql.printer.names import dotted, name, quote_ident, quote_literal
from evertide.sql.syntax.password import PasswordClause
from evertide.sql.syntax.role import (
    AlterRoleSetStatement,
    AlterRoleStatement,
    DefaultPrivilegesStatement,
    DropOwnedStatement,
    MembershipStatement,
    OnAll,
    OnObjects,
    OnSystem,
    PrivilegesStatement,
    ReassignOwnedStatement,
    RoleStatement,
)

# After GRANT, words that would begin a list of privileges.
_PRIVILEGES = frozenset(
    [
        "INSERT",
        "UPDATE",
        "DELETE",
        "USAGE",
        "CREATEROLE",
        "CREATEDB",
        "CREATECLUSTER",
        "CREATENETWORKPOLICY",
    ]
)

_SYSTEM = frozenset({"SYSTEM"})


def role_statement(node: RoleStatement) -> str:
    match node:
        case AlterRoleStatement():
            words = attributes(node.attributes, node.password)
            return " ".join(["ALTER ROLE", quote_ident(node.name), *words])
        case AlterRoleSetStatement(values=None):
            return f"ALTER ROLE {quote_ident(node.name)} RESET {_variable(node.variable)}"
        case AlterRoleSetStatement(values=values):
            shown = ", ".join(quote_literal(value) for value in values or ())
            return f"ALTER ROLE {quote_ident(node.name)} SET {_variable(node.variable)} TO {shown}"
        case MembershipStatement():
            head, to = ("REVOKE", "FROM") if node.revoke else ("GRANT", "TO")
            return f"{head} {_roles(node.roles)} {to} {_roles(node.members)}"
        case PrivilegesStatement():
            what = f"{_privileges(node.privileges)} ON {_target(node.target)}"
            return _given(what, node.roles, node.revoke)
        case DefaultPrivilegesStatement():
            return _defaults(node)
        case ReassignOwnedStatement():
            return f"REASSIGN OWNED BY {_roles(node.old_roles)} TO {quote_ident(node.new_role)}"
        case DropOwnedStatement():
            return f"DROP OWNED BY {_roles(node.roles)}{' CASCADE' if node.cascade else ''}"
        case _:
            assert_never(node)


def attributes(words: tuple[str, ...], password: PasswordClause | None) -> list[str]:
    """A password is never shown; that there is one is."""
    if password is None:
        return [*words]
    return [*words, "PASSWORD NULL" if password.text is None else "PASSWORD '********'"]


def _given(what: str, roles: tuple[str, ...], revoke: bool) -> str:
    if revoke:
        return f"REVOKE {what} FROM {_roles(roles)}"
    return f"GRANT {what} TO {_roles(roles)}"


def _defaults(node: DefaultPrivilegesStatement) -> str:
    head = "ALTER DEFAULT PRIVILEGES"
    if node.creators is None:
        head += " FOR ALL ROLES"
    elif node.creators:
        head += f" FOR ROLE {_roles(node.creators)}"
    what = f"{_privileges(node.privileges)} ON {node.target.kind.plural}"
    return f"{head}{_places(node.target)} {_given(what, node.roles, node.revoke)}"


def _roles(names: tuple[str, ...]) -> str:
    return ", ".join(quote_ident(one, _PRIVILEGES) for one in names)


def _privileges(names: tuple[str, ...] | None) -> str:
    return "ALL PRIVILEGES" if names is None else ", ".join(names)


def _target(target: OnSystem | OnObjects | OnAll) -> str:
    match target:
        case OnSystem():
            return "SYSTEM"
        case OnObjects():
            # A table of this name would be taken for the environment as a whole.
            names = (dotted(one.parts, _SYSTEM) for one in target.names)
            return f"{target.kind} {', '.join(names)}"
        case OnAll():
            return f"ALL {target.kind.plural}{_places(target)}"
        case _:
            assert_never(target)


def _places(target: OnAll) -> str:
    if target.schemas:
        return f" IN SCHEMA {', '.join(name(one) for one in target.schemas)}"
    if target.databases:
        return f" IN DATABASE {', '.join(quote_ident(one) for one in target.databases)}"
    return ""


def _variable(dotted_name: str | None) -> str:
    if dotted_name is None:
        return "ALL"
    return dotted(tuple(dotted_name.split(".")))
