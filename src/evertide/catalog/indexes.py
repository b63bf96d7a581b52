"""Ways into a snapshot that are derived from its objects: by name, and against a reference."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from evertide.catalog.layered import LayeredMap
from evertide.catalog.objects import CatalogUpdate, ObjectKey, ObjectKind
from evertide.catalog.references import NameKey, names_of, references_of

# What an index is asked for: a name; or a kind, and the key of what objects of it refer to.
_Entry: TypeAlias = tuple[str | int | None, ...]
_Referrers: TypeAlias = LayeredMap[ObjectKey, None]

_NO_REFERRERS: _Referrers = LayeredMap()


@dataclass(frozen=True, slots=True)
class Indexes:
    """Follows every change of a snapshot; costs what the change does, not what there is."""

    # Two keys under one name is a fault that checks.py finds; here both are kept.
    _names: LayeredMap[_Entry, tuple[ObjectKey, ...]] = field(default_factory=LayeredMap)
    _referrers: LayeredMap[_Entry, _Referrers] = field(default_factory=LayeredMap)

    def apply(self, updates: Sequence[tuple[ObjectKey, CatalogUpdate]]) -> "Indexes":
        """After updates, each with its object's key; what goes comes before what comes."""
        return Indexes(_changed_names(self._names, updates), _changed(self._referrers, updates))

    def named(self, name: NameKey) -> tuple[ObjectKey, ...]:
        """Keys of the objects with this name: none, one, or more if the catalog is broken."""
        return self._names.get(name, ())

    def referrers(self, kind: ObjectKind, target: ObjectKey) -> Collection[ObjectKey]:
        """Keys of the objects of one kind that refer to this one."""
        return self._referrers.get((kind.value, *target), _NO_REFERRERS)

    def shared_names(self) -> Iterator[tuple[NameKey, tuple[ObjectKey, ...]]]:
        """Names that more than one object has."""
        return ((name, keys) for name, keys in self._names.items() if len(keys) > 1)


def _changed_names(
    index: LayeredMap[_Entry, tuple[ObjectKey, ...]],
    updates: Sequence[tuple[ObjectKey, CatalogUpdate]],
) -> LayeredMap[_Entry, tuple[ObjectKey, ...]]:
    touched: dict[_Entry, tuple[ObjectKey, ...]] = {}
    for key, update in updates:
        for name in names_of(update.object):
            keys = touched[name] if name in touched else index.look(name, ())
            if update.diff > 0:
                touched[name] = (*keys, key)
            else:
                touched[name] = tuple(other for other in keys if other != key)
    return index.with_filled(touched) if touched else index


def _changed(
    index: LayeredMap[_Entry, _Referrers], updates: Sequence[tuple[ObjectKey, CatalogUpdate]]
) -> LayeredMap[_Entry, _Referrers]:
    gone: dict[_Entry, dict[ObjectKey, None]] = {}
    came: dict[_Entry, dict[ObjectKey, None]] = {}
    for key, update in updates:
        side, kind = (came if update.diff > 0 else gone), key[0]
        for target in references_of(update.object):
            side.setdefault((kind, *target), {})[key] = None
    touched = {
        entry: index.look(entry, _NO_REFERRERS).changed(gone.get(entry, ()), came.get(entry, {}))
        for entry in dict.fromkeys((*gone, *came))
    }
    return index.with_filled(touched) if touched else index
