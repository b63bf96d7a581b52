"""The ops on role memberships, and on privileges that name no single object."""

from evertide.catalog.create import refuse_unknown_role
from evertide.catalog.draft import Draft
from evertide.catalog.objects import (
    PUBLIC_ROLE_ID,
    AuditDetail,
    DefaultPrivilege,
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
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.errors import InvalidParameterValue, UndefinedDatabase, UndefinedSchema
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


def roles_above(snapshot: Snapshot, role_id: RoleId) -> set[RoleId]:
    """The role itself, and all it is a member of, directly or not."""
    found: set[RoleId] = set()
    waiting = [role_id]
    while waiting:
        member_id = waiting.pop()
        if member_id not in found:
            found.add(member_id)
            memberships = snapshot.referrers(RoleMembership, ("role", member_id))
            waiting.extend(m.role_id for m in memberships if m.member_id == member_id)
    return found


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
    details: dict[str, AuditDetail] = {
        "object_id": "SYSTEM",
        "grantee_id": wanted.grantee,
        "grantor_id": wanted.grantor,
        "privileges": wanted.privileges,
    }
    if _set_grant(draft, wanted):
        draft.audit("alter", "system", details)


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
