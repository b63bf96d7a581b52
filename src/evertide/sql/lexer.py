"""Text to tokens, by one regular expression.

A token is three things held in parallel lists, because an object per token would double the time
of a small query and the memory of a large one:

    key     what the parser looks at: a word in upper case, an operator, a punctuation mark, or one
            of the classes QUOTED, STRING, NUMBER, PARAMETER, LITERAL_ROWS, LITERAL_LIST, END
    value   its content: a word as written, a string without quotes and escapes, a number's digits
    start   its offset in the text, in characters from 0

A quoted identifier's key is never a word, so quoting alone turns a keyword into a name.
"""

import re
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from evertide.sql.parser.literal_rows import scan_literal_list, scan_literal_rows
from evertide.sql.syntax.literal_values import LiteralValues
from evertide.vocab.errors import SqlSyntaxError, StatementTooComplex

QUOTED: Final = '"'
STRING: Final = "'"
NUMBER: Final = "0"
PARAMETER: Final = "$"
LITERAL_ROWS: Final = "(rows)"  # everything after VALUES, already read
LITERAL_LIST: Final = "(list)"  # the parentheses after IN and what is in them, already read
END: Final = ""

# A token costs about 100 bytes and its node as much again: this bounds a statement to a few
# hundred megabytes, whatever it holds. Long VALUES lists of constants are one token.
MAX_TOKENS: Final = 2_000_000

OPERATOR_START: Final = frozenset("+-*/<>=~!@#%^&|`?")

_BLANK = r"[ \t\n\r\f\v]"
_LETTER = r"A-Za-z_\u0080-\U0010ffff"
_TOKEN = re.compile(
    rf"""
    (?: {_BLANK}++ | --[^\r\n]*+ )*+
    (?:
      ( (?:[eEbBxXnN]|[uU]&)' | [uU]&" )               # 1 a string with a prefix
    | ( [{_LETTER}][{_LETTER}0-9$]*+ )                 # 2 a word
    | ( [(),;\[\]] | ::? | \.(?![0-9]) )               # 3 punctuation
    | ( (?: [0-9]++ (?:\.[0-9]*+)?+ | \.[0-9]++ )      # 4 a number
        (?: [eE][+-]?[0-9]++ )?+ [{_LETTER}0-9$]*+ )
    | ( '[^']*+(?:''[^']*+)*+'? )                      # 5 a string
    | ( "[^"]*+(?:""[^"]*+)*+"? )                      # 6 a quoted identifier
    | ( /\* )                                          # 7 a comment in blocks
    | ( [-+*/<>=~!@#%^&|`?]++ )                        # 8 an operator
    | ( \$[0-9]++ )                                    # 9 a parameter
    | ( \$(?:[{_LETTER}][{_LETTER}0-9]*+)?+\$ )        # 10 a string between dollar tags
    | ( . )                                            # 11 nothing SQL knows
    )?+
    """,
    re.VERBOSE | re.DOTALL,
)
_PREFIXED, _WORD, _MARK, _NUMBER, _STRING, _QUOTED = range(1, 7)
_COMMENT, _OPERATOR, _PARAMETER, _DOLLAR, _UNKNOWN = range(7, 12)
_BATCH: Final = 65_536  # tokens between two looks at MAX_TOKENS
_PLAIN_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_RADIX_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,64}|0[oO][0-7]{1,64}|0[bB][01]{1,64}")
_ESCAPE_STRING = re.compile(r"'((?:[^'\\]|''|\\.)*+)'", re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))|''", re.DOTALL
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_SIMPLE_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ASCII_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_ASCII_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


@dataclass(slots=True)
class Tokens:
    """What the parser walks. The last token is always END, at the end of the text."""

    keys: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    starts: "array[int]" = field(default_factory=lambda: array("q"))
    literal_rows: dict[int, LiteralValues] = field(default_factory=dict)  # by token index

    def add(self, key: str, value: str, start: int) -> None:
        self.keys.append(key)
        self.values.append(value)
        self.starts.append(start)


def fold_identifier(word: str) -> str:
    """An unquoted identifier as the catalog knows it.

    Only ASCII letters change case: the folding of others differs between systems and versions.
    """
    return word.lower() if word.isascii() else word.translate(_ASCII_LOWER)


