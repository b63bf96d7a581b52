"""Access lists of new objects, and what roles may do according to one snapshot."""

from collections.abc import Collection
from typing import TypeAlias

from evertide.catalog.kinds.privileges import (
    granted,
    in_order,
    letters_for,
    owners_letters,
    readable,
)
from evertide.catalog.objects import (
    PUBLIC_ROLE_ID,
    Acl,
    Cluster,
    Database,
    DefaultPrivilege,
    Item,
    RoleMembership,
    Schema,
    Secret,
    SystemPrivilege,
)
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.ids import DatabaseId, RoleId, SchemaId

# All that has an access list.
Guarded: TypeAlias = Database | Schema | Cluster | Item | Secret


def new_acl(
    snapshot: Snapshot,
    object_type: str,
    owner: RoleId,
    database_id: DatabaseId | None = None,
    schema_id: SchemaId | None = None,
) -> Acl:
    """The list of an object that is about to be created there.

    `object_type` is an item's kind, or the word for what is no item. Default privileges call all
    relations tables.
    """
    acl = granted((), owner, owner, owners_letters(object_type))
    named = "table" if readable(object_type) else object_type
    for grant in snapshot.of_type(DefaultPrivilege):
        if (
            grant.object_type == named
            and grant.role_id in (owner, PUBLIC_ROLE_ID)
            and grant.database_id in (None, database_id)
            and grant.schema_id in (None, schema_id)
        ):
            acl = granted(acl, grant.grantee, owner, grant.privileges)
    return acl


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


def acting_roles(snapshot: Snapshot, role_id: RoleId) -> set[RoleId]:
    """Whose privileges a role has: its own, those of its groups, and everyone's."""
    return {*roles_above(snapshot, role_id), PUBLIC_ROLE_ID}


def letters_on(found: Guarded, role_ids: Collection[RoleId]) -> str:
    """What any of these roles may do with an object."""
    return letters_for(found.privileges, role_ids)


def system_letters(snapshot: Snapshot, role_ids: Collection[RoleId]) -> str:
    """What any of these roles may do with the environment as a whole."""
    grants = (g for g in snapshot.of_type(SystemPrivilege) if g.grantee in role_ids)
    return in_order(letter for grant in grants for letter in grant.privileges)
