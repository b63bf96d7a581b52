"""The ops on roles: their attributes, their memberships, and what they may do."""

import msgspec

from evertide.catalog.acl import Guarded, roles_above
from evertide.catalog.checks import described
from evertide.catalog.create import refuse_unknown_role
from evertide.catalog.draft import Draft
from evertide.catalog.kinds.privileges import granted, names_of_letters, revoked
from evertide.catalog.objects import (
    PUBLIC_ROLE_ID,
    Acl,
    AuditDetail,
    DefaultPrivilege,
    Item,
    Role,
    RoleMembership,
    SystemPrivilege,
    object_key,
)
from evertide.catalog.ops import (
    GrantRoleOp,
    RevokeRoleOp,
    SetDefaultPrivilegeOp,
    SetSystemPrivilegeOp,
)
from evertide.catalog.privilege_ops import (
    AlterRoleOp,
    GrantPrivilegesOp,
    RevokePrivilegesOp,
    SetRoleVariableOp,
)
from evertide.vocab.errors import (
    InsufficientPrivilege,
    InvalidParameterValue,
    UndefinedDatabase,
    UndefinedObject,
    UndefinedSchema,
)
from evertide.vocab.ids import RoleId


def grant_role(draft: Draft, op: GrantRoleOp) -> None:
    for role_id in (op.role_id, op.member_id, op.grantor):
        refuse_unknown_role(draft, role_id)
    membership = RoleMembership(role_id=op.role_id, member_id=op.member_id, grantor=op.grantor)
    if draft.snapshot.find(object_key(membership)) is not None:
        return
    if op.member_id in roles_above(draft.snapshot, op.role_id):
        role, member = (draft.snapshot.roles[id_].name for id_ in (op.role_id, op.member_id))
        raise InvalidParameterValue(f'role "{role}" is a member of role "{member}"')
    draft.create(membership)
    draft.audit("grant", "role", _membership_details(membership))


def revoke_role(draft: Draft, op: RevokeRoleOp) -> None:
    wanted = RoleMembership(role_id=op.role_id, member_id=op.member_id, grantor=op.member_id)
    membership = draft.snapshot.find(object_key(wanted))
    if isinstance(membership, RoleMembership):
        draft.remove(membership)
        draft.audit("revoke", "role", _membership_details(membership))


def alter_role(draft: Draft, op: AlterRoleOp) -> None:
    role = _own_role(draft, op.role_id)
    changed = msgspec.structs.replace(
        role,
        superuser=role.superuser if op.superuser is None else op.superuser,
        login=role.login if op.login is None else op.login,
    )
    if changed != role:
        draft.replace(role, changed)
        draft.audit("alter", "role", {"id": role.role_id, "name": role.name})


def set_role_variable(draft: Draft, op: SetRoleVariableOp) -> None:
    role = _own_role(draft, op.role_id)
    values = dict(role.variables)
    values.pop(op.name, None)
    if op.value is not None:
        values[op.name] = op.value
    changed = msgspec.structs.replace(role, variables=tuple(sorted(values.items())))
    if changed != role:
        draft.replace(role, changed)
        details: dict[str, AuditDetail] = {"id": role.role_id, "name": role.name}
        draft.audit("alter", "role", {**details, "variable": op.name, "value": op.value})


def _own_role(draft: Draft, role_id: RoleId) -> Role:
    refuse_unknown_role(draft, role_id)
    if role_id.startswith("s"):
        name = draft.snapshot.roles[role_id].name
        raise InsufficientPrivilege(f"system role '{name}' cannot be modified")
    return draft.snapshot.roles[role_id]


def grant_privileges(draft: Draft, op: GrantPrivilegesOp) -> None:
    found = _guarded(draft, op)
    _refuse_unknown_grantee(draft, op.grantee)
    after = granted(found.privileges, op.grantee, found.owner, op.letters)
    _set_privileges(draft, found, after, op)


def revoke_privileges(draft: Draft, op: RevokePrivilegesOp) -> None:
    found = _guarded(draft, op)
    after = revoked(found.privileges, op.grantee, found.owner, op.letters)
    _set_privileges(draft, found, after, op)


def _guarded(draft: Draft, op: GrantPrivilegesOp | RevokePrivilegesOp) -> Guarded:
    found = draft.snapshot.find(op.target)
    if not isinstance(found, Guarded):
        raise UndefinedObject(f"unknown {described(op.target)}")
    return found


def _set_privileges(
    draft: Draft, found: Guarded, after: Acl, op: GrantPrivilegesOp | RevokePrivilegesOp
) -> None:
    if after == found.privileges:
        return
    draft.replace(found, msgspec.structs.replace(found, privileges=after))
    kind = found.kind.value if isinstance(found, Item) else found.KIND.value.replace("_", "-")
    details: dict[str, AuditDetail] = {
        "object_id": str(op.target[1]),
        "grantee_id": op.grantee,
        "grantor_id": found.owner,
        "privileges": names_of_letters(op.letters),
    }
    draft.audit("grant" if isinstance(op, GrantPrivilegesOp) else "revoke", kind, details)


def set_default_privilege(draft: Draft, op: SetDefaultPrivilegeOp) -> None:
    wanted, snapshot = op.wanted, draft.snapshot
    _refuse_unknown_grantee(draft, wanted.role_id)
    _refuse_unknown_grantee(draft, wanted.grantee)
    if wanted.database_id is not None and wanted.database_id not in snapshot.databases:
        raise UndefinedDatabase(f"unknown database '{wanted.database_id}'")
    if wanted.schema_id is not None and wanted.schema_id not in snapshot.schemas:
        raise UndefinedSchema(f"unknown schema '{wanted.schema_id}'")
    details: dict[str, AuditDetail] = {
        "role_id": wanted.role_id,
        "database_id": wanted.database_id,
        "schema_id": wanted.schema_id,
        "grantee_id": wanted.grantee,
        "privileges": wanted.privileges,
    }
    if _set_grant(draft, wanted):
        draft.audit("alter", wanted.object_type, details)


def set_system_privilege(draft: Draft, op: SetSystemPrivilegeOp) -> None:
    wanted = op.wanted
    _refuse_unknown_grantee(draft, wanted.grantee)
    refuse_unknown_role(draft, wanted.grantor)
    before = draft.snapshot.find(object_key(wanted))
    held = set(before.privileges) if isinstance(before, SystemPrivilege) else set[str]()
    for event, letters in (
        ("grant", set(wanted.privileges) - held),
        ("revoke", held - set(wanted.privileges)),
    ):
        if letters:
            details: dict[str, AuditDetail] = {
                "object_id": "SYSTEM",
                "grantee_id": wanted.grantee,
                "grantor_id": wanted.grantor,
                "privileges": names_of_letters("".join(sorted(letters))),
            }
            draft.audit(event, "system", details)
    _set_grant(draft, wanted)


def _set_grant(draft: Draft, wanted: DefaultPrivilege | SystemPrivilege) -> bool:
    """Whether that changed anything."""
    before = draft.snapshot.find(object_key(wanted))
    after = wanted if wanted.privileges else None
    if before == after:
        return False
    if before is None:
        draft.create(wanted)
    elif after is None:
        draft.remove(before)
    else:
        draft.replace(before, after)
    return True


def _refuse_unknown_grantee(draft: Draft, role_id: RoleId) -> None:
    if role_id != PUBLIC_ROLE_ID:
        refuse_unknown_role(draft, role_id)


def _membership_details(membership: RoleMembership) -> dict[str, AuditDetail]:
    return {
        "role_id": membership.role_id,
        "member_id": membership.member_id,
        "grantor_id": membership.grantor,
    }
