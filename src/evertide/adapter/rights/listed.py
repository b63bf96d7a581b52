"""Rows of relations about rights that depend on who looks."""

from collections.abc import Sequence
from typing import Final

from evertide.adapter.rights.identity import is_superuser
from evertide.adapter.session import Session
from evertide.catalog.acl import acting_roles
from evertide.catalog.builtin.registry import BUILTINS
from evertide.catalog.builtin.relation import Viewpoint
from evertide.catalog.builtin.rights import MY_RELATIONS, role_name, table_privileges
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.datum import Row

# information_schema's: the grantor comes first, then the grantee.
TABLE_PRIVILEGES: Final = "table_privileges"
ROLE_TABLE_GRANTS: Final = "role_table_grants"
_EVERYONE: Final = "PUBLIC"


def rights_rows(name: str, session: Session, snapshot: Snapshot) -> Sequence[Row] | None:
    """Rows that concern a role whose rights the session has; None: no such relation is meant."""
    at = Viewpoint(snapshot, session.database, BUILTINS)
    if name in (TABLE_PRIVILEGES, ROLE_TABLE_GRANTS):
        shown = _names(session, snapshot)
        rows = table_privileges(at)
        if is_superuser(session.role_id, snapshot):
            return list(rows)
        if name == ROLE_TABLE_GRANTS:
            shown.discard(_EVERYONE)
        return [row for row in rows if row[0] in shown or row[1] in shown]
    if name not in MY_RELATIONS:
        return None
    shown = _names(session, snapshot)
    projection, column = MY_RELATIONS[name]
    return [row for row in projection(at) if row[column] in shown]


def _names(session: Session, snapshot: Snapshot) -> set[str]:
    """The roles whose rights the session has, everyone among them."""
    if session.role_id is None:
        return {_EVERYONE}
    return {role_name(snapshot, one) for one in acting_roles(snapshot, session.role_id)}
