"""CREATE, ALTER and DROP ROLE, and who is a member of whom."""

from typing import Final, assert_never

from evertide.catalog.objects import RoleMembership, object_key
from evertide.catalog.ops import (
    CreateRoleOp,
    DropRoleOp,
    GrantRoleOp,
    Op,
    RevokeRoleOp,
)
from evertide.catalog.privilege_ops import AlterRoleOp, SetPasswordOp, SetRoleVariableOp
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.roles.names import resolve_role, users_role
from evertide.sql.plan.roles.owned import plan_drop_owned, plan_reassign_owned
from evertide.sql.plan.roles.passwords import plan_password
from evertide.sql.plan.roles.plans import RolePlan
from evertide.sql.plan.roles.privileges import plan_default_privileges, plan_privileges
from evertide.sql.plan.roles.rights import Needs, on_system
from evertide.sql.plan.skipped import skipped
from evertide.sql.resolve import position_of
from evertide.sql.schema_list import variable_text
from evertide.sql.syntax.definition import CreateRoleStatement, DropStatement
from evertide.sql.syntax.password import PasswordClause
from evertide.sql.syntax.role import (
    AlterRoleSetStatement,
    AlterRoleStatement,
    DefaultPrivilegesStatement,
    DropOwnedStatement,
    MembershipStatement,
    PrivilegesStatement,
    ReassignOwnedStatement,
    RoleStatement,
)
from evertide.vocab.errors import (
    DuplicateObject,
    FeatureNotSupported,
    Notice,
    ObjectInUse,
    SqlSyntaxError,
    UndefinedObject,
)
from evertide.vocab.ids import RoleId

# Memberships are granted by the system, so that whoever asked for one can be dropped.
_GRANTOR: Final = RoleId("s1")
_SYSTEM_PRIVILEGES: Final = ("CREATEDB", "CREATECLUSTER", "CREATEROLE")
_NO_PASSWORD: Final = PasswordClause(None)
_CREATE_ROLE: Final = Needs(privileges=(on_system("R"),))


def plan_role_statement(statement: RoleStatement, query: QueryContext) -> RolePlan:
    """Any statement about roles but CREATE and DROP ROLE, which others of their kind precede."""
    match statement:
        case AlterRoleStatement():
            return _alter_role(statement, query)
        case AlterRoleSetStatement():
            return _alter_role_set(statement, query)
        case MembershipStatement():
            return _membership(statement, query)
        case PrivilegesStatement():
            return plan_privileges(statement, query)
        case DefaultPrivilegesStatement():
            return plan_default_privileges(statement, query)
        case ReassignOwnedStatement():
            return plan_reassign_owned(statement, query)
        case DropOwnedStatement():
            return plan_drop_owned(statement, query)
        case _:
            assert_never(statement)


def plan_create_role(statement: CreateRoleStatement, query: QueryContext) -> RolePlan:
    """A role with its attributes; what it may do is granted, not an attribute."""
    flags = _flags(statement.attributes, statement.at)
    if query.plan.snapshot.role_named(statement.name) is not None:
        raise DuplicateObject(
            f"role '{statement.name}' already exists", position=position_of(statement.at)
        )
    superuser = flags.get("SUPERUSER", False)
    password, notices = plan_password(statement.password or _NO_PASSWORD)
    op = CreateRoleOp(
        name=statement.name, superuser=superuser, login=flags.get("LOGIN"), password=password
    )
    return RolePlan("CREATE ROLE", (op,), _needed(superuser, "create a superuser role"), notices)


def _needed(superuser: bool | None, action: str) -> Needs:
    """Whoever makes or changes a superuser must be one."""
    if superuser:
        return Needs(superuser=action, privileges=_CREATE_ROLE.privileges)
    return _CREATE_ROLE


def _flags(attributes: tuple[str, ...], at: int) -> dict[str, bool]:
    """Each attribute without its NO, and whether it is on."""
    flags: dict[str, bool] = {}
    for word in attributes:
        on = not word.startswith("NO")
        name = word if on else word.removeprefix("NO")
        if name in _SYSTEM_PRIVILEGES:
            raise FeatureNotSupported(
                f"{name} attribute is not supported",
                detail="Use system privileges instead.",
                hint=f"GRANT {name} ON SYSTEM TO the role.",
                position=position_of(at),
            )
        if name in flags:
            raise SqlSyntaxError("conflicting or redundant options", position=position_of(at))
        flags[name] = on
    if flags.get("INHERIT") is False:
        raise FeatureNotSupported("non inherit roles not yet supported", position=position_of(at))
    return flags


