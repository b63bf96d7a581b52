"""Regular expressions match what Python's engine matches, without ever running away."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.table import by_signature
from evertide.expr.regex.captures import find, is_found
from evertide.expr.regex.program import compile_pattern
from evertide.expr.regex.syntax import Options
from evertide.vocab.datum import Datum
from evertide.vocab.errors import SqlError

atoms = st.sampled_from(
    ["a", "b", "c", ".", "[ab]", "[^a]", "[a-c]", r"\d", r"\w", "^", "$", r"\b"]
)
quantifiers = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,2}", "*?", "+?"])


def _quantified(pair: tuple[str, str]) -> str:
    atom, quantifier = pair
    return atom if atom in ("^", "$", r"\b") else atom + quantifier


pieces = st.tuples(atoms, quantifiers).map(_quantified)
patterns = st.recursive(
    st.lists(pieces, max_size=4).map("".join),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, quantifiers).map(lambda p: f"(?:{p[0]}){p[1]}"),
        inner.map(lambda p: f"({p})"),
    ),
    max_leaves=5,
)
texts = st.text("abc1 \n", max_size=12)


@settings(max_examples=600, deadline=None)
@given(patterns, texts)
def test_finding_agrees_with_python(pattern: str, text: str) -> None:
    expected = re.compile(pattern.replace("$", r"\Z"), re.DOTALL).search(text)
    program = compile_pattern(pattern, Options())
    assert is_found(program, text) == (expected is not None)
    if re.search(r"\)[*+?{]", pattern):
        return  # engines differ in how often they repeat a group that matched nothing
    found = find(program, text)
    span = None if found is None else (found.start, found.end)
    assert span == (None if expected is None else expected.span())


def _call(signature: str, *arguments: Datum) -> Datum:
    row = by_signature(signature)
    assert isinstance(row, ScalarFunction)
    return row.body(*arguments)


BOMBS = [
    ("(a+)+$", "a" * 5000 + "!"),
    ("(a|aa)+$", "a" * 5000 + "!"),
    ("(.*)(.*)(.*)(.*)(.*)x", "y" * 5000),
    ("(x+x+)+y", "x" * 5000),
    ("(a{1,100}){1,20}b", "a" * 2000),
]


@pytest.mark.parametrize(("pattern", "text"), BOMBS)
def test_no_pattern_runs_away(pattern: str, text: str) -> None:
    started = time.monotonic()
    assert _call("~(text,text)", text, pattern) is False
    assert time.monotonic() - started < 20


def test_too_much_work_is_refused() -> None:
    with pytest.raises(SqlError, match="too complex"):
        _call("~(text,text)", "a" * 1_000_000, "(a{1,100}){1,20}b")
    with pytest.raises(SqlError, match="too complex") as raised:
        compile_pattern("(((a{1,1000}){1,1000}){1,1000})", Options())
    assert raised.value.code == "2201B"


@pytest.mark.parametrize("pattern", ["(", ")", "[a", "*", "a**", r"\1", "(?=a)", "a{2,1}", "\\"])
def test_what_is_no_pattern_is_an_error(pattern: str) -> None:
    with pytest.raises(SqlError, match="invalid regular expression") as raised:
        compile_pattern(pattern, Options())
    assert raised.value.code == "2201B"


def test_captures_and_replacements() -> None:
    assert _call("regexp_match(text,text)", "foobarbequebaz", "(bar)(beque)?(x)?") == (
        "bar", "beque", None,
    )  # fmt: skip
    assert _call("regexp_match(text,text)", "abc", "x") is None
    replace = "regexp_replace(text,text,text,text)"
    assert _call(replace, "foobarbaz", "b(..)", r"X\1Y\&", "g") == "fooXarYbarXazYbaz"
    assert _call("regexp_replace(text,text,text)", "aaa", "a", "b") == "baa"
    assert _call(replace, "Thomas", "[MT]", "x", "gi") == "xhoxas"
    assert _call("regexp_split_to_array(text,text)", "a1b22c", r"\d+") == ("a", "b", "c")
    assert _call("regexp_split_to_array(text,text)", "abc", "") == ("a", "b", "c")
    assert _call("substring(text,text)", "foobar", "o(.)b") == "o"


def test_words_and_lines() -> None:
    assert _call("~(text,text)", "say hello world", r"\mhello\M") is True
    assert _call("~(text,text)", "sayhello", r"\mhello") is False
    assert _call("regexp_like(text,text,text)", "a\nb", "^b$", "n") is True
    assert _call("~(text,text)", "a\nb", "^b$") is False
    assert _call("~(text,text)", "STRASSE straße", "(?i)STRASSE STRAßE") is True