def tokenize(text: str) -> Tokens:
    """All tokens of a text, which may hold several statements."""
    tokens = Tokens()
    at: int | None = 0
    while at is not None:
        at = _scan(text, at, tokens)
        if len(tokens.keys) > MAX_TOKENS:
            raise StatementTooComplex(f"statement has more than {MAX_TOKENS} words and symbols")
    tokens.add(END, "", len(text))
    return tokens


def _scan(text: str, at: int, tokens: Tokens) -> int | None:
    """Reads tokens from `at` on; says where to go on after one that the pattern could not see
    whole, or after a fair number of them. None: the text is read."""
    add_key, add_value, add_start = tokens.keys.append, tokens.values.append, tokens.starts.append
    for found in islice(_TOKEN.finditer(text, at), _BATCH):
        kind = found.lastindex
        if kind == _WORD:
            word = found[_WORD]
            key = word.upper() if word.isascii() else word.translate(_ASCII_UPPER)
            add_key(key)
            add_value(word)
            add_start(found.start(_WORD))
            if key in _BEFORE_LITERALS and (end := _scan_literals(key, found, tokens)):
                return end
        elif kind == _MARK:
            mark = found[_MARK]
            add_key(mark)
            add_value(mark)
            add_start(found.start(_MARK))
        elif kind is None:
            return None
        else:
            end = _READERS[kind](found, tokens)
            if end != found.end():
                return end
        at = found.end()
    return at


def _scan_literals(key: str, word: re.Match[str], tokens: Tokens) -> int:
    """Reads a long list of constants in one go; 0 if there is none at this place."""
    scan, kind = _BEFORE_LITERALS[key]
    if key == "VALUES":
        changed = _begins_with(_INSERTS, _ENDS_OF_TARGETS, tokens.keys)
    else:
        changed = _begins_with(_CHANGES, _ENDS_OF_CHANGES, tokens.keys)
    found = scan(word.string, word.end(), changed=changed)
    if found is None:
        return 0
    values, end = found
    tokens.literal_rows[len(tokens.keys)] = values
    tokens.add(kind, "", values.at)
    return end


def _begins_with(verbs: frozenset[str], ends: frozenset[str], keys: list[str]) -> bool:
    """Whether the statement that the last token is of begins with one of the verbs, with none of
    the ends since. Any of these words may also be a name: only the first of all is looked at."""
    for back, key in enumerate(islice(reversed(keys), _FAR_BACK), 1):
        if key in ends:
            return False
        if key in verbs and (back == len(keys) or keys[-back - 1] in _BEFORE_STATEMENTS):
            return True
    return False


_CHANGES: Final = frozenset({"INSERT", "UPDATE", "DELETE"})
_ENDS_OF_CHANGES: Final = frozenset({"SELECT", "WITH", "TABLE", "EXPLAIN", "AS", ";"})
_INSERTS: Final = frozenset({"INSERT"})
_ENDS_OF_TARGETS: Final = _ENDS_OF_CHANGES | {
    "FROM", "WHERE", "SET", "USING", "UNION", "INTERSECT", "EXCEPT",
}  # fmt: skip
# The second is that of PREPARE.
_BEFORE_STATEMENTS: Final = (";", "AS")
_FAR_BACK: Final = 64

_BEFORE_LITERALS: Final = {
    "VALUES": (scan_literal_rows, LITERAL_ROWS),
    "IN": (scan_literal_list, LITERAL_LIST),
}


def _read_number(found: re.Match[str], tokens: Tokens) -> int:
    digits, start = found[_NUMBER], found.start(_NUMBER)
    if not _PLAIN_NUMBER.fullmatch(digits):
        if not _RADIX_NUMBER.fullmatch(digits):  # of bounded length: printing long ones is slow
            raise _error("trailing junk after numeric literal", start)
        digits = str(int(digits, 0))
    tokens.add(NUMBER, digits, start)
    return found.end()


def _read_string(found: re.Match[str], tokens: Tokens) -> int:
    quoted, start = found[_STRING], found.start(_STRING)
    if len(quoted) < 2 or quoted[-1] != "'" or quoted.count("'") % 2:
        raise _error("unterminated quoted string", start)
    value = quoted[1:-1]
    if "'" in value:
        value = value.replace("''", "'")
    _add_string(found, value, start, tokens)
    return found.end()


def _add_string(found: re.Match[str], value: str, start: int, tokens: Tokens) -> None:
    """Two strings with a line break between them are one, by the SQL standard."""
    if tokens.keys and tokens.keys[-1] == STRING and "\n" in found.string[found.start() : start]:
        tokens.values[-1] += value
    else:
        tokens.add(STRING, value, start)


