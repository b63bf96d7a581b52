"""Functions of arrays of several dimensions, made once per type."""

from collections.abc import Callable

from evertide.expr.data_errors import ArraySubscriptError
from evertide.expr.dimensions import base_of, dimension_count, flat, lengths_of, regular
from evertide.expr.functions.array import joined_text
from evertide.expr.functions.build import partial, total
from evertide.expr.functions.members import Elements, Members
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.text_output import formatter
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import BOOL, INT4, TEXT, SqlType, array_of

# Makes one dimension of all, where something is asked of each element.
FLATTEN = "mz_array_flatten"
_GET = "CASE WHEN {1} >= 1 THEN try_element_at({0}, {1}) END"


def dimension_rows(array: SqlType) -> list[ScalarFunction]:
    """All functions of such arrays."""
    return [*_size_rows(array), *_element_rows(array), *_build_rows(array)]


def _size_rows(array: SqlType) -> list[ScalarFunction]:
    count = dimension_count(array)

    def length(elements: Elements, dimension: int) -> int | None:
        lengths = lengths_of(elements, count)
        return lengths[dimension - 1] if 1 <= dimension <= len(lengths) else None

    def lower(elements: Elements, dimension: int) -> int | None:
        return None if length(elements, dimension) is None else 1

    def cardinality(elements: Elements) -> int:
        return sum(1 for _ in flat(elements, count))

    def bounds(elements: Elements) -> str | None:
        return "".join(f"[1:{length}]" for length in lengths_of(elements, count)) or None

    return [
        total("array_length", (array, INT4), INT4, length),
        total("array_upper", (array, INT4), INT4, length),
        total("array_lower", (array, INT4), INT4, lower),
        total("array_ndims", (array,), INT4, lambda elements: count if elements else None),
        total("cardinality", (array,), INT4, cardinality),
        total("array_dims", (array,), TEXT, bounds),
    ]


def _get(array: Elements, index: int) -> Datum:
    return array[index - 1] if 1 <= index <= len(array) else None


def _slice(array: Elements, first: int, last: int) -> Elements:
    return array[max(first, 1) - 1 : max(last, 0)]


def _element_rows(array: SqlType) -> list[ScalarFunction]:
    count, base, element = dimension_count(array), base_of(array), array.element
    assert element is not None, "an array has an element type"
    members, write = Members(base), formatter(base)

    def of_all(ask: Callable[[Elements, Elements], bool]) -> Callable[..., bool]:
        return lambda left, right: ask(tuple(flat(left, count)), tuple(flat(right, count)))

    def held_by(inner: Elements, outer: Elements) -> bool:
        return members.holds_all(outer, inner)

    def to_text(elements: Elements, separator: str, null: str | None = None) -> str:
        parts = [null if part is None else write(part) for part in flat(elements, count)]
        return joined_text(parts, separator)

    def to_text_lenient(
        elements: Elements | None, separator: str | None, null: str | None
    ) -> str | None:
        known = elements is not None and separator is not None
        return to_text(elements or (), separator or "", null) if known else None

    texts = (array, TEXT, TEXT)
    return [
        total("array_get", (array, INT4), element, _get, _GET),
        total("array_slice", (array, INT4, INT4), array, _slice),
        total(FLATTEN, (array,), array_of(base), lambda elements: tuple(flat(elements, count))),
        total("@>", (array, array), BOOL, of_all(members.holds_all)),
        total("<@", (array, array), BOOL, of_all(held_by)),
        total("&&", (array, array), BOOL, of_all(members.overlap)),
        partial("array_to_string", (array, TEXT), TEXT, to_text),
        ScalarFunction(
            "array_to_string", texts, TEXT, to_text_lenient, strict=False, fallible=True
        ),
    ]


def _build_rows(array: SqlType) -> list[ScalarFunction]:
    count, element = dimension_count(array), array.element
    assert element is not None, "an array has an element type"

    def checked(elements: Elements, message: str) -> Elements:
        found = regular(elements, count)
        if found is None:
            raise ArraySubscriptError(message)
        return found

    def construct(*elements: Datum) -> Elements:
        if not any(elements):
            return ()  # of NULLs and empty arrays
        return checked(
            elements,
            "multidimensional arrays must have array expressions with matching dimensions",
        )

    def joined(left: Elements, right: Elements) -> Elements:
        return checked(left + right, "cannot concatenate incompatible arrays")

    def join(left: Elements | None, right: Elements | None) -> Elements | None:
        if left is None or right is None:
            return right if left is None else left
        return joined(left, right)

    def append(left: Elements | None, right: Elements | None) -> Elements | None:
        return left if not right else joined(left or (), (right,))

    def prepend(left: Elements | None, right: Elements | None) -> Elements | None:
        return right if not left else joined((left,), right or ())

    def row(name: str, types: tuple[SqlType, ...], body: Callable[..., Datum]) -> ScalarFunction:
        return ScalarFunction(name, types, array, body, strict=False, fallible=True)

    forms = (((array, array), join), ((array, element), append), ((element, array), prepend))
    made = [row(name, types, body) for name in ("||", "array_cat") for types, body in forms]
    constructor = ScalarFunction(
        "array", (element,), array, construct, strict=False, fallible=True, variadic=True
    )
    return [*made, constructor]
