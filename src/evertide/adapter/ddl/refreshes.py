"""The times of a new view's refreshes, once it is known when it is created."""

from dataclasses import replace

from evertide.sql.plan.plans import CreateMaterializedViewPlan
from evertide.sql.plan.refresh import with_settled_times
from evertide.vocab.errors import DataException
from evertide.vocab.timestamp import EMPTY_FRONTIER, MIN_TS, Timestamp


def with_refreshes(
    plan: CreateMaterializedViewPlan, *, created_at: Timestamp, reads: bool
) -> tuple[CreateMaterializedViewPlan, Timestamp]:
    """The plan with its times settled, and the first of them: from there on the view has contents.

    `reads`: there is something that it reads; a constant is the same at all times.
    """
    assert plan.asked_refresh is not None, "only views with refreshes have such times"
    schedule = plan.asked_refresh.schedule(created_at, reads=reads)
    first = min([schedule.next_at(created_at), *schedule.at])
    if first == EMPTY_FRONTIER:
        raise DataException("the first REFRESH is too far in the future")
    create_sql = with_settled_times(plan.create_sql, created_at)
    return replace(plan, refresh=schedule, create_sql=create_sql), max(first, MIN_TS)
