"""Functions of arrays, once per element type. Arrays have one dimension and begin at 1."""

from collections.abc import Callable, Sequence
from typing import Final

from evertide.expr.functions.build import partial, total
from evertide.expr.functions.members import Elements, Members, same_element
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.text import check_length
from evertide.expr.functions.type_groups import SCALARS, TEXT_ARRAY
from evertide.expr.text_output import formatter
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import BOOL, INT4, TEXT, SqlType, array_of, list_of

_GET: Final = "CASE WHEN {1} >= 1 THEN try_element_at({0}, {1}) END"
# Spark's size of NULL depends on settings.
_SIZE: Final = "CASE WHEN {0} IS NOT NULL THEN size({0}) END"


def _length(array: Elements, dimension: int) -> int | None:
    return len(array) if dimension == 1 and array else None


def _lower(array: Elements, dimension: int) -> int | None:
    return 1 if dimension == 1 and array else None


def _dimensions(array: Elements) -> int | None:
    return 1 if array else None


def _get(array: Elements, index: int) -> Datum:
    """A subscript; outside the array there is NULL."""
    return array[index - 1] if 1 <= index <= len(array) else None


def _slice(array: Elements, first: int | None, last: int | None) -> Elements | None:
    if first is None or last is None:
        return None
    return array[max(first, 1) - 1 : max(last, 0)]


def append(array: Elements | None, element: Datum) -> Elements:
    """An element at the end; a missing array is empty."""
    return (*(array or ()), element)


def prepend(element: Datum, array: Elements | None) -> Elements:
    """An element at the start; a missing array is empty."""
    return (element, *(array or ()))


def join(left: Elements | None, right: Elements | None) -> Elements | None:
    """A missing array is passed over, as PostgreSQL does."""
    if left is None or right is None:
        return right if left is None else left
    return left + right


def _construct(*elements: Datum) -> Elements:
    return elements


def _search_rows(element: SqlType) -> list[ScalarFunction]:
    array, same = array_of(element), same_element(element)
    members = Members(element)

    def position(elements: Elements | None, wanted: Datum) -> int | None:
        for index, candidate in enumerate(elements or (), 1):
            if same(candidate, wanted):
                return index
        return None

    def remove(elements: Elements | None, wanted: Datum) -> Elements | None:
        if elements is None:
            return None
        return tuple(candidate for candidate in elements if not same(candidate, wanted))

    return [
        _lenient("array_contains", (element, array), BOOL, members.holds),
        _lenient("array_position", (array, element), INT4, position),
        _lenient("array_remove", (array, element), array, remove),
        total("@>", (array, array), BOOL, members.holds_all),
        total("<@", (array, array), BOOL, lambda inner, outer: members.holds_all(outer, inner)),
        total("&&", (array, array), BOOL, members.overlap),
    ]


def _lenient(
    name: str, arguments: tuple[SqlType, ...], result: SqlType, body: Callable[..., Datum]
) -> ScalarFunction:
    """A function that has something to say about NULL."""
    return ScalarFunction(name, arguments, result, body, strict=False)


def _build_rows(element: SqlType) -> list[ScalarFunction]:
    array = array_of(element)
    return [
        _lenient("array_append", (array, element), array, append),
        _lenient("array_prepend", (element, array), array, prepend),
        _lenient("array_cat", (array, array), array, join),
        _lenient("||", (array, element), array, append),
        _lenient("||", (element, array), array, prepend),
        _lenient("||", (array, array), array, join),
        ScalarFunction("array", (element,), array, _construct, strict=False, variadic=True),
    ]


def _size_rows(element: SqlType) -> list[ScalarFunction]:
    array = array_of(element)
    return [
        total("array_length", (array, INT4), INT4, _length),
        total("array_upper", (array, INT4), INT4, _length),
        total("array_lower", (array, INT4), INT4, _lower),
        total("array_ndims", (array,), INT4, _dimensions),
        total("cardinality", (array,), INT4, len, _SIZE),
        total("array_get", (array, INT4), element, _get, _GET),
        total("array_slice", (array, INT4, INT4), array, _slice),
    ]


def held_rows(lists: SqlType) -> list[ScalarFunction]:
    """What lists have as arrays have it."""
    element = lists.element
    assert element is not None, "a list has an element type"
    return [
        total("array_get", (lists, INT4), element, _get, _GET),
        total("array_slice", (lists, INT4, INT4), lists, _slice),
        total("list_length", (lists,), INT4, len, _SIZE),
        ScalarFunction("list", (element,), lists, _construct, strict=False, variadic=True),
    ]


def array_rows(element: SqlType) -> list[ScalarFunction]:
    """All functions of arrays of this element."""
    families = (_size_rows, _search_rows, _build_rows, _text_rows)
    return [row for family in families for row in family(element)]


def joined_text(parts: Sequence[str | None], separator: str) -> str:
    """What is not NULL, with the separator between."""
    texts = [part for part in parts if part is not None]
    check_length(sum(map(len, texts)) + len(separator) * max(len(texts) - 1, 0))
    return separator.join(texts)


def _text_rows(element: SqlType) -> list[ScalarFunction]:
    array, write = array_of(element), formatter(element)

    def to_text(elements: Elements, separator: str | None, null: str | None = None) -> str | None:
        if separator is None:
            return None
        return joined_text([null if part is None else write(part) for part in elements], separator)

    def to_text_lenient(
        elements: Elements | None, separator: str | None, null: str | None
    ) -> str | None:
        return None if elements is None else to_text(elements, separator, null)

    texts = (array, TEXT, TEXT)
    return [
        partial("array_to_string", (array, TEXT), TEXT, to_text),
        ScalarFunction(
            "array_to_string", texts, TEXT, to_text_lenient, strict=False, fallible=True
        ),
    ]


def split_text(text: str | None, separator: str | None, null: str | None = None) -> Elements | None:
    """Text cut at a separator; at every character if that is NULL, nowhere if it is empty."""
    if text is None:
        return None
    if not text:
        return ()
    parts = list(text) if separator is None else text.split(separator) if separator else [text]
    return tuple(None if part == null else part for part in parts)


ROWS: Final = (
    *(row for element in SCALARS for row in array_rows(element)),
    *(row for element in SCALARS for row in held_rows(list_of(element))),
    _lenient("string_to_array", (TEXT, TEXT), TEXT_ARRAY, split_text),
    _lenient("string_to_array", (TEXT, TEXT, TEXT), TEXT_ARRAY, split_text),
)
