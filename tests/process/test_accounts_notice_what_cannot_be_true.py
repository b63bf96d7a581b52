"""The accounts of a race notice what cannot be true: each rule, broken once."""

from itertools import count

import pytest

from tests.support.ddl_accounts import Audited, Ledger, Looked, Unaccounted, account, kinds
from tests.support.ddl_model import DONE, MISSING, SKIPPED, TAKEN, Event
from tests.support.ddl_statements import Drawing, Kind, Statement, create, drop

TABLE = create(Kind.TABLE, "t")
INDEX = create(Kind.INDEX, "i", "t")
CREATED = Event("create", Kind.TABLE, "public.t")
DROPPED = Event("drop", Kind.TABLE, "public.t")


def told(*lines: tuple[str, Statement, str | None]) -> Ledger:
    """One statement after the other: who, what, and the answer."""
    ledger = Ledger(count(1).__next__)
    for user, statement, outcome in lines:
        one = ledger.send(user, statement)
        if outcome is not None:
            ledger.reply(one, outcome)
    return ledger


def audit(*lines: tuple[str, Event]) -> list[Audited]:
    return [Audited(number, user, event) for number, (user, event) in enumerate(lines, 1)]


def test_what_is_true_is_accounted_for() -> None:
    ledger = told(
        ("a", TABLE, DONE),
        ("b", TABLE, TAKEN),
        ("b", INDEX, DONE),
        ("a", drop(Kind.TABLE, "t"), DONE),
        ("b", drop(Kind.TABLE, "t"), MISSING),
    )
    index = Event("create", Kind.INDEX, "public.i"), Event("drop", Kind.INDEX, "public.i")
    events = audit(("a", CREATED), ("b", index[0]), ("a", index[1]), ("a", DROPPED))
    assert kinds(account(events, ledger).states[-1]) == {"public": Kind.SCHEMA}


def test_what_nobody_was_told_of_may_have_happened_or_not() -> None:
    ledger = told(("a", TABLE, None))
    assert len(account([], ledger).changes) == 0
    assert len(account(audit(("a", CREATED)), ledger).changes) == 1


@pytest.mark.parametrize(
    ("ledger", "events", "complaint"),
    [
        (told(("a", TABLE, DONE)), [], "acknowledged, and lost"),
        (told(), audit(("a", CREATED)), "of nobody who was told so"),
        (told(("a", TABLE, DONE)), audit(("a", CREATED), ("a", CREATED)), "of nobody"),
        (told(("a", TABLE, DONE)), audit(("a", DROPPED)), "instead of"),
        (
            told(("a", TABLE, DONE), ("b", TABLE, DONE)),
            audit(("a", CREATED), ("b", CREATED)),
            "where only {'42P07'} is possible",
        ),
        (
            told(("a", TABLE, DONE), ("a", INDEX, DONE), ("b", drop(Kind.TABLE, "t"), DONE)),
            audit(("a", CREATED), ("a", Event("create", Kind.INDEX, "public.i")), ("b", DROPPED)),
            "instead of",
        ),
        (
            told(("a", create(Kind.TABLE, "u"), DONE), ("b", TABLE, DONE)),
            audit(("b", CREATED), ("a", Event("create", Kind.TABLE, "public.u"))),
            "and is later",
        ),
        (told(("a", TABLE, TAKEN)), [], "not true of any moment"),
        (
            told(("a", TABLE, DONE), ("b", drop(Kind.TABLE, "t"), MISSING)),
            audit(("a", CREATED)),
            "not true of any moment",
        ),
        (
            told(
                ("a", TABLE, DONE),
                ("b", Statement(verb="drop", kind=Kind.TABLE, name="t", lenient=True), SKIPPED),
            ),
            audit(("a", CREATED)),
            "not true of any moment",
        ),
    ],
)
def test_what_cannot_be_true_is_noticed(
    ledger: Ledger, events: list[Audited], complaint: str
) -> None:
    with pytest.raises(Unaccounted, match=complaint):
        account(events, ledger)


def test_an_answer_that_nobody_may_get_is_noticed() -> None:
    with pytest.raises(Unaccounted, match="40001"):
        told(("a", TABLE, "40001"))


def test_somebody_who_looks_and_misses_what_was_acknowledged_is_noticed() -> None:
    ledger = told(("a", TABLE, DONE))
    ledger.looked.append(Looked("b", {"public": Kind.SCHEMA}, ledger.tick(), ledger.tick()))
    with pytest.raises(Unaccounted, match="b saw"):
        account(audit(("a", CREATED)), ledger)


def test_drawn_statements_are_of_every_kind() -> None:
    drawing = Drawing("any", "own")
    drawn = [drawing.next() for _ in range(500)]
    assert {one.kind for one in drawn} == set(Kind)
    assert {one.verb for one in drawn} == {"create", "drop", "rename"}
