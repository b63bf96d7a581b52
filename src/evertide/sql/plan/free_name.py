"""Where something new goes, and whether its name is free there."""

from evertide.catalog.naming import full_name
from evertide.catalog.objects import Item, Secret
from evertide.sql.plan.context import QueryContext
from evertide.sql.resolve import Destination, position_of, resolve_destination
from evertide.sql.syntax.expression import Name
from evertide.vocab.errors import DuplicateTable, FeatureNotSupported


def free_destination(
    name: Name,
    query: QueryContext,
    if_not_exists: bool = False,
    *,
    is_type: bool = False,
    is_secret: bool = False,
    temporary: bool = False,
) -> Destination:
    """Where a new item goes. Its name must be free; with IF NOT EXISTS the catalog decides.

    Secrets share no names with types, and types none with secrets.
    """
    destination = resolve_destination(name, query.plan.names, temporary=temporary)
    if destination.temporary and (is_type or is_secret):
        raise FeatureNotSupported(
            "types and secrets are not temporary", position=position_of(name.at)
        )
    if not if_not_exists:
        taken = _taken(destination, query, is_type=is_type, is_secret=is_secret)
        if taken is not None:
            raise already_there(taken, query, at=name.at)
    return destination


def _taken(
    destination: Destination, query: QueryContext, *, is_type: bool, is_secret: bool
) -> Item | Secret | None:
    snapshot, schema_id = query.plan.snapshot, destination.schema.schema_id
    found: Item | Secret | None = snapshot.item_named(schema_id, destination.name)
    if found is None and not is_secret:
        found = snapshot.type_named(schema_id, destination.name)
    if found is None and not is_type:
        found = snapshot.secret_named(schema_id, destination.name)
    return found


def already_there(taken: Item | Secret, query: QueryContext, *, at: int) -> DuplicateTable:
    """Tells what has the name, and where."""
    kind = taken.kind.sql_words if isinstance(taken, Item) else "secret"
    shown = full_name(taken, query.plan.snapshot)
    return DuplicateTable(f'{kind} "{shown}" already exists', position=position_of(at))
