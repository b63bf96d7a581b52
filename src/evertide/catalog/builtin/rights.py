"""Who may do what: access lists as text, and the relations that SHOW PRIVILEGES and others read."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from evertide.catalog.acl import Guarded
from evertide.catalog.builtin.relation import Builtin, Projection, Viewpoint, shape
from evertide.catalog.kinds.privileges import LETTERS, NAMED_ORDER, readable
from evertide.catalog.objects import (
    PUBLIC_ROLE_ID,
    DefaultPrivilege,
    Item,
    RoleMembership,
    Secret,
    SystemPrivilege,
)
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.datum import Row
from evertide.vocab.ids import RoleId

# What everyone and the system's own role may do with system relations and with types.
OF_SYSTEM_TABLES: Final = ("mz_system=arwd/mz_system", "=r/mz_system")
OF_SYSTEM_VIEWS: Final = ("mz_system=r/mz_system", "=r/mz_system")
OF_TYPES: Final = ("mz_system=U/mz_system", "=U/mz_system")
_PLAIN: Final = re.compile(r"\w+")


def acl_texts(found: Guarded, snapshot: Snapshot) -> tuple[str, ...]:
    """The access list of an object, each entry as `grantee=letters/grantor`."""
    return tuple(
        acl_text(snapshot, entry.grantee, entry.letters, entry.grantor)
        for entry in found.privileges
    )


def acl_text(snapshot: Snapshot, grantee: RoleId, letters: str, grantor: RoleId) -> str:
    """One entry in PostgreSQL's form: everyone has no name."""
    to = "" if grantee == PUBLIC_ROLE_ID else _quoted(snapshot.roles[grantee].name)
    return f"{to}={letters}/{_quoted(snapshot.roles[grantor].name)}"


def _quoted(name: str) -> str:
    if _PLAIN.fullmatch(name):
        return name
    return '"' + name.replace('"', '""') + '"'


def role_name(snapshot: Snapshot, role_id: RoleId) -> str:
    return "PUBLIC" if role_id == PUBLIC_ROLE_ID else snapshot.roles[role_id].name


def role_parameters(at: Viewpoint) -> Iterable[Row]:
    for role in at.snapshot.roles.values():
        for name, value in role.variables:
            yield role.role_id, name, value


def _named_privileges(letters: str) -> Iterator[str]:
    return (LETTERS[letter] for letter in NAMED_ORDER if letter in letters)


