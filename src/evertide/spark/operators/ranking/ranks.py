"""Rows of many groups in order: by group, by ORDER BY, by the whole row, by its looks.

It is the order of `order_key` followed by `whole_row_key`, by columns. Most rows are told apart by
the group and the first column, so the others are looked at only where there is still a tie.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evertide.expr.columnar.batch import Batch
from evertide.expr.columnar.codes import looks_codes, order_codes
from evertide.expr.columnar.column import Column, Ints, Mask
from evertide.expr.relation import OrderKey, Types
from evertide.expr.row_key import is_ambiguous

# Of an integer that must not become negative.
_MOST_BITS: Final = 62


@dataclass(frozen=True, slots=True)
class RowOrder:
    """Columns in the order in which they are compared, and those whose looks come last."""

    types: Types
    keys: tuple[OrderKey, ...]
    looks: tuple[int, ...]

    @classmethod
    def of(cls, types: Types, order: Sequence[OrderKey], group: Sequence[int] = ()) -> "RowOrder":
        """A column that has been compared need not be compared again, nor one that is equal within
        a group anyway; what it looks like may still differ."""
        keys: dict[int, OrderKey] = {}
        for key in (*order, *map(OrderKey, range(len(types)))):
            if key.column not in group:
                keys.setdefault(key.column, key)
        looks = tuple(i for i, sql_type in enumerate(types) if is_ambiguous(sql_type))
        return cls(types, tuple(keys.values()), looks)

    def codes(self, key: OrderKey, column: Column) -> list[Ints]:
        """How the values of one column compare, the most significant first."""
        return order_codes(
            self.types[key.column],
            column,
            descending=key.descending,
            nulls_first=key.nulls_first,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """`order`: places of rows, sorted; `new`: where, in that order, a row differs from the last."""

    order: Ints
    new: Mask

    @property
    def ranks(self) -> Ints:
        """Which of the different rows each one is, in that order."""
        return self.new.cumsum() - 1

    def where(self, kept: Mask) -> "Ranked":
        """Without some rows; of identical rows all go or none."""
        return Ranked(self.order[kept], self.new[kept])


def rank_rows(row_order: RowOrder, groups: Ints, batch: Batch) -> Ranked:
    """Sort these rows, which are not none, within their groups."""
    codes: list[Ints] = []
    if row_order.keys:
        first = row_order.keys[0]
        codes = row_order.codes(first, batch.columns[first.column])
    order = np.argsort(packed((groups, *codes)))
    new = np.zeros(len(order), np.bool_)
    new[0] = True
    _mark_new(new, None, [code[order] for code in (groups, *codes)])
    for key in row_order.keys[1:]:
        tied = _tied(new)
        if not len(tied):
            return Ranked(order, new)
        column = batch.columns[key.column].take(order[tied])
        _refine(order, new, tied, row_order.codes(key, column))
    for column_at in row_order.looks:
        tied = _tied(new)
        if not len(tied):
            break
        column = batch.columns[column_at].take(order[tied])
        _refine(order, new, tied, looks_codes(batch.types[column_at], column))
    return Ranked(order, new)


def packed(codes: Sequence[Ints]) -> Ints:
    """One code that compares as these do one after the other; there is at least one row.

    Sorting one array, whatever becomes of ties, is many times quicker than sorting by several.
    """
    whole, bits = _from_zero(codes[0])
    for code in codes[1:]:
        own, own_bits = _from_zero(code)
        if bits + own_bits > _MOST_BITS:
            whole, bits = _from_zero(_dense(whole))
            own, own_bits = _from_zero(_dense(own))
        assert bits + own_bits <= _MOST_BITS, "so many rows do not fit into memory"
        whole, bits = (whole << own_bits) | own, bits + own_bits
    return whole


def _from_zero(code: Ints) -> tuple[Ints, int]:
    """The code less its least value, and how many bits that needs; 64 if it does not fit."""
    least, greatest = int(code.min()), int(code.max())
    bits = (greatest - least).bit_length()
    return (code, bits) if least == 0 or bits > _MOST_BITS else (code - least, bits)


def _dense(code: Ints) -> Ints:
    """The same order in numbers from 0 on, without gaps."""
    order = np.argsort(code)
    ordered = code[order]
    dense = np.zeros(len(code), np.int64)
    dense[order[1:]] = (ordered[1:] != ordered[:-1]).cumsum()
    return dense


def _tied(new: Mask) -> Ints:
    """Where a row is so far equal to the one before it or behind it."""
    tied = ~new
    tied[:-1] |= ~new[1:]
    return np.flatnonzero(tied)


def _refine(order: Ints, new: Mask, tied: Ints, codes: list[Ints]) -> None:
    """Sort ties by one more column. Nearly always they are in order, or identical: no sorting."""
    runs = new.cumsum()[tied]
    together = runs[1:] == runs[:-1]
    if any(((code[1:] < code[:-1]) & together).any() for code in codes):
        places = np.argsort(packed((runs, *codes)))
        order[tied] = order[tied][places]
        codes = [code[places] for code in codes]
    _mark_new(new, tied, codes)


def _mark_new(new: Mask, at: Ints | None, codes: Sequence[Ints]) -> None:
    """Where a code differs from the one before, a new row starts."""
    differs = np.zeros(len(new) if at is None else len(at), np.bool_)
    for code in codes:
        differs[1:] |= code[1:] != code[:-1]
    if at is None:
        new |= differs
    else:
        new[at] |= differs


def are_beyond(codes: Sequence[Ints], places: Ints, others: Ints) -> Mask:
    """Where what is at `places` compares greater than what is at `others`."""
    beyond = np.zeros(len(places), np.bool_)
    equal = np.ones(len(places), np.bool_)
    for code in codes:
        one, other = code[places], code[others]
        beyond |= equal & (one > other)
        equal &= one == other
    return beyond
