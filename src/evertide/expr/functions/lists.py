"""Functions of lists, once per element type. Lists begin at 1, and may hold lists."""

from collections.abc import Callable
from typing import Final

from evertide.expr.functions.array import append, join, prepend
from evertide.expr.functions.build import partial, total
from evertide.expr.functions.members import Elements, Members, same_element
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.type_groups import SCALARS
from evertide.vocab.datum import Datum
from evertide.vocab.errors import InvalidParameterValue
from evertide.vocab.sql_type import BOOL, INT4, INT8, Kind, SqlType, list_of


def layers(sql_type: SqlType) -> int:
    """How deep lists lie in lists.

    >>> layers(list_of(list_of(INT4)))
    2
    """
    if sql_type.kind is not Kind.LIST or sql_type.element is None:
        return 0
    return 1 + layers(sql_type.element)


def list_rows(element: SqlType) -> list[ScalarFunction]:
    """All that lists of this element need beside what arrays have too."""
    lists = list_of(element)
    depth = layers(lists)
    return [
        _lenient("list_append", (lists, element), lists, append),
        _lenient("list_prepend", (element, lists), lists, prepend),
        _lenient("list_cat", (lists, lists), lists, join),
        _lenient("||", (lists, element), lists, append),
        _lenient("||", (element, lists), lists, prepend),
        _lenient("||", (lists, lists), lists, join),
        total("list_n_layers", (lists,), INT4, lambda _: depth),
        total("list_ndims", (lists,), INT4, lambda _: depth),
        partial("list_length_max", (lists, INT8), INT4, _longest(depth)),
        *_search_rows(element),
    ]


def _search_rows(element: SqlType) -> list[ScalarFunction]:
    lists, same = list_of(element), same_element(element)
    members = Members(element)

    def remove(elements: Elements | None, wanted: Datum) -> Elements | None:
        if elements is None:
            return None
        return tuple(candidate for candidate in elements if not same(candidate, wanted))

    return [
        _lenient("array_contains", (element, lists), BOOL, members.holds),
        _lenient("list_remove", (lists, element), lists, remove),
        total("@>", (lists, lists), BOOL, members.holds_all),
        total("<@", (lists, lists), BOOL, lambda inner, outer: members.holds_all(outer, inner)),
    ]


def _longest(depth: int) -> Callable[[Elements, int], int | None]:
    """The most elements of any list at a layer; the outermost is the first."""

    def longest(elements: Elements, layer: int) -> int | None:
        if layer < 1 or layer > depth:
            raise InvalidParameterValue(
                f"invalid layer: {layer}; must use value within [1, {depth}]"
            )
        found = [elements]
        for _ in range(layer - 1):
            found = [inner for outer in found for inner in outer if isinstance(inner, tuple)]
        return max(map(len, found), default=None)

    return longest


def _lenient(
    name: str, arguments: tuple[SqlType, ...], result: SqlType, body: Callable[..., Datum]
) -> ScalarFunction:
    """A function that has something to say about NULL."""
    return ScalarFunction(name, arguments, result, body, strict=False)


ROWS: Final = tuple(row for element in SCALARS for row in list_rows(element))
