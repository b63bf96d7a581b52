"""Entries by the encoded key of some columns, as arrangements have them."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias, cast

from evertide.expr.columnar.batch import Entry
from evertide.expr.relation import Types
from evertide.spark.arrangements.key_parts import KeyParts
from evertide.vocab.datum import Datum

Keyed: TypeAlias = dict[bytes, list[Entry]]


class Parted(NamedTuple):
    """Entries by key; `parts` are what the keys were encoded from, in the order of the keys.

    None: some key was encoded from several.
    """

    keyed: Keyed
    parts: list[Datum] | None


class ByKey:
    """Takes rows apart by the columns of a key.

    Each different value is encoded once: of many rows that are joined with few, most have a value
    that was seen before.
    """

    __slots__ = ("_parts", "_single", "columns")

    def __init__(self, types: Types, columns: tuple[int, ...]) -> None:
        self.columns = columns
        self._parts = KeyParts.of(types, columns)
        self._single = len(columns) == 1

    def __call__(self, entries: Sequence[Entry], *, drop_nulls: bool) -> Parted:
        """Entries with one key in the order they came; NULLs may be left out."""
        pick = self._parts.pick
        parts: dict[Datum, list[Entry]] = {}
        for entry in entries:
            part = pick(entry[0])
            group = parts.get(part)
            if group is None:
                parts[part] = [entry]
            else:
                group.append(entry)
        if drop_nulls:
            parts = self._without_nulls(parts)
        keys = self._parts.encode_all(parts)
        keyed = dict(zip(keys, parts.values(), strict=True))
        if len(keyed) == len(keys):
            return Parted(keyed, list(parts))
        # What Python finds different SQL finds equal.
        keyed = {}
        for key, group in zip(keys, parts.values(), strict=True):
            keyed.setdefault(key, []).extend(group)
        return Parted(keyed, None)

    def _without_nulls(self, parts: dict[Datum, list[Entry]]) -> dict[Datum, list[Entry]]:
        if self._single:
            parts.pop(None, None)
            return parts
        several = cast("dict[tuple[Datum, ...], list[Entry]]", parts)
        return {part: group for part, group in several.items() if None not in part}
