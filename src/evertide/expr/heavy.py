"""Values so large that a function of one takes a time that others would notice.

Planning happens where every session waits for it, so calls with such values are not worked out
there: they are left to whoever runs the query, on a thread.
"""

from collections.abc import Iterable
from typing import Final

from evertide.expr.relation import Constant, Relation
from evertide.expr.relation_walk import inputs_of, scalars_of
from evertide.expr.scalar import Call, Literal, Scalar
from evertide.expr.scalar_walk import children, columns_of
from evertide.expr.traverse import walk
from evertide.vocab.datum import Datum

# Characters, bytes or elements: the slowest functions take some ten milliseconds for as many.
HEAVY: Final = 100_000


def is_heavy(datum: Datum) -> bool:
    """Whether a value, or what it holds, is that large."""
    return isinstance(datum, str | bytes | tuple) and _weight(datum) > HEAVY


def _weight(datum: Datum) -> int:
    if not isinstance(datum, tuple):
        return len(datum) if isinstance(datum, str | bytes) else 0
    weight = len(datum)
    for part in datum:
        if weight > HEAVY:
            break
        if isinstance(part, str | bytes | tuple):
            weight += _weight(part)
    return weight


def is_heavy_call(call: Call) -> bool:
    """Whether a call is known but for the work, which is much."""
    literals = [part for part in call.arguments if isinstance(part, Literal)]
    return len(literals) == len(call.arguments) and any(is_heavy(part.value) for part in literals)


def holds_heavy(constant: Constant) -> bool:
    """Whether some value of its rows is that large."""
    return any(is_heavy(datum) for row, _ in constant.rows for datum in row)


def leaves_work(relation: Relation) -> bool:
    """Whether folding has left something to do that takes long."""
    return any(
        has_heavy_call(scalars_of(node)) or any(map(holds_heavy, _constants_below(node)))
        for node in walk(relation)
    )


def has_heavy(relation: Relation) -> bool:
    """Whether there is such a value anywhere in it."""
    for node in walk(relation):
        if isinstance(node, Constant) and holds_heavy(node):
            return True
        if any(isinstance(part, Literal) and is_heavy(part.value) for part in _parts(node)):
            return True
    return False


def may_become_heavy(relation: Relation) -> bool:
    """Whether there is, or may be once parameters are known: some call is of nothing but them."""
    calls = (part for node in walk(relation) for part in _parts(node) if isinstance(part, Call))
    return any(not columns_of(call) for call in calls) or has_heavy(relation)


def _parts(node: Relation) -> list[Scalar]:
    found = list(scalars_of(node))
    for part in found:  # grows while it is gone through
        found.extend(children(part))
    return found


def has_heavy_call(scalars: Iterable[Scalar]) -> bool:
    """Whether there is such a call in some of them."""
    found = list(scalars)
    for part in found:  # grows while it is gone through
        if isinstance(part, Call) and is_heavy_call(part):
            return True
        found.extend(children(part))
    return False


def _constants_below(node: Relation) -> list[Constant]:
    """The rows that an operator goes through."""
    return [source for source in inputs_of(node) if isinstance(source, Constant)]
