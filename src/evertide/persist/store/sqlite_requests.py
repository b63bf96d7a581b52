"""What is asked of the one thread that writes to a SQLite file, and how whoever asked is told."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from evertide.persist.news import News
from evertide.vocab.ids import ShardId

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Work: TypeAlias = Callable[[sqlite3.Connection], T]


class Undo(Exception):
    """Raised by work that is to leave nothing behind: this is its outcome nevertheless."""

    def __init__(self, outcome: object) -> None:
        super().__init__(outcome)
        self.outcome = outcome


@dataclass(slots=True)
class Mark:
    """What tells a transaction from all others. Numbers of a writer grow."""

    writer: bytes
    number: int
    # Where it stands: a shard whose row bears it. None: none does yet.
    shard_id: ShardId | None = None


class Single(NamedTuple, Generic[T_co]):
    """A request in one statement, a transaction by itself. It changes one row or nothing.

    If nothing, the request's work is run instead, which knows why.
    """

    statement: str
    arguments: Callable[[Mark], tuple[object, ...]]
    # Whose row then bears the mark.
    shard_id: ShardId
    outcome: T_co


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """It was run to its end, and is durable."""

    value: T


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing of it was done."""

    error: BaseException


Outcome: TypeAlias = Done[object] | Failed


@dataclass(slots=True)
class Request:
    """Work, and whoever waits for it."""

    work: Work[object]
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[object]"
    # Told what came of it on its loop, also if nobody waits for it any more.
    tell: Callable[[object], None] | None
    single: Single[object] | None
    # Changed if it succeeds: other processes are told at once.
    shard_ids: Sequence[ShardId]
    # What they may be told of that, if all of it was done.
    news: Sequence[News]


def deliver(group: Sequence[Request], outcomes: Sequence[Outcome]) -> None:
    """Wake each event loop once."""
    if len(group) == 1:
        _wake(group[0].loop, partial(_settle, group[0], outcomes[0]))
        return
    for loop in {request.loop for request in group}:
        _wake(loop, partial(_settle_all, loop, group, outcomes))


def _wake(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        pass  # that loop has ended, and with it whoever asked


def _settle_all(
    loop: asyncio.AbstractEventLoop, group: Sequence[Request], outcomes: Sequence[Outcome]
) -> None:
    for request, outcome in zip(group, outcomes, strict=True):
        if request.loop is loop:
            _settle(request, outcome)


def _settle(request: Request, outcome: Outcome) -> None:
    error = outcome.error if isinstance(outcome, Failed) else _failure_to_tell(request, outcome)
    future = request.future
    if future.done():
        return  # its asker was cancelled meanwhile
    if error is not None:
        future.set_exception(error)
    elif isinstance(outcome, Done):
        future.set_result(outcome.value)


def _failure_to_tell(request: Request, outcome: Done[object]) -> Exception | None:
    if request.tell is not None:
        try:
            request.tell(outcome.value)
        except Exception as error:  # noqa: BLE001 - not this loop's to handle: the asker is told
            return error
    return None
