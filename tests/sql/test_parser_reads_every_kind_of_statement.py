"""One of each: a statement as users write it, and the one form that is printed and stored.

statements.txt is the table: a statement on a line, and behind an arrow its printed form if that
is another.
"""

from pathlib import Path

import pytest

from evertide.sql.parser.entry import parse_statement, parse_statements
from evertide.sql.pretty import to_sql
from evertide.sql.syntax.statement import Statement


def cases() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in (Path(__file__).parent / "statements.txt").read_text("utf-8").splitlines():
        if line.startswith("  -> "):
            found[-1] = (found[-1][0], line.removeprefix("  -> "))
        elif line and not line.startswith("#"):
            found.append((line, line))
    return found


@pytest.mark.parametrize(("written", "printed"), cases())
def test_a_statement_is_read_and_printed(written: str, printed: str) -> None:
    tree = parse_statement(written)
    assert to_sql(tree) == printed
    assert parse_statement(printed) == tree


def test_the_table_has_every_kind_of_statement() -> None:
    kinds = {type(parse_statement(written)) for written, _ in cases()}
    assert kinds == set(Statement.__args__)


def test_comments_and_blanks_leave_no_trace() -> None:
    text = "/* a */ SELECT\n\t1 -- one\n + /* b /* c */ */ 2"
    assert to_sql(parse_statement(text)) == "SELECT 1 + 2"


def test_a_text_may_hold_many_statements() -> None:
    statements = parse_statements(";; SELECT 1;\nBEGIN ; ;COMMIT;")
    assert [to_sql(statement) for statement in statements] == ["SELECT 1", "BEGIN", "COMMIT"]
    assert [statement.at for statement in statements] == [3, 13, 22]


def test_a_text_may_hold_none() -> None:
    assert parse_statements(" ; -- nothing\n") == []


def test_guesses_about_the_size_of_groups_leave_no_trace() -> None:
    plain = "SELECT a, sum(b) FROM t GROUP BY a"
    hinted = f"{plain} OPTIONS (AGGREGATE INPUT GROUP SIZE = 100, LIMIT INPUT GROUP SIZE 5)"
    assert parse_statement(hinted) == parse_statement(plain)
    assert parse_statement("SELECT 1 FROM t options") != parse_statement("SELECT 1 FROM t")
