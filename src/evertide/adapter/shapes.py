"""Plans of statements with a long list of constants, made once for all lists.

What a statement is without its list is its shape (sql/plan/refill.py). The plan of the second one
of a shape is kept, if its own list put into it gives the same plan again; from then on only lists
are read.
"""

from collections.abc import Hashable
from typing import Final, TypeAlias

from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.plans import DeletePlan, InsertPlan, Plan
from evertide.sql.plan.refill import DeleteShape, InsertShape, Refill, refilling, same_plan
from evertide.sql.syntax.literal_values import LiteralValues

KEPT: Final = 256
_Key: TypeAlias = tuple[InsertShape | DeleteShape, Hashable]


class Shapes:
    """One adapter's; those that were learned first go first."""

    def __init__(self) -> None:
        # None: seen, and not kept.
        self._refills: dict[_Key, Refill | None] = {}

    def find(
        self, shape: InsertShape | DeleteShape, where: Hashable, values: LiteralValues
    ) -> InsertPlan | DeletePlan | None:
        """The plan with this list, if the shape is known; `where` is all else it depends on."""
        refill = self._refills.get((shape, where))
        return None if refill is None else refill(values)

    def learn(
        self,
        shape: InsertShape | DeleteShape,
        where: Hashable,
        values: LiteralValues,
        snapshot: Snapshot,
        plan: Plan,
    ) -> None:
        """Take note of the plan of a statement that was planned by itself."""
        if not isinstance(plan, InsertPlan | DeletePlan):
            return
        key = (shape, where)
        if key not in self._refills:
            self._put(key, None)
        elif self._refills[key] is None:
            refill = refilling(plan, shape, snapshot.items[plan.table_id])
            again = None if refill is None else refill(values)
            if again is not None and same_plan(again, plan):
                self._put(key, refill)

    def _put(self, key: _Key, refill: Refill | None) -> None:
        self._refills[key] = refill
        if len(self._refills) > KEPT:
            del self._refills[next(iter(self._refills))]
