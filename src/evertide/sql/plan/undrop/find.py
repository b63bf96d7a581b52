"""Which dropped item is meant: the newest of its name, or the one of an id."""

from collections.abc import Iterator

from evertide.catalog.builtin.dropped import place_today
from evertide.catalog.objects import DroppedItem, ItemKind
from evertide.sql.plan.drop import ITEM_KINDS
from evertide.sql.resolve import NameContext, position_of, too_many_parts
from evertide.sql.syntax.expression import Name
from evertide.sql.syntax.undrop import UndropStatement
from evertide.vocab.errors import UndefinedTable, WrongObjectType
from evertide.vocab.ids import ItemId

_LISTED = "What can be brought back is listed in mz_internal.mz_dropped_objects."


def find_dropped(statement: UndropStatement, names: NameContext) -> DroppedItem:
    """The item, which must be of the kind that is asked for."""
    kind = None if statement.kind is None else ITEM_KINDS[statement.kind]
    if statement.name is None:
        assert statement.item_id is not None, "it is named, or has an id"
        found = names.snapshot.dropped_items.get(ItemId(statement.item_id))
        if found is None:
            raise _missing(f"dropped object with id '{statement.item_id}'", statement)
        if kind is not None and found.kind is not kind:
            raise _other_kind(found, kind, statement)
        return found
    assert kind is not None, "a name alone does not say what is meant"
    candidates = list(_named(statement.name, names))
    of_kind = [dropped for dropped in candidates if dropped.kind is kind]
    if of_kind:
        return of_kind[0]
    if candidates:
        raise _other_kind(candidates[0], kind, statement)
    shown = ".".join(statement.name.parts)
    raise _missing(f'dropped {kind.sql_words} "{shown}"', statement)


def _named(name: Name, names: NameContext) -> Iterator[DroppedItem]:
    """Along the search path, in each schema the newest first.

    A schema that is gone still says where its items were.
    """
    match name.parts:
        case (item,):
            places = [(names.database, schema) for schema in names.search_path]
        case (schema, item):
            places = [(names.database, schema)]
        case (database, schema, item):
            places = [(database, schema)]
        case _:
            raise too_many_parts(name)
    everything = names.snapshot.dropped_items.values()
    found = [dropped for dropped in everything if dropped.name == item]
    found.sort(key=lambda dropped: -dropped.drop_id)
    for place in places:
        yield from (one for one in found if place_today(one, names.snapshot) == place)


def _missing(what: str, statement: UndropStatement) -> UndefinedTable:
    at = statement.at if statement.name is None else statement.name.at
    return UndefinedTable(f"there is no {what}", hint=_LISTED, position=position_of(at))


def _other_kind(found: DroppedItem, kind: ItemKind, statement: UndropStatement) -> WrongObjectType:
    words = found.kind.sql_words
    return WrongObjectType(
        f'"{found.name}" is not {_article(kind)} {kind.sql_words}',
        hint=f"Use UNDROP {words.upper()} to bring back {_article(found.kind)} {words}.",
        position=position_of(statement.at),
    )


def _article(kind: ItemKind) -> str:
    return "an" if kind is ItemKind.INDEX else "a"
