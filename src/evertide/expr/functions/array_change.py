"""Functions that search arrays through, change or cut them."""

from collections.abc import Callable
from typing import Final

from evertide.expr.data_errors import ArraySubscriptError
from evertide.expr.functions.build import partial, total
from evertide.expr.functions.members import Elements, same_element
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.type_groups import SCALARS
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import INT4, TEXT, SqlType, array_of


def _trim(array: Elements, count: int) -> Elements:
    if not 0 <= count <= len(array):
        raise ArraySubscriptError(f"number of elements to trim must be between 0 and {len(array)}")
    return array[: len(array) - count]


def _bounds(array: Elements) -> str | None:
    return f"[1:{len(array)}]" if array else None


def _lenient(
    name: str, arguments: tuple[SqlType, ...], result: SqlType, body: Callable[..., Datum]
) -> ScalarFunction:
    """A function that has something to say about NULL."""
    return ScalarFunction(name, arguments, result, body, strict=False)


def _array_rows(element: SqlType) -> list[ScalarFunction]:
    array, same = array_of(element), same_element(element)

    def positions(elements: Elements | None, wanted: Datum) -> Elements | None:
        if elements is None:
            return None
        return tuple(i for i, one in enumerate(elements, 1) if same(one, wanted))

    def replaced(elements: Elements | None, old: Datum, new: Datum) -> Elements | None:
        if elements is None:
            return None
        return tuple(new if same(one, old) else one for one in elements)

    return [
        _lenient("array_positions", (array, element), array_of(INT4), positions),
        _lenient("array_replace", (array, element, element), array, replaced),
        partial("trim_array", (array, INT4), array, _trim),
        total("array_dims", (array,), TEXT, _bounds),
    ]


ROWS: Final = tuple(row for element in SCALARS for row in _array_rows(element))
