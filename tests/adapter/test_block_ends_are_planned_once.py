"""Goal: BEGIN, COMMIT and ROLLBACK are the same in every text, unless they say more."""

from evertide.adapter.planning import parse


def test_plain_ends_are_shared_between_texts() -> None:
    first = parse("BEGIN; SELECT 1; COMMIT")
    second = parse("start transaction; DELETE FROM t; commit work; begin; ROLLBACK")
    assert first[0] is second[0] is second[3]
    assert first[2] is second[2]
    assert second[2] is not second[4]
    assert first[1].text == "BEGIN; SELECT 1; COMMIT"


def test_what_says_more_is_planned_for_itself() -> None:
    plain, *others = parse("BEGIN; BEGIN READ ONLY; BEGIN ISOLATION LEVEL SERIALIZABLE")
    assert all(other is not plain and other.statement != plain.statement for other in others)
