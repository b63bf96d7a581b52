"""The op that gives a role a password or takes it away."""

from evertide.catalog.draft import Draft
from evertide.catalog.objects import PUBLIC_ROLE_ID, Role, RolePassword, object_key
from evertide.catalog.passwords import password_of
from evertide.catalog.privilege_ops import NewPassword, SetPasswordOp
from evertide.vocab.errors import InsufficientPrivilege, UndefinedObject


def set_password(draft: Draft, op: SetPasswordOp) -> None:
    """Audited without anything of what it was or is."""
    role = draft.snapshot.roles.get(op.role_id)
    if role is None:
        raise UndefinedObject(f"unknown role '{op.role_id}'")
    if op.role_id.startswith("s"):
        raise InsufficientPrivilege(f"system role '{role.name}' cannot be modified")
    before = password_of(draft.snapshot, op.role_id)
    if op.password is not None:
        keep_password(draft, role, op.password)
    elif before is not None:
        draft.remove(before)
    else:
        return
    kept = "cleared" if op.password is None else "set"
    draft.audit("alter", "role", {"id": role.role_id, "name": role.name, "password": kept})


def keep_password(draft: Draft, role: Role, password: NewPassword) -> None:
    """Also the first secret that decoys are made from: one for as long as there are passwords."""
    _put(draft, RolePassword(role_id=role.role_id, verifier=password.verifier))
    if password_of(draft.snapshot, PUBLIC_ROLE_ID) is None:
        _put(draft, RolePassword(role_id=PUBLIC_ROLE_ID, verifier=password.decoy))


def _put(draft: Draft, kept: RolePassword) -> None:
    before = draft.snapshot.find(object_key(kept))
    if before is None:
        draft.create(kept)
    else:
        draft.replace(before, kept)
