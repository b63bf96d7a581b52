"""Goal: a text cut into beginnings and lists is the text that the grammar reads, mistakes included.

Method: texts drawn from pieces, some of which do not belong there, are read both ways. What was not
parsed must have the shape, the constants and the places of what the grammar makes of it.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

import pytest

from evertide.adapter import planning
from evertide.adapter.planning import Listed, Parsed, parse, statements_of
from evertide.sql.parser.pieces import MOST_PIECES, pieces_of
from evertide.sql.plan.refill import shape_of
from evertide.vocab.errors import SqlError

# Statements, or what is wrong and where.
Outcome: TypeAlias = Sequence[Parsed | Listed] | tuple[str, str, int | None]

BEGINNINGS = [
    "INSERT INTO t VALUES ", "insert into s.t(a, b)\nvalues", 'INSERT INTO "T;" (a) VALUES ',
    'INSERT INTO "in (" VALUES ', "INSERT INTO t -- all\n VALUES ",
    "INSERT INTO t /* ; */ VALUES ", "INSERT INTO t SELECT 1 WHERE 1 IN ",
    "INSERT INTO t SELECT * FROM u WHERE a IN ", "DELETE FROM t WHERE id IN ",
    "DELETE FROM ONLY t WHERE id IN ", "delete from t x where x.id in",
    "DELETE FROM t WHERE (id IN ", "DELETE FROM t WHERE id NOT IN ",
    "DELETE FROM t WHERE a + 1 IN ", "DELETE FROM t WHERE f(a) IN ",
    "DELETE FROM t WHERE id IN -- some\n", "DELETE FROM t VALUES ",
    "DELETE FROM t USING u WHERE id IN ", "DELETE FROM t WHERE a = 1 AND id IN ",
    "DELETE FROM t WHERE a = 'x' AND id IN ", "UPDATE t SET a = 1 WHERE id IN ", "VALUES ",
    "INSERT INTO t (values) VALUES ", "INSERT INTO values VALUES ", "INSERT INTO t (a) in ",
    "INSERT t VALUES ", "INSERT INTO t" + "(a" + ", a" * 80 + ") VALUES ",
    "DELETE\tFROM t WHERE a IN",
]  # fmt: skip
LISTS = [
    "(1, 2, 3, 4)", "(1, 'a'), (2, NULL)", "(1)", "('a;b', ')'), ('it''s', 'x')", "(1, 2, 3)",
    "(1, 2, 3, 4, 5, 6)", "(-1, 2.50, .5, 4.)", "(1, 2), (3)", "(1, DEFAULT)", "(1, now())", "()",
    "('a', 'b', 'c', 'd')", "(1, 2, 3, 4", "(1, 2, 3, 4), ", "(a, b, c, d)", "($1, 2, 3, 4)",
    "(E'a', 2, 3, 4)", "((1), 2, 3, 4)", "(1 /* ; */, 2, 3, 4)", "(true, FALSE, null, '')",
    "([1], 2, 3, 4)", "('a' 'b', 2, 3, 4)", "(" + ", ".join(map(str, range(50))) + ")",
]  # fmt: skip
ENDS = ["", "", "", "", " ", "\n", ")", " RETURNING a", " AND b", " -- end", " 'x", "::int", " (1)"]
WORDS = [
    "BEGIN",
    "begin",
    "COMMIT",
    "Rollback",
    "END",
    "BEGIN READ ONLY",
    "SELECT 1",
    "",
    "COMMIT (",
]
SEPARATORS = [";", "; ", " ;\n", ";;", "; -- next\n", " "]


def drawn(draw: Random) -> str:
    """Mostly as it should be; for the rest anything goes."""
    text = draw.choice(["", "", " ", "\n", ";", "/* */"]) if draw.random() < 0.2 else ""
    odd = draw.random() < 0.5
    for _ in range(draw.randint(1, 5)):
        if draw.random() < 0.3:
            text += draw.choice(WORDS if odd else WORDS[:4])
        else:
            beginning = draw.choice(BEGINNINGS if odd else [BEGINNINGS[0], BEGINNINGS[8]])
            listed = beginning.rstrip().lower().endswith("in")
            text += beginning + draw.choice(LISTS if odd else LISTS[:1] if listed else LISTS[:4])
            text += draw.choice(ENDS) if odd else ""
        text += draw.choice(SEPARATORS if odd else SEPARATORS[:3])
    return text if draw.random() < 0.5 else text.rstrip("; \n")


def outcome(read: Callable[[str], Sequence[Parsed | Listed]], text: str) -> Outcome:
    try:
        return read(text)
    except SqlError as error:
        return error.code, error.message, error.position


def require_same(text: str) -> int:
    """How many of its statements were not parsed."""
    whole, cut = outcome(parse, text), outcome(statements_of, text)
    if whole and not isinstance(whole[0], Parsed):
        assert cut == whole
        return 0
    assert len(cut) == len(whole)
    for one, other in zip(cut, whole, strict=True):
        assert isinstance(one, Parsed | Listed)
        assert isinstance(other, Parsed)
        assert one.text == other.text
        if isinstance(one, Parsed):
            assert one.statement == other.statement
            continue
        found = shape_of(other.statement)
        assert found is not None
        assert (one.shape, one.values) == found
        assert (one.values.at, one.values.count) == (found[1].at, found[1].count)
        assert one.parsed().statement == other.statement
    return sum(isinstance(one, Listed) for one in cut)


@pytest.mark.parametrize("seed", range(40))
def test_texts_mean_what_the_grammar_reads(seed: int) -> None:
    draw = Random(seed)
    unparsed = sum(require_same(drawn(draw)) for _ in range(100))
    assert unparsed > 20, "a way that is never taken proves nothing"


def test_every_beginning_with_every_list() -> None:
    for beginning in BEGINNINGS:
        for listed in LISTS:
            for end in ENDS:
                require_same(f"{beginning}{listed}{end}; COMMIT")


BLOCK = "BEGIN; DELETE FROM t WHERE id IN (1, 2, 3, 4); INSERT INTO t VALUES (1), (2); COMMIT"


def test_a_block_of_known_beginnings_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And all of its statements are parsed at once when one has to be."""
    statements_of(BLOCK)
    texts: list[str] = []

    def counted(text: str) -> tuple[Parsed, ...]:
        texts.append(text)
        return planning._parse(text)

    monkeypatch.setattr(planning, "parse", counted)
    _, one, other, _ = statements_of(BLOCK.replace("4", "5"))
    assert not texts
    assert isinstance(one, Listed)
    assert isinstance(other, Listed)
    assert one.parsed() is not other.parsed()
    assert texts == [BLOCK.replace("4", "5")]


def test_the_grammar_counts_long_texts() -> None:
    one = "INSERT INTO t VALUES (1); "
    assert pieces_of(one * MOST_PIECES) is not None
    assert pieces_of(one * (MOST_PIECES + 1)) is None
