"""Option lists, read by tables that say which names a statement takes and what each may hold.

An unknown name is a syntax error, so a misspelt option never passes silently. `=` between name and
value is optional everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from evertide.sql.lexer import NUMBER, QUOTED, STRING
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.expression import expression
from evertide.sql.parser.names import comma_separated, identifier, is_word, take_word
from evertide.sql.parser.type_name import base_type, interval_fields
from evertide.sql.syntax.expression import (
    BooleanLiteral,
    Name,
    NullLiteral,
    NumberLiteral,
    StringLiteral,
    TypedLiteral,
    TypeName,
)
from evertide.sql.syntax.option import (
    Option,
    OptionGroup,
    OptionItems,
    OptionValue,
    Refresh,
    ReplicaDefinition,
    ReplicaDefinitions,
)

ReadValue = Callable[[Cursor], OptionValue | None]
Grammar = Mapping[str, ReadValue]  # option name to the reader of its value


def options(cursor: Cursor, grammar: Grammar) -> tuple[Option, ...]:
    """One or more options, parted by commas."""
    return comma_separated(cursor, lambda inner: one_option(inner, grammar))


def parenthesized_options(cursor: Cursor, grammar: Grammar) -> tuple[Option, ...]:
    cursor.expect("(")
    found = options(cursor, grammar)
    cursor.expect(")")
    return found


def with_options(cursor: Cursor, grammar: Grammar) -> tuple[Option, ...]:
    """`WITH (option, ...)` if it is there."""
    if cursor.key != "WITH" or cursor.peek() != "(":
        return ()
    cursor.expect("WITH")
    return parenthesized_options(cursor, grammar)


def one_option(cursor: Cursor, grammar: Grammar) -> Option:
    """The next option."""
    at = cursor.at
    name = option_name(cursor, grammar)
    return Option(name, grammar[name](cursor), at=at)


def option_name(cursor: Cursor, grammar: Grammar) -> str:
    """The longest name of the grammar that stands here."""
    for name in sorted(grammar, key=len, reverse=True):
        if cursor.accept_words(*name.split()):
            return name
    first_words = list(dict.fromkeys(name.split()[0] for name in grammar))
    cursor.fail(first_words[0] if len(first_words) == 1 else "one of " + " or ".join(first_words))


def value(cursor: Cursor) -> OptionValue:
    """A constant or a name, after an optional `=`."""
    cursor.accept("=")
    at = cursor.at
    if cursor.key == STRING:
        return StringLiteral(cursor.advance(), at=at)
    if cursor.key == NUMBER:
        return NumberLiteral(cursor.advance(), at=at)
    if cursor.key == "(":
        return _items(cursor)
    if cursor.key == "INTERVAL" and cursor.peek() == STRING:
        return _interval(cursor)
    if cursor.accept("TRUE"):
        return BooleanLiteral(True, at=at)
    if cursor.accept("FALSE"):
        return BooleanLiteral(False, at=at)
    if cursor.accept("NULL"):
        return NullLiteral(at=at)
    if cursor.key != QUOTED and not is_word(cursor.key):
        cursor.fail("option value")
    return Name((take_word(cursor),), at=at)


def _items(cursor: Cursor) -> OptionItems:
    at = cursor.at
    cursor.enter(1)
    cursor.expect("(")
    found = () if cursor.key == ")" else comma_separated(cursor, value)
    cursor.expect(")")
    cursor.depth -= 1
    return OptionItems(found, at=at)


def _interval(cursor: Cursor) -> TypedLiteral:
    at = cursor.at
    target = base_type(cursor)
    text = cursor.advance()
    named = TypeName(target.parts, target.modifiers, interval_fields(cursor), at=at)
    return TypedLiteral(named, text, at=at)


# What follows an option whose value was left out; where commas may be too, it is the next option.
_ENDS: Final = frozenset({",", ")", ";", "", "WITH", "IN", "INTERNAL", "BILLED"})


def optional_value(cursor: Cursor) -> OptionValue | None:
    """A value that may be left out: `MANAGED`, `MANAGED = true`."""
    return None if cursor.key in _ENDS else value(cursor)


def no_value(_: Cursor) -> None:
    """A bare word."""


def _after_for(cursor: Cursor) -> OptionValue:
    cursor.accept("=")
    cursor.expect("FOR")
    return value(cursor)


def _refresh(cursor: Cursor) -> Refresh:
    cursor.accept("=")
    at = cursor.at
    if cursor.accept_words("ON", "COMMIT"):
        return Refresh("ON COMMIT", at=at)
    if cursor.accept_words("AT", "CREATION"):
        return Refresh("AT CREATION", at=at)
    if cursor.accept("AT"):
        return Refresh("AT", expression(cursor), at=at)
    if not cursor.accept("EVERY"):
        cursor.fail("one of ON or AT or EVERY")
    interval = _literal_string(cursor)
    aligned = expression(cursor) if cursor.accept_words("ALIGNED", "TO") else None
    return Refresh("EVERY", interval, aligned, at=at)


def _literal_string(cursor: Cursor) -> StringLiteral:
    at = cursor.at
    if cursor.key != STRING:
        cursor.fail("literal string")
    return StringLiteral(cursor.advance(), at=at)


def _replicas(cursor: Cursor) -> ReplicaDefinitions:
    cursor.accept("=")
    at = cursor.at
    cursor.expect("(")
    found = () if cursor.key == ")" else comma_separated(cursor, _replica)
    cursor.expect(")")
    return ReplicaDefinitions(found, at=at)


def _replica(cursor: Cursor) -> ReplicaDefinition:
    at = cursor.at
    name = identifier(cursor)
    if cursor.key != "(":  # a comma begins the next replica, so there is room for one option
        return ReplicaDefinition(name, (one_option(cursor, REPLICA),), at=at)
    cursor.expect("(")
    found = () if cursor.key == ")" else options(cursor, REPLICA)
    cursor.expect(")")
    return ReplicaDefinition(name, found, at=at)


def _group(words: str, grammar: Grammar) -> ReadValue:
    """A value made of words with options of their own behind them."""

    def read(cursor: Cursor) -> OptionGroup:
        at = cursor.at
        cursor.expect(*words.split())
        return OptionGroup(words, parenthesized_options(cursor, grammar), at=at)

    return read


def _estimate(cursor: Cursor) -> StringLiteral:
    cursor.accept("=")
    return _literal_string(cursor)


def _schedule(cursor: Cursor) -> OptionValue | None:
    cursor.accept("=")
    at = cursor.at
    if cursor.accept("MANUAL"):
        return OptionGroup("MANUAL", at=at)
    if not cursor.accept_words("ON", "REFRESH"):
        cursor.fail("one of MANUAL or ON")
    found: tuple[Option, ...] = ()
    if cursor.key == "(":
        found = parenthesized_options(cursor, {"HYDRATION TIME ESTIMATE": _estimate})
    return OptionGroup("ON REFRESH", found, at=at)


def _scaling(cursor: Cursor) -> OptionValue | None:
    cursor.accept("=")
    cursor.expect("(")
    found = _group("ON HYDRATION", {"HYDRATION SIZE": value, "LINGER DURATION": value})(cursor)
    cursor.expect(")")
    return found


def _wait(cursor: Cursor) -> OptionValue | None:
    cursor.accept("=")
    at = cursor.at
    if cursor.accept("FOR"):
        return OptionGroup("FOR", (Option("DURATION", value(cursor), at=at),), at=at)
    return _group("UNTIL READY", {"TIMEOUT": value, "ON TIMEOUT": value})(cursor)


REPLICA: Final[Grammar] = {
    "SIZE": optional_value,
    "AVAILABILITY ZONE": value,
    "BILLED AS": value,
    "DISK": optional_value,
    "INTERNAL": optional_value,
    "INTROSPECTION DEBUGGING": optional_value,
    "INTROSPECTION INTERVAL": value,
}
CLUSTER: Final[Grammar] = {
    "VIRTUAL": no_value,
    "SIZE": optional_value,
    "REPLICATION FACTOR": value,
    "MANAGED": optional_value,
    "REPLICAS": _replicas,
    "AVAILABILITY ZONES": value,
    "DISK": optional_value,
    "INTROSPECTION DEBUGGING": optional_value,
    "INTROSPECTION INTERVAL": value,
    "SCHEDULE": _schedule,
    "WORKLOAD CLASS": value,
    "AUTO SCALING STRATEGY": _scaling,
    "EXPERIMENTAL ARRANGEMENT COMPRESSION": optional_value,
}
PROFILE: Final[Grammar] = {
    "SIZE": optional_value,
    "REPLICATION FACTOR": value,
    "MANAGED": optional_value,
    "REPLICAS": _replicas,
    "BILLED AS": value,
    "BILLED": optional_value,
    "EXPIRES AFTER": value,
    "INTROSPECTION DEBUGGING": optional_value,
    "INTROSPECTION INTERVAL": value,
}
ALTER_CLUSTER_WITH: Final[Grammar] = {"WAIT": _wait}
TABLE: Final[Grammar] = {"RETAIN HISTORY": _after_for, "FILLFACTOR": value}
RETAINED: Final[Grammar] = {"RETAIN HISTORY": _after_for}
MATERIALIZED_VIEW: Final[Grammar] = {
    "APPLY WHEN HYDRATED": no_value,
    "ASSERT NOT NULL": value,
    "PARTITION BY": value,
    "REQUIRE INCREMENTAL": optional_value,
    "RETAIN HISTORY": _after_for,
    "REFRESH": _refresh,
}
COPY: Final[Grammar] = {
    "FORMAT": value,
    "DELIMITER": value,
    "NULL": value,
    "ESCAPE": value,
    "QUOTE": value,
    "HEADER": optional_value,
}
SUBSCRIBE: Final[Grammar] = {"SNAPSHOT": optional_value, "PROGRESS": optional_value}
FETCH: Final[Grammar] = {"TIMEOUT": value}
