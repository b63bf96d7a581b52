"""What must hold of views that replace others, or have had other definitions.

Each oddity and fault is the end of a sentence that begins with the item's name.
"""

from collections.abc import Iterator

from evertide.catalog.objects import Column, Item, MaterializedView
from evertide.catalog.snapshot import Snapshot


def odd_hands(item: Item) -> Iterator[str]:
    """What is wrong with an item's versions and its replacing by itself."""
    if not isinstance(item.definition, MaterializedView):
        if len(item.versions) > 1:
            yield "has more than one version, but is no materialized view"
        return
    view = item.definition
    past = tuple(version.global_id for version in view.past)
    if past != tuple(version.global_id for version in item.versions[:-1]):
        yield "does not have a definition for each of its earlier versions, in their order"
    for older, newer in zip(item.versions, item.versions[1:], strict=False):
        if not extends(older.columns, newer.columns):
            yield f"has the version {newer.global_id}, which does not only add columns at the end"
    if view.handing_over:
        if not view.past:
            yield "is handing over, but has no earlier version"
        elif not {*view.past[-1].depends_on, *view.depends_on_after} <= {*item.depends_on}:
            yield "is handing over, but does not depend on all that both versions do"
    elif view.depends_on_after or view.forward_time:
        yield "says how it is handing over, but is not"
    if view.replacement is not None:
        if view.past or view.handing_over:
            yield "is a replacement, but has had other definitions"
        if view.replacement.target not in item.depends_on:
            yield "is a replacement, but does not depend on its target"


def extends(older: tuple[Column, ...], newer: tuple[Column, ...]) -> bool:
    """Whether all that is new are columns at the end that may be NULL.

    Then readers of the older columns take the leading ones, and rows of before get NULLs.
    """
    added = newer[len(older) :]
    return newer[: len(older)] == older and all(column.nullable for column in added)


def faults_of_hands(item: Item, snapshot: Snapshot) -> Iterator[str]:
    """What an item's versions and its replacing say that others contradict."""
    for global_id in item.planned_against:
        read = snapshot.item_of(global_id)
        if read is None or read.item_id not in item.reads:
            yield f"was planned against {global_id}, which is no version of what it reads"
    if item.replacement is None or not isinstance(item.definition, MaterializedView):
        return
    target = snapshot.items.get(item.replacement.target)
    if target is None:
        return
    if target.shard_id != item.definition.shard_id or target.item_id == item.item_id:
        yield f"is a replacement of item {target.item_id}, but not over its shard"
