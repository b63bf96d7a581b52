"""Functions that give a jsonb value with a part of it changed, and those that follow a path."""

from collections.abc import Callable
from typing import Final, TypeAlias

from evertide.expr.data_errors import ArraySubscriptError, NullValueNotAllowed
from evertide.expr.functions.build import partial
from evertide.expr.functions.jsonb import follow, follow_text
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.type_groups import TEXT_ARRAY
from evertide.expr.json_value import Json, dump_json, read_canonical
from evertide.vocab.errors import InvalidParameterValue, InvalidTextRepresentation
from evertide.vocab.sql_type import BOOL, JSONB, TEXT

Path: TypeAlias = tuple[str | None, ...]
# What becomes of a container at the end of a path, given the last step there.
Change: TypeAlias = Callable[["dict[str, Json] | list[Json]", "str | int"], Json]


def _changed(target: str, path: Path, change: Change, *, what: str, adds: bool) -> str:
    """The target with the container that the path's last step is taken in changed.

    Nothing is looked for in one that is empty if nothing can be added.
    """
    value = read_canonical(target)
    if not isinstance(value, dict | list):
        raise InvalidParameterValue(f"cannot {what} path in scalar")
    if not path or not (value or adds):
        return target
    return dump_json(_descend(value, path, 0, change))


def _descend(value: Json, path: Path, level: int, change: Change) -> Json:
    if not isinstance(value, dict | list):
        return value
    step = path[level]
    if step is None:
        raise NullValueNotAllowed(f"path element at position {level + 1} is null")
    place: str | int = step if isinstance(value, dict) else _index(step, level)
    if level == len(path) - 1:
        return change(value, place)
    if isinstance(value, dict):
        if step not in value:
            return value
        return {**value, step: _descend(value[step], path, level + 1, change)}
    assert isinstance(place, int), "steps into arrays are numbers"
    if not -len(value) <= place < len(value):
        return value
    copy = list(value)
    copy[place] = _descend(copy[place], path, level + 1, change)
    return copy


def _index(step: str, level: int) -> int:
    digits = step.strip().removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdigit() and -(2**31) <= int(step) < 2**31):
        raise InvalidTextRepresentation(
            f'path element at position {level + 1} is not an integer: "{step}"'
        )
    return int(step)


def _set(target: str, path: Path, new: str, create: bool = True) -> str:
    """A part replaced; one that is missing is added if `create`."""
    given = read_canonical(new)

    def change(value: dict[str, Json] | list[Json], place: str | int) -> Json:
        if isinstance(value, dict):
            assert isinstance(place, str), "objects have keys"
            return {**value, place: given} if create or place in value else value
        assert isinstance(place, int), "arrays have positions"
        if -len(value) <= place < len(value):
            copy = list(value)
            copy[place] = given
            return copy
        if not create:
            return value
        return [given, *value] if place < 0 else [*value, given]

    return _changed(target, path, change, what="set", adds=create)


def _insert(target: str, path: Path, new: str, after: bool = False) -> str:
    """A part added: a new key, or an element before or after another."""
    given = read_canonical(new)

    def change(value: dict[str, Json] | list[Json], place: str | int) -> Json:
        if isinstance(value, dict):
            assert isinstance(place, str), "objects have keys"
            if place in value:
                raise InvalidParameterValue(
                    "cannot replace existing key",
                    hint="Try using the function jsonb_set to replace key value.",
                )
            return {**value, place: given}
        assert isinstance(place, int), "arrays have positions"
        start = place + len(value) if place < 0 else place
        start = min(max(start + (1 if after and 0 <= start < len(value) else 0), 0), len(value))
        return [*value[:start], given, *value[start:]]

    return _changed(target, path, change, what="set", adds=True)


def _delete(target: str, path: Path) -> str:
    def change(value: dict[str, Json] | list[Json], place: str | int) -> Json:
        if isinstance(value, dict):
            return {key: member for key, member in value.items() if key != place}
        assert isinstance(place, int), "arrays have positions"
        if not -len(value) <= place < len(value):
            return value
        gone = place % len(value)
        return [element for number, element in enumerate(value) if number != gone]

    return _changed(target, path, change, what="delete", adds=False)


def _object(pairs: Path) -> str:
    """Keys and values in turn."""
    if len(pairs) % 2:
        raise ArraySubscriptError("array must have even number of elements")
    return _object_of(pairs[::2], pairs[1::2])


def _object_of(keys: Path, values: Path) -> str:
    if len(keys) != len(values):
        raise ArraySubscriptError("mismatched array dimensions")
    members: dict[str, Json] = {}
    for key, value in zip(keys, values, strict=True):
        if key is None:
            raise NullValueNotAllowed("null value not allowed for object key")
        members[key] = value
    return dump_json(members)


def _follow(value: str, *path: str) -> str | None:
    return follow(value, path)


def _follow_text(value: str, *path: str) -> str | None:
    return follow_text(value, path)


ROWS: Final = (
    partial("jsonb_set", (JSONB, TEXT_ARRAY, JSONB), JSONB, _set),
    partial("jsonb_set", (JSONB, TEXT_ARRAY, JSONB, BOOL), JSONB, _set),
    partial("jsonb_insert", (JSONB, TEXT_ARRAY, JSONB), JSONB, _insert),
    partial("jsonb_insert", (JSONB, TEXT_ARRAY, JSONB, BOOL), JSONB, _insert),
    partial("#-", (JSONB, TEXT_ARRAY), JSONB, _delete),
    partial("jsonb_object", (TEXT_ARRAY,), JSONB, _object),
    partial("jsonb_object", (TEXT_ARRAY, TEXT_ARRAY), JSONB, _object_of),
    ScalarFunction("jsonb_extract_path", (JSONB, TEXT), JSONB, _follow, variadic=True),
    ScalarFunction("jsonb_extract_path_text", (JSONB, TEXT), TEXT, _follow_text, variadic=True),
)
