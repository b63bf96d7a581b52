"""Rows compared by what they mean: two spellings of one object are equal.

Whatever decodes is compared as an object, so that a default that is written out equals one that is
left out. Rows of another version are compared as JSON.
"""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Final, TypeAlias

from evertide.catalog.durable.codec import CorruptCatalog, decode_object, encode_object
from evertide.catalog.durable.hiding import hidden_verifiers
from evertide.catalog.durable.log import RowUpdate
from evertide.catalog.durable.rows import StoredRow
from evertide.vocab.timestamp import Timestamp

# So many differences are told in words, of the others only their number.
_TOLD: Final = 5

# Multiplicities of rows, at their timestamps where those matter.
_Sums: TypeAlias = Counter[tuple[StoredRow, Timestamp | None]]


def canonical(row: StoredRow) -> StoredRow:
    """The one spelling of what a row means."""
    try:
        return encode_object(decode_object(row))
    except CorruptCatalog:
        return StoredRow(row.kind, _canonical_json(row.key), _canonical_json(row.value))


def rows_apart(
    first: Iterable[StoredRow], second: Iterable[StoredRow], names: tuple[str, str]
) -> str | None:
    """What only one of them has, in words; None if they mean the same."""
    return _apart(Counter((row, None) for row in first), Counter((r, None) for r in second), names)


def updates_apart(
    first: Iterable[RowUpdate], second: Iterable[RowUpdate], names: tuple[str, str]
) -> str | None:
    """The same for updates, each at its own timestamp."""
    return _apart(_summed(first), _summed(second), names)


def _summed(updates: Iterable[RowUpdate]) -> _Sums:
    sums: _Sums = Counter()
    for update in updates:
        sums[update.row, update.ts] += update.diff
    return sums


def _apart(first: _Sums, second: _Sums, names: tuple[str, str]) -> str | None:
    first.subtract(second)
    if not any(first.values()):
        return None
    # Only what is spelled differently has to be understood.
    apart: _Sums = Counter()
    for (row, ts), count in first.items():
        if count:
            apart[canonical(row), ts] += count
    told = [_in_words(row, ts, n, names) for (row, ts), n in sorted(apart.items(), key=str) if n]
    if not told:
        return None
    more = f"; and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
    return "; ".join(told[:_TOLD]) + more


def _in_words(row: StoredRow, ts: Timestamp | None, count: int, names: tuple[str, str]) -> str:
    """Whoever has a row, or takes one away that the other keeps, is named with it."""
    when = "" if ts is None else f" at {ts}"
    value = hidden_verifiers(row.value)
    return f"{names[0] if count > 0 else names[1]} has {row.kind} {row.key} = {value}{when}"


def _canonical_json(text: str) -> str:
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except ValueError:
        return text
