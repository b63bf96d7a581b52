"""Plans of statements with a long list of constants, made once for all lists.

What a statement is without its list is its shape (sql/plan/refill.py). The plan of the second one
of a shape is kept, if its own list put into it gives the same plan again; from then on only lists
are read.
"""

from collections.abc import Hashable
from typing import Final, TypeAlias

from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.plans import DeletePlan, InsertPlan, Plan
from evertide.sql.plan.refill import DeleteShape, InsertShape, refill, same_plan, without_list
from evertide.sql.syntax.literal_values import LiteralValues

KEPT: Final = 256
_Key: TypeAlias = tuple[InsertShape | DeleteShape, Hashable]


class Shapes:
    """One adapter's; those that were learned first go first."""

    def __init__(self) -> None:
        # None: seen, and not kept.
        self._plans: dict[_Key, InsertPlan | DeletePlan | None] = {}

    def find(
        self,
        shape: InsertShape | DeleteShape,
        where: Hashable,
        values: LiteralValues,
        snapshot: Snapshot,
    ) -> InsertPlan | DeletePlan | None:
        """The plan with this list, if the shape is known; `where` is all else it depends on."""
        plan = self._plans.get((shape, where))
        if plan is None:
            return None
        return refill(plan, shape, values, snapshot.items[plan.table_id])

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
        if key not in self._plans:
            self._put(key, None)
        elif self._plans[key] is None:
            again = refill(plan, shape, values, snapshot.items[plan.table_id])
            if again is not None and same_plan(again, plan):
                self._put(key, without_list(plan))

    def _put(self, key: _Key, plan: InsertPlan | DeletePlan | None) -> None:
        self._plans[key] = plan
        if len(self._plans) > KEPT:
            del self._plans[next(iter(self._plans))]
