"""What DDL statements do to names, in a few lines that share nothing with the server.

A state is a dictionary that is never changed: `schema` and `schema.item` to what is there.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from tests.support.ddl_statements import Kind, Statement

DONE: Final = "done"
# IF EXISTS of nothing, IF NOT EXISTS of something: a success that changes nothing.
SKIPPED: Final = "skipped"

TAKEN, TAKEN_SCHEMA = "42P07", "42710"
MISSING, MISSING_SCHEMA = "42P01", "3F000"
WRONG_KIND = "42809"
STILL_NEEDED = "2BP01"
# All that a client who races others may be told; anything else is a fault of the server.
REFUSALS: Final = {TAKEN, TAKEN_SCHEMA, MISSING, MISSING_SCHEMA, WRONG_KIND, STILL_NEEDED}


@dataclass(frozen=True, slots=True)
class Thing:
    """`on`: what it needs, by its full name."""

    kind: Kind
    on: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One entry that a statement leaves in the audit log."""

    verb: str
    kind: Kind
    name: str


State: TypeAlias = Mapping[str, Thing]
FIRST: Final[State] = {"public": Thing(Kind.SCHEMA)}


def full_name(name: str, kind: Kind) -> str:
    """`schema` or `schema.item`."""
    return name if kind is Kind.SCHEMA or "." in name else f"public.{name}"


def outcomes(state: State, statement: Statement) -> set[str]:
    """All that may be said of the statement in this state: of several mistakes, any one."""
    match statement.verb:
        case "create":
            return _outcomes_of_create(state, statement)
        case "drop":
            return _outcomes_of_drop(state, statement)
        case _:
            return _outcomes_of_rename(state, statement)


def _outcomes_of_create(state: State, statement: Statement) -> set[str]:
    name, found = full_name(statement.name, statement.kind), set[str]()
    if statement.kind is Kind.SCHEMA:
        if name not in state:
            return {DONE}
        return {SKIPPED if statement.lenient else TAKEN_SCHEMA}
    if name.split(".")[0] not in state:
        return {MISSING_SCHEMA}
    if statement.on is not None and full_name(statement.on, Kind.TABLE) not in state:
        found.add(MISSING)
    if name in state:
        if statement.lenient:
            found.add(SKIPPED)
        elif not statement.or_replace:
            found.add(TAKEN)
    return found or {DONE}


def _outcomes_of_drop(state: State, statement: Statement) -> set[str]:
    name = full_name(statement.name, statement.kind)
    if name not in state:
        return {SKIPPED} if statement.lenient else _missing(state, name)
    if state[name].kind is not statement.kind:
        return {WRONG_KIND}
    others = _going(state, name) - {name} - _indexes_on(state, name)
    return {STILL_NEEDED} if others and not statement.cascade else {DONE}


def _outcomes_of_rename(state: State, statement: Statement) -> set[str]:
    name, new_name = full_name(statement.name, statement.kind), _new_name(statement)
    if name not in state:
        return {SKIPPED} if statement.lenient else _missing(state, name)
    found = set[str]()
    if state[name].kind is not statement.kind:
        found.add(WRONG_KIND)
    if new_name in state:
        found.add(TAKEN)
    return found or {DONE}


def _missing(state: State, name: str) -> set[str]:
    return {MISSING} if name.split(".")[0] in state else {MISSING_SCHEMA}


def effect(state: State, statement: Statement) -> tuple[State, Counter[Event]]:
    """The state after a statement that was done, and the events it leaves."""
    assert DONE in outcomes(state, statement)
    name, kind = full_name(statement.name, statement.kind), statement.kind
    match statement.verb:
        case "create":
            going = _going(state, name) if name in state else set[str]()
            after = {other: thing for other, thing in state.items() if other not in going}
            on = None if statement.on is None else full_name(statement.on, Kind.TABLE)
            after[name] = Thing(kind, on)
            return after, _dropped(state, going) + Counter([Event("create", kind, name)])
        case "drop":
            going = _going(state, name)
            after = {other: thing for other, thing in state.items() if other not in going}
            return after, _dropped(state, going)
        case _:
            after, new_name = dict(state), _new_name(statement)
            after[new_name] = after.pop(name)
            return after, Counter([Event("alter", kind, new_name)])


def _dropped(state: State, names: set[str]) -> Counter[Event]:
    return Counter(Event("drop", state[name].kind, name) for name in names)


def _new_name(statement: Statement) -> str:
    assert statement.new_name is not None
    return full_name(statement.new_name, statement.kind)


def _indexes_on(state: State, name: str) -> set[str]:
    """They go with what they are on, CASCADE or not."""
    return {one for one, thing in state.items() if thing.kind is Kind.INDEX and thing.on == name}


def _going(state: State, name: str) -> set[str]:
    """All that cannot be without it, and itself."""
    going, looking = {name}, [name]
    while looking:
        gone = looking.pop()
        for other, thing in state.items():
            inside = "." in other and other.split(".")[0] == gone
            if other not in going and (thing.on == gone or inside):
                going.add(other)
                looking.append(other)
    return going
