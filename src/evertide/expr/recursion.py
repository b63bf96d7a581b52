"""Recursion taken apart: what goes round, and what it goes round over.

Parts of a LetRec that no binding of it can change are its *inputs*; what is left of it, the *core*,
names them as it names its bindings. So an executor may keep the inputs as it keeps anything else,
and begins anew with the core alone.

Errors. Those of the inputs pass once each and do not go round. Those that arise on the way round
are in a binding once, however often they arise: counted, they would grow with every iteration and
no recursion with an error in it would end.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from evertide.expr.outer_columns import FreeColumns
from evertide.expr.relation import Constant, LetRec, LocalGet, Relation
from evertide.expr.relation_walk import in_order_of_use, inputs_of, with_inputs
from evertide.vocab.errors import ProgramLimitExceeded, encode_error

# Between a binding's name in the query and what makes it unique.
MARK: Final = "#"
# One that does not settle within so many iterations never will, or somebody knows better and says
# so by a limit of his own. An iteration over next to nothing takes some microseconds.
MOST_ITERATIONS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Recursion:
    """`core` has no free names but those of its inputs, which `input_names` gives in order."""

    inputs: tuple[Relation, ...]
    input_names: tuple[str, ...]
    core: LetRec


def is_recursive(relation: Relation) -> bool:
    """Whether there is a recursion in it."""
    return any(isinstance(node, LetRec) for node in in_order_of_use(relation))


class FreeNames:
    """Names of bindings around that a relation reads; each object is looked at once."""

    def __init__(self) -> None:
        # The relation is kept beside the answer, so that its id is not given to another object.
        self._known: dict[int, tuple[Relation, frozenset[str]]] = {}

    def of(self, relation: Relation) -> frozenset[str]:
        known = self._known.get(id(relation))
        if known is None:
            known = relation, self._found(relation)
            self._known[id(relation)] = known
        return known[1]

    def _found(self, relation: Relation) -> frozenset[str]:
        if isinstance(relation, LocalGet):
            return frozenset((relation.name,))
        found = frozenset[str]().union(*map(self.of, inputs_of(relation)))
        return found - set(relation.names) if isinstance(relation, LetRec) else found


def split_recursion(node: LetRec) -> Recursion:
    """The largest parts that do not depend on the node's bindings, and the rest."""
    free, around = FreeNames(), FreeColumns()
    # A recursion within this one goes round with it if it depends on it at all.
    nested = [part.names for part in in_order_of_use(node) if isinstance(part, LetRec)]
    own = frozenset(name for names in nested for name in names)
    inputs: list[Relation] = []
    done: dict[int, tuple[Relation, Relation]] = {}

    def visit(part: Relation) -> Relation:
        known = done.get(id(part))
        if known is None:
            known = part, changed(part)
            done[id(part)] = known
        return known[1]

    def changed(part: Relation) -> Relation:
        if isinstance(part, Constant):
            return part
        # Columns of a row around are those of an Apply in here: elsewhere they mean nothing.
        if free.of(part) & own or around.of(part):
            return with_inputs(part, tuple(map(visit, inputs_of(part))))
        inputs.append(part)
        return LocalGet(_input_name(node, len(inputs) - 1), part.types)

    values = tuple(map(visit, node.values))
    core = replace(node, values=values, body=visit(node.body))
    names = tuple(_input_name(node, number) for number in range(len(inputs)))
    return Recursion(tuple(inputs), names, core)


def _input_name(node: LetRec, number: int) -> str:
    """A name that no query can give: it begins with the mark."""
    return f"{MARK}{number}{MARK}{node.names[0]}"


def readers(core: LetRec) -> dict[str, list[int]]:
    """Per free name or binding of a core, the objects in it whose contents depend on it."""
    free = FreeNames()
    found: dict[str, list[int]] = {}
    for part in in_order_of_use(core):
        for name in free.of(part):
            found.setdefault(name, []).append(id(part))
    return found


def iterate(core: LetRec, advance: Callable[[int], bool]) -> str | None:
    """Go round until nothing changes; the error to be shown instead of rows if that fails.

    `advance` computes one binding anew, by its number, and tells whether it holds something else
    now.
    """
    limit = core.limit
    most = MOST_ITERATIONS if limit is None else limit.iterations
    for _ in range(most):
        changed = False
        for number in range(len(core.names)):
            changed = advance(number) or changed
        if not changed:
            return None
    if limit is not None and not limit.fails:
        return None
    return encode_error(limit_exceeded(most))


def limit_exceeded(iterations: int) -> ProgramLimitExceeded:
    """A recursion went on when its iterations were used up."""
    return ProgramLimitExceeded(
        f"Recursive query exceeded the recursion limit {iterations}. (Use RETURN AT RECURSION LIMIT"
        " to not error, but return the current state as the final result when reaching the limit.)"
    )


def once_each(errors: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Errors as a binding has them."""
    totals: dict[str, int] = {}
    for error, count in errors:
        totals[error] = totals.get(error, 0) + count
    return [(error, 1) for error in sorted(totals) if totals[error]]
