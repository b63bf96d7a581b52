"""The check itself: what a statement takes against what one snapshot says about a role."""

from collections.abc import Collection, Iterable
from typing import Final

from evertide.adapter.rights.needs import needs_of
from evertide.catalog.acl import Guarded, acting_roles, letters_on, roles_above, system_letters
from evertide.catalog.kinds.privileges import names_of_letters
from evertide.catalog.naming import Named, plain, quoted
from evertide.catalog.objects import ClusterProfile, ClusterReplica, ObjectKey, Role
from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.entry import Planned
from evertide.sql.plan.plans import SessionPlan
from evertide.sql.plan.roles.rights import Needs, Privilege
from evertide.vocab.errors import InsufficientPrivilege
from evertide.vocab.ids import RoleId

# ALTER SYSTEM SET this to off, and everyone may do everything.
CHECKS: Final = "enable_rbac_checks"
_OFF: Final = ("off", "false", "f", "no", "n", "0")


def authorize(
    planned: Planned, role_id: RoleId, cluster: str, snapshot: Snapshot, *, back: bool = False
) -> None:
    """Raises 42501 unless this role may run the plan, by the snapshot that executes it.

    `back`: the time that it reads at may be earlier than the snapshot.

    What concerns the session alone is always allowed, or nobody could end a transaction.
    """
    if isinstance(planned.plan, SessionPlan):
        return
    role = _acting(role_id, snapshot)
    if not _may_everything(role, snapshot):
        check(needs_of(planned, cluster, snapshot, back=back), role, snapshot)


def authorize_commit(
    taken: Iterable[Privilege], role_id: RoleId | None, snapshot: Snapshot
) -> None:
    """Raises 42501 unless this role still has what its collected writes took.

    What is gone needs no right: that it is gone is told by whoever writes to it.
    """
    there = [each for each in taken if each.target is None or snapshot.find(each.target)]
    if role_id is None or not there:
        return
    role = _acting(role_id, snapshot)
    if not _may_everything(role, snapshot):
        check(Needs(privileges=tuple(there)), role, snapshot)


def _acting(role_id: RoleId, snapshot: Snapshot) -> Role:
    role = snapshot.roles.get(role_id)
    if role is None:
        raise InsufficientPrivilege(
            "the role of this session was concurrently dropped",
            hint="Connect again, as a role that exists.",
        )
    return role


def _may_everything(role: Role, snapshot: Snapshot) -> bool:
    return role.superuser or not checks_are_on(snapshot)


def checks_are_on(snapshot: Snapshot) -> bool:
    return snapshot.system_configurations.get(CHECKS, "on").lower() not in _OFF


def check(needs: Needs, role: Role, snapshot: Snapshot) -> None:
    """Raises for the first thing that is missing."""
    if needs.superuser is not None:
        raise InsufficientPrivilege(
            f"permission denied to {needs.superuser}", detail="You must be a superuser."
        )
    above = roles_above(snapshot, role.role_id)
    for member_of in needs.member_of:
        if member_of not in above:
            raise InsufficientPrivilege(f'must be a member of "{snapshot.roles[member_of].name}"')
    foreign = [key for key in needs.owner_of if not _is_own(key, role, above, snapshot)]
    if foreign:
        shown = ", ".join(plain(_named(key, snapshot), snapshot) for key in foreign)
        raise InsufficientPrivilege(f"must be owner of {shown}")
    for privilege in needs.privileges:
        _check_privilege(privilege, role, snapshot)


def _check_privilege(privilege: Privilege, role: Role, snapshot: Snapshot) -> None:
    acting = role if privilege.role_id is None else snapshot.roles[privilege.role_id]
    if acting.superuser:
        return
    roles = acting_roles(snapshot, acting.role_id)
    if privilege.target is None:
        what, letters = "SYSTEM", system_letters(snapshot, roles)
    else:
        found = _named(privilege.target, snapshot)
        assert isinstance(found, Guarded), "privileges are on what has an access list"
        what, letters = quoted(found, snapshot), letters_on(found, roles)
    missing = [letter for letter in privilege.letters if letter not in letters]
    if missing:
        names = names_of_letters(missing)
        raise InsufficientPrivilege(
            f"permission denied for {what}",
            detail=f"The '{acting.name}' role needs {names} privileges on {what}",
        )


def _is_own(key: ObjectKey, role: Role, above: Collection[RoleId], snapshot: Snapshot) -> bool:
    """What operators lend, beside what a cluster's owner asked for, is any operator's."""
    found = _named(key, snapshot)
    assert not isinstance(found, Role), "roles have no owner"
    lent = isinstance(found, ClusterReplica) and (found.internal or found.profile_id is not None)
    if lent or isinstance(found, ClusterProfile):
        return role.role_id.startswith("s")
    return found.owner in above


def _named(key: ObjectKey, snapshot: Snapshot) -> Named:
    found = snapshot.find(key)
    assert isinstance(found, Named), f"the plan was made with this snapshot: {key!r}"
    return found
