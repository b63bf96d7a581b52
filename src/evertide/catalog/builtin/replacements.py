"""Rows about materialized views that replace others, and about the definitions they have had."""

from collections.abc import Iterable

from evertide.catalog.builtin.relation import Viewpoint
from evertide.catalog.objects import MaterializedView
from evertide.vocab.datum import Row


def replacements(at: Viewpoint) -> Iterable[Row]:
    for item in at.snapshot.items.values():
        if item.replacement is not None:
            yield item.item_id, item.replacement.target


def view_versions(at: Viewpoint) -> Iterable[Row]:
    """Earlier texts are shown as they were, under the names that things had then."""
    for item in at.snapshot.items.values():
        if not isinstance(item.definition, MaterializedView):
            continue
        past = item.definition.past
        for number, version in enumerate(past, 1):
            yield item.item_id, number, version.global_id, version.create_sql, False
        yield item.item_id, len(past) + 1, item.global_id, item.create_sql, True
