"""Constants that take long to work out: on a thread, so that other sessions go on."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from evertide.adapter.reading.plans import ReadPlan
from evertide.expr.heavy import is_heavy, leaves_work
from evertide.expr.relation import Relation
from evertide.expr.scalar import Literal, Parameter, Scalar, SessionCall
from evertide.expr.transform.fold_constants import fold_constants
from evertide.expr.transform.passes import optimize_at_leisure
from evertide.expr.transform.substitute import substitute

# Threads of their own: a call cannot be stopped halfway, and the threads that rows are made on are
# not to run out while nobody waits for some of these any more.
_THREADS: Final = ThreadPoolExecutor(max_workers=2, thread_name_prefix="at-leisure")


async def worked_out(
    plan: ReadPlan,
    parameters: Sequence[Literal],
    bindings: Mapping[Parameter | SessionCall, Scalar],
) -> Relation | None:
    """The plan's relation with its parameters put in; None: there is no such work in it.

    A cancelled statement is told so at once, though its thread goes on until the call is done.
    """
    if plan.asks_catalog:
        return None  # it is optimised when they are bound
    if not plan.may_be_heavy and not any(is_heavy(literal.value) for literal in parameters):
        return None
    relation = substitute(plan.relation, bindings) if bindings else plan.relation
    relation = fold_constants(relation)
    if not leaves_work(relation):
        return None
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_THREADS, optimize_at_leisure, relation)
