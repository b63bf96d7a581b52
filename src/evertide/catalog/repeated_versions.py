"""Versions of a materialized view that tell nothing which the one before them does not tell.

Each return of a dropped view makes a new version of the same definition. Kept all, they would grow
with every return, each with the whole text.
"""

from collections.abc import Container, Iterator

import msgspec

from evertide.catalog.objects import Item, MaterializedView
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.ids import GlobalId


def versions_meant(snapshot: Snapshot) -> frozenset[GlobalId]:
    """Those that a text was planned against: of items, dropped ones, and earlier definitions."""
    return frozenset(_meant(snapshot))


def _meant(snapshot: Snapshot) -> Iterator[GlobalId]:
    for item in snapshot.items.values():
        yield from _meant_by(item)
    for dropped in snapshot.dropped_items.values():
        yield from _meant_by(dropped.item)


def _meant_by(item: Item) -> Iterator[GlobalId]:
    yield from item.planned_against
    if isinstance(item.definition, MaterializedView):
        for past in item.definition.past:
            yield from past.planned_against


def without_repetition(item: Item, meant: Container[GlobalId]) -> Item:
    """The item without its last version but one, if the one before says the same and no text means
    it. Who reads the past needs what definitions read, and that is the same in both."""
    view = item.definition
    if not isinstance(view, MaterializedView) or len(view.past) < 2:
        return item
    earlier, last = view.past[-2:]
    alike = msgspec.structs.replace(last, global_id=earlier.global_id, as_of=earlier.as_of)
    columns = [version.columns for version in item.versions[-3:-1]]
    if alike != earlier or columns[0] != columns[1] or last.global_id in meant:
        return item
    return msgspec.structs.replace(
        item,
        versions=(*item.versions[:-2], item.versions[-1]),
        definition=msgspec.structs.replace(view, past=view.past[:-1]),
    )
