"""Compares what an expression gives here and in PostgreSQL, and says why where they differ."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

import psycopg

from evertide.expr.text_output import format_text
from evertide.vocab.datum import Datum
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import INT4, NUMERIC, Kind, SqlType
from tests.expr.deviations import (
    DEVIATIONS,
    INEXACT,
    JUNCTION,
    SINGLE,
    SUBSCRIPT,
    ZEROS,
    Answer,
)
from tests.expr.own_answers import DEFINITION, TABLE, Outcome, OwnAnswers
from tests.expr.postgres_oracle import agree, ask, literal
from tests.expr.random_expressions import TYPES, Maker, Node, fill

# PostgreSQL may take a while for what is refused here, and has no limit of ours.
GIVEN_UP = ("57014", "54000")
ROWS = 5
PER_SEED = 50


@dataclass
class Tally:
    """What became of the expressions of a run."""

    compared: int = 0
    failed: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)


class Comparison:
    """One seed: a table of random rows on both systems."""

    def __init__(self, seed: int, connection: psycopg.Connection) -> None:
        self._maker = Maker(seed)
        self._connection = connection
        self._label = f"seed {seed}"
        rows = [self._maker.row(number) for number in range(ROWS)]
        self._own = OwnAnswers(rows)
        connection.execute(f"DROP TABLE IF EXISTS {TABLE}")
        connection.execute(DEFINITION.replace("TABLE", "TEMPORARY TABLE", 1))
        for row in rows:
            shown = [literal(t, datum) for t, datum in zip((INT4, *TYPES), row, strict=True)]
            connection.execute(f"INSERT INTO {TABLE} VALUES ({', '.join(shown)})")

    def run(self, count: int, tally: Tally) -> None:
        """So many expressions."""
        for _ in range(count):
            node = self._maker.expression()
            for problem in self._differences(node, tally):
                tally.unexplained.append(f"{self._label}: {problem}\n  in {node.text()}")
            tally.compared += 1

    def _differences(self, node: Node, tally: Tally) -> Iterator[str]:
        theirs, oid = self._theirs(node)
        try:
            scalar, sql_type = self._own.scalar(node.text())
        except SqlError as error:
            yield f"refused with {error.code} {error}"
            return
        if oid and sql_type.oid != oid:
            yield f"type {sql_type} instead of {oid}"
            return
        ours = self._own.outcomes(scalar)
        for position, (own, their) in enumerate(zip(ours, theirs, strict=True)):
            if own[1] is not None:
                tally.failed += 1
            if their[1] in GIVEN_UP or _alike(sql_type, own, their):
                continue
            reason, problem = self._explain(node, position)
            tally.explained[reason] += 1
            if problem:
                shown = f"{own[1] or own[0]!r} instead of {their[1] or their[0]!r}"
                yield f"row {self._own.rows[position]}: {shown}: {problem}"

    def _theirs(self, node: Node) -> tuple[list[tuple[str | None, str | None]], int]:
        """One answer for each row, and the type. Constants that PostgreSQL can see it computes
        with before it looks at rows, even in branches that none of them takes."""
        expression = node.text(lambda constant: f"coalesce((SELECT {constant}))")
        whole = self._connection.pgconn.exec_(
            f"SELECT {expression} FROM {TABLE} ORDER BY id".encode()
        )
        if whole.status == psycopg.pq.ExecStatus.TUPLES_OK:
            texts = [whole.get_value(row, 0) for row in range(whole.ntuples)]
            found = [(None if text is None else text.decode(), None) for text in texts]
            return [(text, code) for text, code in found], whole.ftype(0)
        described = self._connection.pgconn.exec_(
            f"SELECT {expression} FROM {TABLE} LIMIT 0".encode()
        )
        rows = range(len(self._own.rows))
        answers = [
            ask(self._connection, f"{expression} FROM {TABLE} WHERE id = {row}") for row in rows
        ]
        return answers, described.ftype(0)

    def _explain(self, node: Node, position: int) -> tuple[str, str]:
        """(reason, "") where a part of the expression deviates for a reason that is listed, else
        ("unexplained", the innermost part that differs)."""
        reason = ""
        for part in _postorder(node):
            found = self._explain_part(part, position)
            if found is None:
                continue
            if found[1]:
                return found
            reason = reason or found[0]
        return (reason, "") if reason else ("unexplained", "though no part differs by itself")

    def _explain_part(self, part: Node, position: int) -> tuple[str, str] | None:
        """Asks both systems for the part alone, of the values that its own parts have here."""
        if not part.parts:
            return None
        inner = [self._outcome(one, position) for one in part.parts]
        failing = any(code is not None for _, code in inner)
        if failing:
            return _reason_of_failing(part, inner)
        values = [value for value, _ in inner]
        shown = [literal(one.type, value) for one, value in zip(part.parts, values, strict=True)]
        expression = fill(part.form, shown)
        theirs = ask(self._connection, expression)
        ours = self._outcome(part, position)
        if _same(part.type, ours, theirs):
            return self._explain_zeros(part, position)
        if part.function is not None:
            answer = Answer(part.function, tuple(values), *ours, *theirs)
            for name, applies in DEVIATIONS.items():
                if applies(answer):
                    return name, ""
        if _alike(part.type, ours, theirs):
            return INEXACT, ""
        if part.type.kind is Kind.CHAR and not str(values).isascii():
            return SINGLE, ""
        shown_difference = f"{ours[1] or ours[0]!r} instead of {theirs[1] or theirs[0]!r}"
        return "unexplained", f"{expression} is {shown_difference}"

    def _explain_zeros(self, part: Node, position: int) -> tuple[str, str] | None:
        """Text of a number that has trailing zeros there."""
        for one in part.parts:
            if NUMERIC in (one.type, one.type.element) and part.type != one.type:
                own, (theirs, _) = self._outcome(one, position)[0], self._theirs(one)[0][position]
                if own is not None and theirs not in (None, format_text(one.type, own)):
                    return ZEROS, ""
        return None

    def _outcome(self, node: Node, position: int) -> Outcome:
        scalar, _ = self._own.scalar(node.text())
        return self._own.outcomes(scalar)[position]


def _reason_of_failing(part: Node, inner: list[Outcome]) -> tuple[str, str] | None:
    """Why an error in one of its parts may count in one system only."""
    if " AND " in part.form or " OR " in part.form or " IN " in part.form:
        return JUNCTION, ""
    if part.function is not None and part.function.name == "array_get" and inner[0] == (None, None):
        return SUBSCRIPT, ""
    return None


def _postorder(node: Node) -> Iterator[Node]:
    for part in node.parts:
        yield from _postorder(part)
    yield node


def _alike(sql_type: SqlType, ours: Outcome, theirs: tuple[str | None, str | None]) -> bool:
    """Both fail, or both give a value that counts as the same."""
    if ours[1] is not None or theirs[1] is not None:
        return ours[1] is not None and theirs[1] is not None
    return agree(sql_type, ours[0], theirs[0])


def _same(sql_type: SqlType, ours: Outcome, theirs: tuple[str | None, str | None]) -> bool:
    """Not even a digit differs."""
    if not _alike(sql_type, ours, theirs) or ours[1] != theirs[1]:
        return False
    if sql_type.kind is Kind.NUMERIC and ours[0] is not None and theirs[0] is not None:
        return _equal(ours[0], Decimal(theirs[0]))
    return True


def _equal(ours: Datum, theirs: Decimal) -> bool:
    assert isinstance(ours, Decimal)
    return ours == theirs or (ours.is_nan() and theirs.is_nan())
