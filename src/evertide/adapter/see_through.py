"""Work that a cancel or a timeout comes too late for."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

T = TypeVar("T")


async def see_through(
    work: Coroutine[None, None, T], is_done: Callable[[T], bool] = lambda _: True
) -> T:
    """The result of a commit, also if whoever asked is cancelled while it is under way.

    The store may do it all the same, and a client that is told "canceled" believes that nothing was
    done. As in PostgreSQL, a commit that has begun is waited for. Whoever is cancelled twice really
    wants to leave, and learns nothing. Where `is_done` says of the result that nothing was, the
    cancel counts after all.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.cancelled():
            raise
        outcome = await task
        if not is_done(outcome):
            raise
        return outcome


def raise_late_cancel() -> None:
    """A cancel that came too late for the commit comes in time for the wait after it."""
    current = asyncio.current_task()
    if current is not None and current.cancelling():
        raise asyncio.CancelledError
