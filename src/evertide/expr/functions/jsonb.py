"""Operators and functions of jsonb. Values are read, looked at and written back canonically."""

import json
from decimal import Decimal
from typing import Final

from evertide.expr.functions.build import Body, partial, total
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.type_groups import TEXT_ARRAY
from evertide.expr.json_value import Json, dump_json, read_canonical
from evertide.expr.numeric_value import numeric_text
from evertide.vocab.errors import InvalidParameterValue
from evertide.vocab.sql_type import BOOL, INT4, INT8, JSONB, TEXT

# Tells "there is no such element" from the JSON null.
_MISSING: Final = object()


def _member(value: Json, key: str) -> object:
    return value.get(key, _MISSING) if isinstance(value, dict) else _MISSING


def _element(value: Json, index: int) -> object:
    """PostgreSQL takes a scalar for an array of one element."""
    if not isinstance(value, list | dict):
        value = [value]
    if not isinstance(value, list) or not -len(value) <= index < len(value):
        return _MISSING
    return value[index]


def _as_jsonb(found: object) -> str | None:
    return None if found is _MISSING else dump_json(_json(found))


def _as_text(found: object) -> str | None:
    """A string without its quotes; the JSON null is NULL."""
    if found is _MISSING or found is None:
        return None
    return found if isinstance(found, str) else dump_json(_json(found))


def _json(found: object) -> Json:
    assert found is None or isinstance(found, bool | Decimal | str | list | dict)
    return found


def _get_member(value: str, key: str) -> str | None:
    return _as_jsonb(_member(read_canonical(value), key))


def _get_member_text(value: str, key: str) -> str | None:
    return _as_text(_member(read_canonical(value), key))


def _get_element(value: str, index: int) -> str | None:
    return _as_jsonb(_element(read_canonical(value), index))


def _get_element_text(value: str, index: int) -> str | None:
    return _as_text(_element(read_canonical(value), index))


def _follow(value: Json, path: tuple[str | None, ...]) -> object:
    """The element at the end of a path of keys and positions."""
    found: object = value
    for step in path:
        if step is None:
            return _MISSING
        current = _json(found)
        if isinstance(current, list):
            position = _position(step)
            found = _MISSING if position is None else _element(current, position)
        else:
            found = _member(current, step)
        if found is _MISSING:
            return _MISSING
    return found


def _position(step: str) -> int | None:
    stripped = step.strip()
    digits = stripped[1:] if stripped[:1] in ("-", "+") else stripped
    plausible = digits.isascii() and digits.isdigit() and len(digits) < 11
    return int(stripped) if plausible else None


def follow(value: str, path: tuple[str | None, ...]) -> str | None:
    """What is at the end of a path."""
    return _as_jsonb(_follow(read_canonical(value), path))


def follow_text(value: str, path: tuple[str | None, ...]) -> str | None:
    """What is at the end of a path, as text."""
    return _as_text(_follow(read_canonical(value), path))


def contains(outer: Json, inner: Json, *, top: bool = True) -> bool:
    """Whether all of `inner` is found in `outer`, at the same level.

    At the top an array contains a scalar that is one of its elements.
    """
    if isinstance(outer, dict):
        return isinstance(inner, dict) and all(
            key in outer and contains(outer[key], value, top=False) for key, value in inner.items()
        )
    if isinstance(outer, list):
        if not isinstance(inner, list):
            return top and not isinstance(inner, dict) and _has_equal(outer, inner)
        return all(_contains_element(outer, element) for element in inner)
    return not isinstance(inner, dict | list) and same_scalar(outer, inner)


def _contains_element(outer: list[Json], element: Json) -> bool:
    if isinstance(element, dict | list):
        return any(
            isinstance(candidate, type(element)) and contains(candidate, element, top=False)
            for candidate in outer
        )
    return _has_equal(outer, element)


def _has_equal(elements: list[Json], scalar: Json) -> bool:
    return any(same_scalar(element, scalar) for element in elements)


def same_scalar(left: Json, right: Json) -> bool:
    """Whether two scalars are the same; Python would find true equal to 1."""
    return type(left) is type(right) and left == right


def _contains(left: str, right: str) -> bool:
    return contains(read_canonical(left), read_canonical(right))


def _contained(left: str, right: str) -> bool:
    return _contains(right, left)


def has_key(value: Json, key: str) -> bool:
    """Whether a string is a key of an object, an element of an array, or the value itself."""
    if isinstance(value, dict):
        return key in value
    if isinstance(value, list):
        return any(isinstance(element, str) and element == key for element in value)
    return isinstance(value, str) and value == key


def _exists(value: str, key: str) -> bool:
    return has_key(read_canonical(value), key)


def _exists_any(value: str, keys: tuple[str | None, ...]) -> bool:
    parsed = read_canonical(value)
    return any(key is not None and has_key(parsed, key) for key in keys)


def _exists_all(value: str, keys: tuple[str | None, ...]) -> bool:
    parsed = read_canonical(value)
    return all(key is None or has_key(parsed, key) for key in keys)


def _concatenate(left: str, right: str) -> str:
    """Objects are merged; everything else becomes elements of one array."""
    first, second = read_canonical(left), read_canonical(right)
    if isinstance(first, dict) and isinstance(second, dict):
        return dump_json({**first, **second})
    return dump_json(_as_list(first) + _as_list(second))


def _as_list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


