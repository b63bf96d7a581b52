"""Changes inside scalar expressions, from the outside in."""

from collections.abc import Callable, Iterator

from evertide.expr.scalar import Scalar
from evertide.expr.scalar_walk import children, with_children


def replace_parts(scalar: Scalar, change: Callable[[Scalar], Scalar | None]) -> Scalar:
    """The expression with parts replaced.

    `change` is asked about each part from the outside in; what it returns replaces the part whole,
    None means to look inside. A loop and no generator on the way down: it costs one frame per
    level, the parser allows 250 levels and casts double that.
    """
    changed = change(scalar)
    if changed is not None:
        return changed
    below = children(scalar)
    if not below:
        return scalar
    parts = []
    for part in below:
        parts.append(replace_parts(part, change))
    return with_children(scalar, tuple(parts))


def walk_parts(scalar: Scalar) -> Iterator[Scalar]:
    """Every part, the whole first. Keeps its own stack."""
    stack = [scalar]
    while stack:
        part = stack.pop()
        yield part
        stack.extend(reversed(children(part)))