def _alter_role(statement: AlterRoleStatement, query: QueryContext) -> RolePlan:
    role = users_role(statement.name, query.plan.snapshot, at=statement.at)
    flags = _flags(statement.attributes, statement.at)
    alter = AlterRoleOp(
        role_id=role.role_id, superuser=flags.get("SUPERUSER"), login=flags.get("LOGIN")
    )
    needs = _needed(role.superuser or alter.superuser, "alter a superuser role")
    if statement.password is None:
        return RolePlan("ALTER ROLE", (alter,), needs)
    password, notices = plan_password(statement.password)
    change = SetPasswordOp(role_id=role.role_id, password=password)
    if not flags and role.role_id == query.plan.role_id:
        # Anyone may change his own password, superusers included.
        return RolePlan("ALTER ROLE", (change,), Needs(), notices)
    return RolePlan("ALTER ROLE", (alter, change) if flags else (change,), needs, notices)


def _alter_role_set(statement: AlterRoleSetStatement, query: QueryContext) -> RolePlan:
    """Anyone may set what his own sessions start with."""
    role = users_role(statement.name, query.plan.snapshot, at=statement.at)
    names = [statement.variable] if statement.variable else [name for name, _ in role.variables]
    values = statement.values
    ops = tuple(
        SetRoleVariableOp(
            role_id=role.role_id,
            name=name,
            value=None if values is None else variable_text(name, values),
        )
        for name in names
    )
    own = role.role_id == query.plan.role_id
    needs = Needs() if own else _needed(role.superuser, "alter a superuser role")
    return RolePlan("ALTER ROLE", ops, needs)


def plan_drop_role(statement: DropStatement, query: QueryContext) -> RolePlan:
    """Roles that nothing names any more."""
    snapshot = query.plan.snapshot
    ops: list[Op] = []
    notices: list[Notice] = []
    superuser = False
    for name in statement.names:
        try:
            role = resolve_role(name.parts[0], snapshot, at=name.at)
        except UndefinedObject:
            if not statement.if_exists:
                raise
            notices.append(skipped("ROLE", name))
            continue
        if role.role_id == query.plan.role_id:
            raise ObjectInUse("current role cannot be dropped", position=position_of(name.at))
        superuser = superuser or role.superuser
        op = DropRoleOp(role.role_id)
        if op not in ops:  # named twice, dropped once
            ops.append(op)
    needs = _needed(superuser, "drop a superuser role")
    return RolePlan("DROP ROLE", tuple(ops), needs, tuple(notices))


def _membership(statement: MembershipStatement, query: QueryContext) -> RolePlan:
    snapshot = query.plan.snapshot
    ops: list[Op] = []
    notices: list[Notice] = []
    superuser = False
    for group_name in statement.roles:
        group = users_role(group_name, snapshot, at=statement.at)
        superuser = superuser or group.superuser
        for member_name in statement.members:
            member = users_role(member_name, snapshot, at=statement.at)
            wanted = RoleMembership(
                role_id=group.role_id, member_id=member.role_id, grantor=_GRANTOR
            )
            there = snapshot.find(object_key(wanted)) is not None
            if there is not statement.revoke:
                state = "already" if there else "not"
                message = f'role "{member.name}" is {state} a member of role "{group.name}"'
                notices.append(Notice("NOTICE", "00000", message))
            ops.append(_membership_op(wanted, statement.revoke))
    tag = "REVOKE ROLE" if statement.revoke else "GRANT ROLE"
    needs = _needed(superuser, "grant a superuser role")
    return RolePlan(tag, tuple(ops), needs, tuple(notices))


def _membership_op(wanted: RoleMembership, revoke: bool) -> Op:
    if revoke:
        return RevokeRoleOp(role_id=wanted.role_id, member_id=wanted.member_id)
    return GrantRoleOp(role_id=wanted.role_id, member_id=wanted.member_id, grantor=_GRANTOR)
