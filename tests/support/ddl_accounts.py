"""Whether what clients were told of their DDL can all be true, given the audit log.

The audit log puts all changes into one order. Played in that order, each acknowledged statement
must have been possible and must have left exactly its events; and whoever began after another was
told must find what the other did. Whoever was refused, or looked, must have been right at some
moment between asking and being told.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.ddl_model import DONE, FIRST, REFUSALS, SKIPPED, Event, State, effect, outcomes
from tests.support.ddl_statements import Kind, Statement

NEVER = 1 << 62


class Unaccounted(AssertionError):
    """Something that a client was told cannot be true."""


def require(true: bool, complaint: str) -> None:
    if not true:
        raise Unaccounted(complaint)


@dataclass(slots=True)
class Told:
    """A statement; when it was sent and answered, counted by one clock; and the answer.

    `outcome` is `done`, `skipped` or an SQLSTATE; None while nobody knows. A user sends one
    statement after the other, so the order of its changes is known.
    """

    user: str
    statement: Statement
    sent: int
    outcome: str | None = None
    replied: int = NEVER

    def __str__(self) -> str:
        return f"{self.user}: {self.statement.sql} [{self.sent}, {self.replied}] {self.outcome}"


@dataclass(frozen=True, slots=True)
class Looked:
    """All names that somebody saw at once."""

    who: str
    names: Mapping[str, Kind]
    sent: int
    replied: int


@dataclass(frozen=True, slots=True)
class Audited:
    """One entry of the audit log."""

    event_id: int
    user: str | None
    event: Event


@dataclass(slots=True)
class Ledger:
    """What clients were told, by users. `tick` is the clock of all of them."""

    tick: Callable[[], int]
    told: list[Told] = field(default_factory=list)
    looked: list[Looked] = field(default_factory=list)

    def send(self, user: str, statement: Statement) -> Told:
        told = Told(user, statement, self.tick())
        self.told.append(told)
        return told

    def reply(self, told: Told, outcome: str) -> None:
        require(outcome in REFUSALS | {DONE, SKIPPED}, f"{told} was told {outcome}")
        told.outcome, told.replied = outcome, self.tick()

    def count(self, outcome: str) -> int:
        return sum(told.outcome == outcome for told in self.told)


def audited(
    event_id: int, user: str | None, event_type: str, object_type: str, details: Any
) -> Audited | None:
    """An entry as the log shows it; None for objects that no statement here is about."""
    if object_type not in set(Kind):
        return None
    kind, names = Kind(object_type), details.get("new_name", details)
    name = names["name"] if kind is Kind.SCHEMA else f"{names['schema']}.{names['item']}"
    return Audited(event_id, user, Event(event_type, kind, name))


@dataclass(slots=True)
class Accounts:
    """The changes in their order; `states[n]` is what the first n of them left."""

    changes: list[Told] = field(default_factory=list)
    states: list[State] = field(default_factory=lambda: [FIRST])

    def explains(self, sent: int, replied: int, true_of: Callable[[State], bool]) -> bool:
        """Whether it was so at some moment between these two."""
        first, last = 0, len(self.changes)
        for position, change in enumerate(self.changes):
            if change.replied < sent:
                first = position + 1
            if change.sent > replied:
                last = min(last, position)
        return any(true_of(self.states[position]) for position in range(first, last + 1))


def account(events: Iterable[Audited], ledger: Ledger) -> Accounts:
    """Everything played again in the order of the audit log; raises Unaccounted."""
    accounts = _play(list(events), ledger.told)
    _check_order(accounts.changes)
    for told in ledger.told:
        if told.outcome not in (None, DONE):
            _check_refused(told, accounts)
    for looked in ledger.looked:
        _check_looked(looked, accounts)
    return accounts


def kinds(state: State) -> dict[str, Kind]:
    """The names and what they are, as somebody sees it who looks."""
    return {name: thing.kind for name, thing in state.items()}


def _play(events: Sequence[Audited], told: Sequence[Told]) -> Accounts:
    waiting: dict[str | None, deque[Told]] = {}
    for one in told:
        if one.outcome in (None, DONE):
            waiting.setdefault(one.user, deque()).append(one)
    numbers = [one.event_id for one in events]
    require(numbers == sorted(set(numbers)), "events have numbers of their own, in order")
    accounts, coming = Accounts(), deque(events)
    while coming:
        _play_next(coming, waiting, accounts)
    lost = [one for left in waiting.values() for one in left if one.outcome is not None]
    require(not lost, f"acknowledged, and lost: {', '.join(map(str, lost))}")
    return accounts


def _play_next(
    coming: deque[Audited], waiting: Mapping[str | None, deque[Told]], accounts: Accounts
) -> None:
    """The next change; its events stand together."""
    first = coming[0]
    queue = waiting.get(first.user)
    require(bool(queue), f"{first} is of nobody who was told so")
    assert queue is not None
    told, before = queue.popleft(), accounts.states[-1]
    require(
        DONE in outcomes(before, told.statement),
        f"{told} was done, where only {outcomes(before, told.statement)} is possible",
    )
    after, wanted = effect(before, told.statement)
    found = [coming.popleft() for _ in range(min(wanted.total(), len(coming)))]
    require(
        Counter(one.event for one in found) == wanted
        and {one.user for one in found} == {told.user},
        f"{told} left {found} instead of {wanted}",
    )
    accounts.changes.append(told)
    accounts.states.append(after)


def _check_order(changes: Sequence[Told]) -> None:
    """Who was told before another began stands before it."""
    earliest: Told | None = None
    for change in reversed(changes):
        if earliest is not None:
            require(
                change.sent <= earliest.replied, f"{change} stands before {earliest}, and is later"
            )
        if earliest is None or change.replied < earliest.replied:
            earliest = change


def _check_refused(told: Told, accounts: Accounts) -> None:
    require(
        accounts.explains(
            told.sent, told.replied, lambda state: told.outcome in outcomes(state, told.statement)
        ),
        f"{told} is not true of any moment meanwhile",
    )


def _check_looked(looked: Looked, accounts: Accounts) -> None:
    require(
        accounts.explains(looked.sent, looked.replied, lambda state: kinds(state) == looked.names),
        f"{looked.who} saw {_differences(looked.names, accounts.states[-1])} in [{looked.sent},"
        f" {looked.replied}], which was never so meanwhile",
    )


def _differences(seen: Mapping[str, Kind], state: State) -> str:
    last = kinds(state)
    more, less = sorted(seen.items() - last.items()), sorted(last.items() - seen.items())
    return f"all that there is in the end, but for {more} more and {less} less"
