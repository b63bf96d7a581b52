"""The guide's table of what differs from PostgreSQL is the one that tests go by."""

from pathlib import Path

from tests.expr.deviations import DEVIATIONS, OF_EXPRESSIONS

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "sql.md"


def test_the_guide_lists_every_deviation_with_its_reason() -> None:
    expected = [(what, applies.__doc__ or "") for what, applies in DEVIATIONS.items()]
    expected += OF_EXPRESSIONS.items()
    rows = [f"| {what} | {why} |" for what, why in expected]
    assert all(why for _, why in expected)
    lines = GUIDE.read_text().splitlines()
    start = lines.index("| what | why |") + 2
    assert lines[start : start + len(rows) + 1] == [*rows, ""]
