"""The lexer finds PostgreSQL's tokens and knows where each one begins."""

import pytest

from evertide.sql import lexer
from evertide.sql.lexer import NUMBER, PARAMETER, QUOTED, STRING, tokenize
from evertide.vocab.errors import SqlSyntaxError, StatementTooComplex

Pairs = list[tuple[str, str]]
OPERATORS = "-> ->> #> #>> @> <@ ? ?| ?& || ~ ~* !~ !~* <= >= <> << >> && @@ <-> @- => = < > + - *"


def pairs(text: str) -> Pairs:
    tokens = tokenize(text)
    return list(zip(tokens.keys, tokens.values, strict=True))[:-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Select", [("SELECT", "Select")]),
        ('"Select"', [(QUOTED, "Select")]),
        ('"a""b"', [(QUOTED, 'a"b')]),
        ("'it''s'", [(STRING, "it's")]),
        ("'a\\n'", [(STRING, "a\\n")]),
        (r"E'a\n\t\\\'\x41\u00e9\U0001F600\101'", [(STRING, "a\n\t\\'A\u00e9\U0001f600A")]),
        ("'a'\n  'b'", [(STRING, "ab")]),
        ("'a' 'b'", [(STRING, "a"), (STRING, "b")]),
        ("$$a'b$$", [(STRING, "a'b")]),
        ("$x$ $$ $y$ $x$", [(STRING, " $$ $y$ ")]),
        ("1 1.5 .5 1.", [(NUMBER, "1"), (NUMBER, "1.5"), (NUMBER, ".5"), (NUMBER, "1.")]),
        ("1e10 1.5E-3", [(NUMBER, "1e10"), (NUMBER, "1.5E-3")]),
        ("0x1F 0o17 0b101", [(NUMBER, "31"), (NUMBER, "15"), (NUMBER, "5")]),
        ("$12", [(PARAMETER, "12")]),
        ("a.b", [("A", "a"), (".", "."), ("B", "b")]),
        ("x::int", [("X", "x"), ("::", "::"), ("INT", "int")]),
        ("[1:2]", [("[", "["), (NUMBER, "1"), (":", ":"), (NUMBER, "2"), ("]", "]")]),
        ("naïve_Ω$1", [("NAïVE_Ω$1", "naïve_Ω$1")]),
        ("\u017felect", [("\u017fELECT", "\u017felect")]),
    ],
)
def test_a_text_gives_these_tokens(text: str, expected: Pairs) -> None:
    assert pairs(text) == expected


@pytest.mark.parametrize("operator", OPERATORS.split())
def test_an_operator_is_one_token(operator: str) -> None:
    assert pairs(f"a{operator} b") == [("A", "a"), (operator, operator), ("B", "b")]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("a=-1", ["A", "=", "-", NUMBER]),
        ("a*+1", ["A", "*", "+", NUMBER]),
        ("a@-1", ["A", "@-", NUMBER]),
        ("a!=b", ["A", "<>", "B"]),
        ("a<--x\n1", ["A", "<", NUMBER]),
        ("a+/* x */1", ["A", "+", NUMBER]),
        ("a -- b\n c", ["A", "C"]),
        ("a /* b /* c */ d */ e", ["A", "E"]),
    ],
)
def test_operators_end_where_postgresql_ends_them(text: str, keys: list[str]) -> None:
    assert tokenize(text).keys == [*keys, ""]


def test_every_token_knows_its_offset_in_characters() -> None:
    text = "é  'ü' /* ß */ x\n  $1 ;"
    assert list(tokenize(text).starts) == [0, 3, 15, 19, 22, 23]


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("a 'b", "unterminated quoted string", 3),
        ("a 'b''", "unterminated quoted string", 3),
        ("a E'b\\'", "unterminated quoted string", 3),
        ('a "b', "unterminated quoted identifier", 3),
        ('a ""', "zero-length delimited identifier", 3),
        ("a /* /* */", "unterminated multiline comment", 3),
        ("a $$b$", "unterminated dollar-quoted string", 3),
        ("a 12b", "trailing junk after numeric literal", 3),
        ("a {", "unexpected character in input: {", 3),
        (r"E'\u12'", "invalid escape in string literal", 1),
        (r"E'\xff'", "invalid escape in string literal", 1),
        (r"E'\000'", "null character in string literal", 1),
        ("x'1f'", "string literals with prefix x are not supported", 1),
        ("U&'a'", "string literals with prefix U& are not supported", 1),
    ],
)
def test_what_is_no_token_is_refused_where_it_begins(
    text: str, message: str, position: int
) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        tokenize(text)
    assert (caught.value.message, caught.value.position) == (message, position)


def test_the_number_of_tokens_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexer, "MAX_TOKENS", 10)
    with pytest.raises(StatementTooComplex, match="more than 10 words"):
        tokenize("a " * 20)
