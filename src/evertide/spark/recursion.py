"""Recursions of one-shot queries, solved as those of dataflows are."""

from collections.abc import Sequence

from evertide.expr.budget import Budget
from evertide.expr.group_rows import Counted
from evertide.expr.interpret import Collection
from evertide.expr.recursion import Recursion
from evertide.spark.operators.solver import Solver
from evertide.spark.running_plan import make_plan


def solve(recursion: Recursion, inputs: Sequence[list[Counted]], budget: Budget) -> Collection:
    """What a recursion comes to over these rows of its inputs; for expr.interpret.evaluate."""
    return Solver(recursion, make_plan).solve(inputs, budget)
