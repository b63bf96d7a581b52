"""A walk over the tokens of one text, and the limits that keep every later walk safe.

Python gives a thread about 1,000 frames. Parsing and every visitor of the tree recurse, so both the
nesting of the text and the height of the tree are counted, and a text beyond the limits is refused
with StatementTooComplex before any of them can run out of frames:

NESTING_LIMIT  how deep the parser itself recurses. An expression costs 1, a call 2, a query 4, in
               proportion to the frames they take: the costliest nesting takes 5 per unit.
HEIGHT_LIMIT   how high a tree may grow. Chains such as `1 + 1 + 1` are read by a loop but give a
               tree that leans to the left; a visitor with three frames per node still fits.
               Chains of AND, OR and set operations are one node each and have no limit.
"""

from typing import Final, NoReturn

from evertide.sql.lexer import (
    END,
    LITERAL_LIST,
    LITERAL_ROWS,
    NUMBER,
    OPERATOR_START,
    PARAMETER,
    QUOTED,
    STRING,
    Tokens,
    fold_identifier,
)
from evertide.sql.parser.keywords import KEYWORDS
from evertide.vocab.errors import SqlSyntaxError, StatementTooComplex

NESTING_LIMIT: Final = 128
HEIGHT_LIMIT: Final = 250

_SHOWN: Final = 100  # characters of a token in a message

_MARKS: Final = {
    "(": "left parenthesis",
    ")": "right parenthesis",
    "[": "left square bracket",
    "]": "right square bracket",
    ",": "comma",
    ";": "semicolon",
    ".": "dot",
    ":": "colon",
    "::": "double colon",
    "*": "star",
    "=": "equals sign",
    "=>": "arrow",
    END: "EOF",
}


class Cursor:
    """The place in the tokens; `key` is always the key of the current one.

    `height` is the height of the highest expression read since the innermost enclosing expression
    or query began; those two alone save and restore it.
    """

    __slots__ = ("depth", "height", "index", "key", "keys", "tokens")

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.keys = tokens.keys
        self.index = 0
        self.key = self.keys[0]
        self.depth = 0
        self.height = 0

    @property
    def at(self) -> int:
        """The offset of the current token."""
        return self.tokens.starts[self.index]

    def peek(self, ahead: int = 1) -> str:
        """A later token's key; END beyond the last."""
        index = self.index + ahead
        return self.keys[index] if index < len(self.keys) else END

    def advance(self) -> str:
        """Steps over the current token and returns its value. END is never stepped over."""
        index = self.index
        self.index = index + 1
        self.key = self.keys[index + 1]
        return self.tokens.values[index]

    def accept(self, key: str) -> bool:
        """Steps over the current token if its key is this one."""
        if self.key != key:
            return False
        self.index += 1
        self.key = self.keys[self.index]
        return True

    def accept_words(self, first: str, *rest: str) -> bool:
        """Steps over all of these words, or over none if one of them is not there."""
        if self.key != first:
            return False
        for ahead, word in enumerate(rest, start=1):
            if self.peek(ahead) != word:
                return False
        self.index += 1 + len(rest)
        self.key = self.keys[self.index]
        return True

    def expect(self, *keys: str) -> None:
        """Steps over these tokens in order, or fails at the first that is missing."""
        for key in keys:
            if not self.accept(key):
                self.fail(_MARKS.get(key, key))

    def fail(self, expected: str) -> NoReturn:
        raise SqlSyntaxError(f"Expected {expected}, found {self._describe()}", position=self.at + 1)

    def enter(self, cost: int) -> None:
        """Counts one more level of nesting; the caller takes `cost` off `depth` when it is done."""
        self.depth += cost
        if self.depth > NESTING_LIMIT:
            raise StatementTooComplex(
                f"statement is nested more than {NESTING_LIMIT} levels deep",
                hint="An expression counts as one level, a call as two, a query as four.",
                position=self.at + 1,
            )

    def raise_height(self, links: int = 1) -> None:
        """Counts more links of a chain that leans to the left."""
        self.height += links
        if self.height > HEIGHT_LIMIT:
            self.refuse_height()

    def refuse_height(self) -> NoReturn:
        raise StatementTooComplex(
            f"expression tree is more than {HEIGHT_LIMIT} levels high",
            hint="Break up long chains of operators, casts or joins.",
            position=self.at + 1,
        )

    def _describe(self) -> str:
        key, value = self.key, self.tokens.values[self.index]
        if len(value) > _SHOWN:
            value = value[:_SHOWN] + "..."
        if key in _MARKS:
            return _MARKS[key]
        if key == QUOTED:
            return f'identifier "{value}"'
        if key == STRING:
            return f'string literal "{value}"'
        if key == NUMBER:
            return f'number "{value}"'
        if key == PARAMETER:
            return f'parameter "${value}"'
        if key in (LITERAL_ROWS, LITERAL_LIST):
            return _MARKS["("]
        if key[0] in OPERATOR_START:
            return f'operator "{value}"'
        return key if key in KEYWORDS else f'identifier "{fold_identifier(value)}"'
