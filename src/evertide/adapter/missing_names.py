"""What a session is told of when its database, cluster or search path names nothing.

None of this is refused: system relations need no cluster, and what is missing may be made later.
"""

from typing import Final

from evertide.adapter.session import Session
from evertide.catalog.snapshot import Snapshot
from evertide.sql.resolve import NameContext, current_schema
from evertide.vocab.errors import Notice, UndefinedDatabase, UndefinedSchema

_NAMES: Final = ("cluster", "database", "search_path")


def note_missing(session: Session, snapshot: Snapshot) -> None:
    """Of what a session begins with."""
    if not _wants_to_hear(session):
        return
    for code, kind, is_there in (
        ("MZ004", "database", snapshot.database_named(session.database) is not None),
        ("MZ005", "cluster", snapshot.cluster_named(session.cluster) is not None),
    ):
        if not is_there:
            name = session.variables.get(kind)
            hint = f"Set the default {kind} for the role, or choose one by SET {kind.upper()}"
            _note(session, code, f'default {kind} "{name}" does not exist', f"{hint} = <name>.")


def note_missing_value(variable: str, session: Session, snapshot: Snapshot) -> None:
    """Of what a statement has just set."""
    if variable not in _NAMES or not _wants_to_hear(session):
        return
    if variable == "cluster":
        if snapshot.cluster_named(session.cluster) is None:
            hint = "Create it with CREATE CLUSTER, or pick one of SHOW CLUSTERS."
            _note(session, "MZ007", f'cluster "{session.cluster}" does not exist', hint)
    elif snapshot.database_named(session.database) is None:
        hint = "Create it with CREATE DATABASE, or pick one of SHOW DATABASES."
        _note(session, "MZ006", f'database "{session.database}" does not exist', hint)
    elif session.search_path and not _finds_a_schema(session, snapshot):
        path = session.variables.get("search_path")
        hint = "Create one with CREATE SCHEMA, or pick one of SHOW SCHEMAS."
        _note(session, "MZ008", f"no schema of the search path exists: {path}", hint)


def names_something(variable: str) -> bool:
    """Whether setting it is worth a look into the catalog."""
    return variable in _NAMES


def _wants_to_hear(session: Session) -> bool:
    return session.variables.get("current_object_missing_warnings") == "on"


def _finds_a_schema(session: Session, snapshot: Snapshot) -> bool:
    try:
        current_schema(NameContext(snapshot, session.database, session.search_path))
    except (UndefinedDatabase, UndefinedSchema):
        return False
    return True


def _note(session: Session, code: str, message: str, hint: str) -> None:
    session.notices.append(Notice("NOTICE", code, message, hint=hint))
