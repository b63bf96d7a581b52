"""Option lists as text."""

from __future__ import annotations

from typing import Final, assert_never

from evertide.sql.printer import expression
from evertide.sql.printer.names import quote_ident
from evertide.sql.syntax.expression import (
    BooleanLiteral,
    Name,
    NullLiteral,
    NumberLiteral,
    StringLiteral,
    TypedLiteral,
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

# Options whose value begins with words of its own instead of `=`.
_WORDY: Final = frozenset({"REFRESH", "REPLICAS", "WAIT", "PARTITION BY", "ASSERT NOT NULL"})


def options(nodes: tuple[Option, ...]) -> str:
    return ", ".join([_option(node) for node in nodes])


def shown_options(nodes: tuple[Option, ...]) -> str:
    """As SHOW CREATE writes them: `=` between each name and its value."""
    return ", ".join([_shown_option(node) for node in nodes])


def _shown_option(node: Option) -> str:
    if node.name != "REFRESH" or node.value is None:
        return _option(node)
    return f"{node.name} = {_value(node.value)}"


def with_options(nodes: tuple[Option, ...]) -> str:
    """`WITH (...)` with a blank before it, or nothing."""
    return f" WITH ({options(nodes)})" if nodes else ""


def _option(node: Option) -> str:
    if node.value is None:
        return node.name
    text = _value(node.value)
    if node.name == "RETAIN HISTORY":
        return f"{node.name} FOR {text}"
    if node.name == "AUTO SCALING STRATEGY":
        return f"{node.name} ({text})"
    return f"{node.name} {text}" if node.name in _WORDY else f"{node.name} = {text}"


def _value(node: OptionValue) -> str:
    match node:
        case Name():
            return quote_ident(node.parts[0])
        case StringLiteral() | NumberLiteral() | BooleanLiteral() | NullLiteral() | TypedLiteral():
            return expression.expression(node)
        case OptionItems():
            return "(" + ", ".join([_value(item) for item in node.items]) + ")"
        case OptionGroup():
            return _group(node)
        case ReplicaDefinitions():
            return "(" + ", ".join([_replica(replica) for replica in node.replicas]) + ")"
        case Refresh():
            return _refresh(node)
        case _:
            assert_never(node)


def _group(node: OptionGroup) -> str:
    if node.words == "FOR":  # WAIT FOR carries its one value without a name
        (duration,) = node.options
        assert duration.value is not None, "the parser always reads a duration after FOR"
        return f"FOR {_value(duration.value)}"
    return f"{node.words} ({options(node.options)})" if node.options else node.words


def _replica(node: ReplicaDefinition) -> str:
    return f"{quote_ident(node.name)} ({options(node.options)})"


def _refresh(node: Refresh) -> str:
    if node.moment is None:
        return node.kind
    text = f"{node.kind} {_moment(node)}"
    if node.aligned_to is None:
        return text
    return f"{text} ALIGNED TO {expression.expression(node.aligned_to)}"


def _moment(node: Refresh) -> str:
    """A column here would be refused anyhow, but its name must not turn into AT CREATION."""
    assert node.moment is not None, "the caller has looked"
    text = expression.expression(node.moment)
    return f"({text})" if isinstance(node.moment, Name) else text
