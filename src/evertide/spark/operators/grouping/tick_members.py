"""The values of the groups that a tick touches: those of before, and the tick's own so far."""

from collections.abc import Sequence

import numpy as np

from evertide.expr.columnar.batch import equal_rows
from evertide.expr.columnar.codes import identity_codes
from evertide.expr.columnar.column import Column, Ints, Mask, concat
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.operators.grouping.reduce_slots import Evaluated, ReduceShape


class TickMembers:
    """`keys` and `hashes` are those of the groups, `groups` says which group each row is in."""

    def __init__(
        self,
        kept: Arrangement | None,
        shape: ReduceShape,
        keys: Sequence[Column],
        hashes: Ints,
        given: Evaluated,
        groups: Ints,
    ) -> None:
        self._kept = kept
        self._shape = shape
        self.keys = keys
        self._hashes = hashes
        self.given = given
        self.groups = groups
        self._so_far: Mask = np.zeros(len(groups), np.bool_)

    def take_in(self, at: Mask | None) -> None:
        """The tick's changes of one more timestamp; None: all of them."""
        if at is None:
            self._so_far = np.ones(len(self.groups), np.bool_)
        else:
            self._so_far = self._so_far | at

    def values(self, groups: Ints, column: int) -> tuple[Ints, Column, Ints]:
        """Of these groups the values of an argument that are not NULL: group, value, how often."""
        assert self._kept is not None, "values that are looked at are kept"
        keys = [key.take(groups) for key in self.keys]
        where, found = self._kept.find(keys, self._hashes[groups])
        place = len(self.keys) + self._shape.members.index(column)
        wanted = np.zeros(len(self._hashes), np.bool_)
        wanted[groups] = True
        mine = self._so_far & wanted[self.groups]
        numbers = np.concatenate([groups[where], self.groups[mine]])
        values = concat([found.columns[place], self.given.arguments[column].take(mine)])
        diffs = np.concatenate([found.diffs, self.given.diffs[mine]])
        there = ~values.null_mask
        if not there.all():
            numbers, values, diffs = numbers[there], values.take(there), diffs[there]
        if not len(numbers):
            return numbers, values, diffs
        starts, order = equal_rows([numbers, *identity_codes(values)])
        sums = np.add.reduceat(diffs[order], starts)
        places = order[starts][sums != 0]
        return numbers[places], values.take(places), sums[sums != 0]