def _granted(found: Guarded, snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    """(grantor, grantee, privilege) of an object, one row for each privilege."""
    for entry in found.privileges:
        grantor = role_name(snapshot, entry.grantor)
        grantee = role_name(snapshot, entry.grantee)
        for privilege in _named_privileges(entry.letters):
            yield grantor, grantee, privilege


def system_privileges(at: Viewpoint) -> Iterator[Row]:
    for grant in at.snapshot.of_type(SystemPrivilege):
        grantor = role_name(at.snapshot, grant.grantor)
        for privilege in _named_privileges(grant.privileges):
            yield grantor, role_name(at.snapshot, grant.grantee), privilege


def cluster_privileges(at: Viewpoint) -> Iterator[Row]:
    for cluster in at.snapshot.clusters.values():
        for grantor, grantee, privilege in _granted(cluster, at.snapshot):
            yield grantor, grantee, cluster.name, privilege


def database_privileges(at: Viewpoint) -> Iterator[Row]:
    for database in at.snapshot.databases.values():
        for grantor, grantee, privilege in _granted(database, at.snapshot):
            yield grantor, grantee, database.name, privilege


def schema_privileges(at: Viewpoint) -> Iterator[Row]:
    """Those of users' schemas; what may be done with the system's is the same everywhere."""
    for schema in at.snapshot.schemas.values():
        if schema.database_id is not None:
            database = at.snapshot.databases[schema.database_id].name
            for grantor, grantee, privilege in _granted(schema, at.snapshot):
                yield grantor, grantee, database, schema.name, privilege


def object_privileges(at: Viewpoint) -> Iterator[Row]:
    guarded: list[Item | Secret] = [*at.snapshot.items.values(), *at.snapshot.secrets.values()]
    for found in guarded:
        schema = at.snapshot.schemas[found.schema_id]
        database_id = schema.database_id  # None: the session's own
        database = None if database_id is None else at.snapshot.databases[database_id].name
        place = (database, schema.name, found.name)
        kind = found.kind.value if isinstance(found, Item) else "secret"
        for grantor, grantee, privilege in _granted(found, at.snapshot):
            yield grantor, grantee, *place, kind, privilege


def all_privileges(at: Viewpoint) -> Iterator[Row]:
    for grantor, grantee, privilege in system_privileges(at):
        yield grantor, grantee, None, None, None, "system", privilege
    for grantor, grantee, name, privilege in cluster_privileges(at):
        yield grantor, grantee, None, None, name, "cluster", privilege
    for grantor, grantee, name, privilege in database_privileges(at):
        yield grantor, grantee, None, None, name, "database", privilege
    for grantor, grantee, database, name, privilege in schema_privileges(at):
        yield grantor, grantee, database, None, name, "schema", privilege
    yield from object_privileges(at)


def default_privileges(at: Viewpoint) -> Iterator[Row]:
    for grant in at.snapshot.of_type(DefaultPrivilege):
        database = None
        if grant.database_id is not None:
            database = at.snapshot.databases[grant.database_id].name
        schema = None if grant.schema_id is None else at.snapshot.schemas[grant.schema_id].name
        scope = (role_name(at.snapshot, grant.role_id), database, schema, grant.object_type)
        for privilege in _named_privileges(grant.privileges):
            yield *scope, role_name(at.snapshot, grant.grantee), privilege


def role_members(at: Viewpoint) -> Iterator[Row]:
    for m in at.snapshot.of_type(RoleMembership):
        yield tuple(role_name(at.snapshot, one) for one in (m.role_id, m.member_id, m.grantor))


def table_privileges(at: Viewpoint) -> Iterator[Row]:
    """information_schema's: (grantor, grantee, database, schema, table, privilege, grantable, ...).

    Only what reads rows respects a hierarchy of tables, which there is none of.
    """
    for grantor, grantee, database, schema, name, kind, privilege in object_privileges(at):
        if database == at.database and readable(str(kind)):
            reads = "YES" if privilege == "SELECT" else "NO"
            yield grantor, grantee, database, schema, name, privilege, "NO", reads
    for builtin in at.builtins:
        for grantee, privilege in (
            ("mz_system", "SELECT"),
            *(("mz_system", p) for p in ("INSERT", "UPDATE", "DELETE") if not builtin.is_view),
            ("PUBLIC", "SELECT"),
        ):
            place = (at.database, builtin.schema, builtin.name)
            reads = "YES" if privilege == "SELECT" else "NO"
            yield "mz_system", grantee, *place, privilege, "NO", reads


_BY: Final = "grantor text, grantee text"
_PLACED: Final = f"{_BY}, database text, schema text, name text, object_type text"

# Name without its beginning, columns, rows, and the column that says whom a row concerns.
_SHOWN: Final[tuple[tuple[str, str, Projection, str], ...]] = (
    ("system_privileges", f"{_BY}, privilege_type text", system_privileges, "grantee"),
    ("cluster_privileges", f"{_BY}, name text, privilege_type text", cluster_privileges, "grantee"),
    (
        "database_privileges",
        f"{_BY}, name text, privilege_type text",
        database_privileges,
        "grantee",
    ),
    (
        "schema_privileges",
        f"{_BY}, database text, name text, privilege_type text",
        schema_privileges,
        "grantee",
    ),
    ("object_privileges", f"{_PLACED}, privilege_type text", object_privileges, "grantee"),
    ("all_privileges", f"{_PLACED}, privilege_type text", all_privileges, "grantee"),
    (
        "default_privileges",
        "object_owner text, database text, schema text, object_type text, grantee text, "
        "privilege_type text",
        default_privileges,
        "grantee",
    ),
    ("role_members", "role text, member text, grantor text", role_members, "member"),
)


def _name(what: str, mine: bool) -> str:
    """mz_show_all_my_privileges, mz_show_my_cluster_privileges."""
    if mine and what == "all_privileges":
        return "mz_show_all_my_privileges"
    return f"mz_show_my_{what}" if mine else f"mz_show_{what}"


# Numbers are for ever: a new relation comes last.
MZ_SHOW: Final = tuple(
    Builtin(
        oid=16_900 + 2 * number + mine,
        schema="mz_internal",
        name=_name(what, mine),
        desc=shape(columns),
        rows=None if mine else rows,
        is_view=True,
    )
    for number, (what, columns, rows, _) in enumerate(_SHOWN)
    for mine in (False, True)
)
# Those about the roles that whoever looks acts as: which relation, and which of its columns names
# the role.
MY_RELATIONS: Final = {
    _name(what, mine=True): (rows, shape(columns).names.index(concerned))
    for what, columns, rows, concerned in _SHOWN
}