def _read_quoted(found: re.Match[str], tokens: Tokens) -> int:
    quoted, start = found[_QUOTED], found.start(_QUOTED)
    if len(quoted) < 2 or quoted[-1] != '"' or quoted.count('"') % 2:
        raise _error("unterminated quoted identifier", start)
    if len(quoted) == 2:
        raise _error("zero-length delimited identifier", start)
    tokens.add(QUOTED, quoted[1:-1].replace('""', '"'), start)
    return found.end()


def _read_comment(found: re.Match[str], _tokens: Tokens) -> int:
    """Comments nest, so that commenting out a part never depends on what is in it."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(found.string, found.start(_COMMENT)):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    raise _error("unterminated multiline comment", found.start(_COMMENT))


def _read_operator(found: re.Match[str], tokens: Tokens) -> int:
    start = found.start(_OPERATOR)
    operator = _trim_operator(found[_OPERATOR])
    tokens.add("<>" if operator == "!=" else operator, operator, start)
    return start + len(operator)


def _trim_operator(run: str) -> str:
    """The operator at the head of a run of operator characters.

    A comment ends it. A trailing + or - belongs to what follows (`a=-1`), unless the operator has
    a character that no standard operator has.
    """
    if len(run) == 1:
        return run
    for comment in ("--", "/*"):
        if (cut := run.find(comment)) > 0:
            run = run[:cut]
    while len(run) > 1 and run[-1] in "+-" and not set(run) & set("~!@#%^&|`?"):
        run = run[:-1]
    return run


def _read_parameter(found: re.Match[str], tokens: Tokens) -> int:
    tokens.add(PARAMETER, found[_PARAMETER][1:], found.start(_PARAMETER))
    return found.end()


def _read_dollar(found: re.Match[str], tokens: Tokens) -> int:
    tag, start = found[_DOLLAR], found.start(_DOLLAR)
    end = found.string.find(tag, found.end())
    if end < 0:
        raise _error("unterminated dollar-quoted string", start)
    tokens.add(STRING, found.string[found.end() : end], start)
    return end + len(tag)


def _read_prefixed(found: re.Match[str], tokens: Tokens) -> int:
    prefix, start = found[_PREFIXED], found.start(_PREFIXED)
    if prefix in ("b'", "B'"):  # a word before a string is a type: one that is not there
        tokens.add("B", prefix[0], start)
        return start + 1
    if prefix not in ("e'", "E'"):
        raise _error(f"string literals with prefix {prefix[:-1]} are not supported", start)
    body = _ESCAPE_STRING.match(found.string, start + 1)
    if body is None:
        raise _error("unterminated quoted string", start)
    value = _ESCAPE.sub(lambda escape: _unescape(escape, start), body[1])
    _add_string(found, value, start, tokens)
    return body.end()


def _unescape(escape: re.Match[str], start: int) -> str:
    octal, byte, short, long, plain = escape.groups()
    if plain is not None:
        if plain in "uUx":
            raise _error("invalid escape in string literal", start)
        return _SIMPLE_ESCAPES.get(plain, plain)
    if octal is None and byte is None and short is None and long is None:
        return "'"
    code = int(octal, 8) if octal is not None else int(byte or short or long, 16)
    highest = 0x7F if octal or byte else 0x10FFFF  # a byte above ASCII is no character by itself
    if code == 0:
        raise _error("null character in string literal", start)
    if not 0 < code <= highest or 0xD800 <= code <= 0xDFFF:
        raise _error("invalid escape in string literal", start)
    return chr(code)


def _refuse(found: re.Match[str], _tokens: Tokens) -> int:
    raise _error(f"unexpected character in input: {found[_UNKNOWN]}", found.start(_UNKNOWN))


def _error(message: str, start: int) -> SqlSyntaxError:
    return SqlSyntaxError(message, position=start + 1)


_READERS: Final[dict[int, Callable[[re.Match[str], Tokens], int]]] = {
    _PREFIXED: _read_prefixed,
    _NUMBER: _read_number,
    _STRING: _read_string,
    _QUOTED: _read_quoted,
    _COMMENT: _read_comment,
    _OPERATOR: _read_operator,
    _PARAMETER: _read_parameter,
    _DOLLAR: _read_dollar,
    _UNKNOWN: _refuse,
}
