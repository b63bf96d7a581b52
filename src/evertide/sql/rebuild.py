"""Syntax trees with some of their nodes changed; what did not change is shared."""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar, cast

from evertide.sql.syntax.literal_values import LiteralValues

NodeT = TypeVar("NodeT")


def with_changed_parts(node: NodeT, changed: Callable[[object], object]) -> NodeT:
    """The node with each of its parts changed; the node itself if none of them did."""
    if isinstance(node, tuple):
        parts = tuple(changed(part) for part in node)
        same = all(one is other for one, other in zip(parts, node, strict=True))
        return node if same else cast(NodeT, parts)
    if not is_dataclass(node) or isinstance(node, type | LiteralValues):
        return node
    changes: dict[str, object] = {}
    for field in fields(node):
        before: object = getattr(node, field.name)
        after = changed(before)
        if after is not before:
            changes[field.name] = after
    return cast(NodeT, replace(node, **changes)) if changes else node


def parts_of(node: object) -> Iterator[object]:
    """The node and all nodes within it, in no particular order."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple):
            waiting.extend(part)
        elif is_dataclass(part) and not isinstance(part, type | LiteralValues):
            yield part
            waiting.extend(getattr(part, field.name) for field in fields(part))