def _delete_key(value: str, key: str) -> str:
    return _delete_keys(value, (key,))


def _delete_keys(value: str, keys: tuple[str | None, ...]) -> str:
    parsed = read_canonical(value)
    if isinstance(parsed, dict):
        return dump_json({key: inner for key, inner in parsed.items() if key not in keys})
    if isinstance(parsed, list):
        return dump_json(
            [inner for inner in parsed if not (isinstance(inner, str) and inner in keys)]
        )
    raise InvalidParameterValue("cannot delete from scalar")


def _delete_element(value: str, index: int) -> str:
    parsed = read_canonical(value)
    if isinstance(parsed, dict):
        raise InvalidParameterValue("cannot delete from object using integer index")
    if not isinstance(parsed, list):
        raise InvalidParameterValue("cannot delete from scalar")
    if -len(parsed) <= index < len(parsed):
        del parsed[index]
    return dump_json(parsed)


def type_name(value: Json) -> str:
    """The word that jsonb_typeof says."""
    if value is None:
        return "null"
    names = {bool: "boolean", Decimal: "number", str: "string", list: "array", dict: "object"}
    return names[type(value)]


def _type_of(value: str) -> str:
    return type_name(read_canonical(value))


def _array_length(value: str) -> int:
    parsed = read_canonical(value)
    if isinstance(parsed, list):
        return len(parsed)
    kind = "non-array" if isinstance(parsed, dict) else "scalar"
    raise InvalidParameterValue(f"cannot get array length of a {kind}")


def _strip_nulls(value: str) -> str:
    return dump_json(_without_nulls(read_canonical(value)))


def _without_nulls(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def _pretty(value: str) -> str:
    return _indented(read_canonical(value), 0)


def _indented(value: Json, depth: int) -> str:
    margin, inner_margin = "    " * depth, "    " * (depth + 1)
    if isinstance(value, dict):
        lines = [
            f"{inner_margin}{json.dumps(key, ensure_ascii=False)}: {_indented(inner, depth + 1)}"
            for key, inner in value.items()
        ]
        return "{\n" + ",\n".join(lines) + ("\n" if lines else "") + margin + "}"
    if isinstance(value, list):
        lines = [inner_margin + _indented(inner, depth + 1) for inner in value]
        return "[\n" + ",\n".join(lines) + ("\n" if lines else "") + margin + "]"
    return dump_json(value)


def _build_array(*values: str | None) -> str:
    return f"[{','.join('null' if value is None else value for value in values)}]"


def _build_object(*values: str | None) -> str:
    """Keys and values by turns, each as jsonb; the last of equal keys wins."""
    if len(values) % 2:
        raise InvalidParameterValue("argument list must have even number of elements")
    result: dict[str, Json] = {}
    for index in range(0, len(values), 2):
        key = values[index]
        if key is None:
            raise InvalidParameterValue("key cannot be null")
        value = values[index + 1]
        result[key_text(read_canonical(key))] = None if value is None else read_canonical(value)
    return dump_json(result)


def key_text(value: Json) -> str:
    """A key from any scalar."""
    if isinstance(value, str):
        return value
    if isinstance(value, Decimal):
        return numeric_text(value)
    if isinstance(value, dict | list):
        raise InvalidParameterValue("key value must be scalar, not array, composite, or json")
    return dump_json(value)


_STEPS: Final[dict[str, tuple[Body, Body]]] = {
    "->": (_get_member, _get_element),
    "->>": (_get_member_text, _get_element_text),
}
_TESTS: Final[dict[str, Body]] = {"@>": _contains, "<@": _contained}

ROWS: Final = (
    *(
        row
        for name, (member, element) in _STEPS.items()
        for result in [TEXT if name == "->>" else JSONB]
        for row in (
            total(name, (JSONB, TEXT), result, member),
            total(name, (JSONB, INT8), result, element),
        )
    ),
    total("#>", (JSONB, TEXT_ARRAY), JSONB, follow),
    total("#>>", (JSONB, TEXT_ARRAY), TEXT, follow_text),
    *(total(name, (JSONB, JSONB), BOOL, body) for name, body in _TESTS.items()),
    total("?", (JSONB, TEXT), BOOL, _exists),
    total("?|", (JSONB, TEXT_ARRAY), BOOL, _exists_any),
    total("?&", (JSONB, TEXT_ARRAY), BOOL, _exists_all),
    total("||", (JSONB, JSONB), JSONB, _concatenate),
    partial("-", (JSONB, TEXT), JSONB, _delete_key),
    partial("-", (JSONB, TEXT_ARRAY), JSONB, _delete_keys),
    partial("-", (JSONB, INT8), JSONB, _delete_element),
    total("jsonb_typeof", (JSONB,), TEXT, _type_of),
    partial("jsonb_array_length", (JSONB,), INT4, _array_length),
    total("jsonb_strip_nulls", (JSONB,), JSONB, _strip_nulls),
    total("jsonb_pretty", (JSONB,), TEXT, _pretty),
    total("jsonb_build_array", (), JSONB, _build_array),
    total("jsonb_build_object", (), JSONB, _build_object),
    ScalarFunction("jsonb_build_array", (JSONB,), JSONB, _build_array, strict=False, variadic=True),
    ScalarFunction(
        "jsonb_build_object",
        (JSONB,),
        JSONB,
        _build_object,
        strict=False,
        fallible=True,
        variadic=True,
    ),
)
