"""Functions that search arrays through, change or cut them."""

from collections.abc import Callable
from typing import Final

from evertide.expr.data_errors import ArraySubscriptError
from evertide.expr.functions.build import partial, total
from evertide.expr.functions.members import Elements, same_element
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.text import check_length
from evertide.expr.functions.type_groups import SCALARS
from evertide.vocab.datum import Datum
from evertide.vocab.errors import FeatureNotSupported, NullValueNotAllowed, ProgramLimitExceeded
from evertide.vocab.sql_type import INT4, TEXT, SqlType, array_of

_INTS: Final = array_of(INT4)
# As many as take some ten megabytes.
_MOST_ELEMENTS: Final = 1_000_000


def _trim(array: Elements, count: int) -> Elements:
    if not 0 <= count <= len(array):
        raise ArraySubscriptError(f"number of elements to trim must be between 0 and {len(array)}")
    return array[: len(array) - count]


def _bounds(array: Elements) -> str | None:
    return f"[1:{len(array)}]" if array else None


def _filled(value: Datum, sizes: Elements | None) -> Elements:
    """One value over and over, in one dimension."""
    if sizes is None:
        raise NullValueNotAllowed("dimension array or low bound array cannot be null")
    if None in sizes:
        raise NullValueNotAllowed("dimension values cannot be null")
    if len(sizes) > 1:
        raise FeatureNotSupported("array_fill of several dimensions is not supported")
    size = sizes[0] if sizes else 0
    assert isinstance(size, int), "an array of integers has integers"
    if not 0 <= size <= _MOST_ELEMENTS:
        raise ProgramLimitExceeded(f"array size exceeds the maximum allowed ({_MOST_ELEMENTS})")
    check_length(size * _weight(value))
    return (value,) * size


def _weight(value: Datum) -> int:
    """How much text it is, at least. An array holds it once, but whoever writes it, many times."""
    if isinstance(value, tuple):
        return sum(map(_weight, value))
    return len(value) if isinstance(value, str | bytes) else 1


def _filled_from(value: Datum, sizes: Elements | None, starts: Elements | None) -> Elements:
    """The same, with a word on where arrays begin: at 1."""
    if sizes is None or starts is None:
        raise NullValueNotAllowed("dimension array or low bound array cannot be null")
    if None in sizes or None in starts:
        raise NullValueNotAllowed("dimension values cannot be null")
    if len(sizes) != len(starts):
        raise ArraySubscriptError("wrong number of array subscripts")
    found = _filled(value, sizes)
    if found and starts != (1,):
        raise FeatureNotSupported("arrays that begin elsewhere than at 1 are not supported")
    return found


def _lenient(
    name: str, arguments: tuple[SqlType, ...], result: SqlType, body: Callable[..., Datum]
) -> ScalarFunction:
    """A function that has something to say about NULL."""
    return ScalarFunction(name, arguments, result, body, strict=False)


def _array_rows(element: SqlType) -> list[ScalarFunction]:
    array, same = array_of(element), same_element(element)
    one, two = (element, _INTS), (element, _INTS, _INTS)
    three = (array, element, element)

    def positions(elements: Elements | None, wanted: Datum) -> Elements | None:
        if elements is None:
            return None
        return tuple(i for i, one in enumerate(elements, 1) if same(one, wanted))

    def replaced(elements: Elements | None, old: Datum, new: Datum) -> Elements | None:
        if elements is None:
            return None
        found = [same(one, old) for one in elements]
        check_length(found.count(True) * _weight(new))
        return tuple(new if hit else one for one, hit in zip(elements, found, strict=True))

    return [
        _lenient("array_positions", (array, element), array_of(INT4), positions),
        ScalarFunction("array_replace", three, array, replaced, strict=False, fallible=True),
        partial("trim_array", (array, INT4), array, _trim),
        ScalarFunction("array_fill", one, array, _filled, strict=False, fallible=True),
        ScalarFunction("array_fill", two, array, _filled_from, strict=False, fallible=True),
        total("array_dims", (array,), TEXT, _bounds),
    ]


ROWS: Final = tuple(row for element in SCALARS for row in _array_rows(element))
