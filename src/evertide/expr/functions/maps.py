"""Functions of maps from text to values, made once per type of value.

A map is a tuple of (key, value) pairs in the order of keys, each key once.
"""

from collections.abc import Iterable

from evertide.expr.functions.build import partial, total
from evertide.expr.functions.members import same_element
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.type_groups import TEXT_ARRAY
from evertide.vocab.datum import Datum
from evertide.vocab.errors import NullValueNotAllowed
from evertide.vocab.sql_type import BOOL, INT4, TEXT, SqlType, list_of, map_of

Pairs = tuple[tuple[str, Datum], ...]


def sorted_pairs(pairs: Iterable[tuple[str, Datum]]) -> Pairs:
    """A map of these; the last of equal keys wins.

    >>> sorted_pairs([("b", 1), ("a", 2), ("b", 3)])
    (('a', 2), ('b', 3))
    """
    return tuple(sorted(dict(pairs).items(), key=lambda pair: pair[0]))


def _made(keys: tuple[str | None, ...], values: tuple[Datum, ...]) -> Pairs:
    given: list[tuple[str, Datum]] = []
    for key, value in zip(keys, values, strict=True):
        if key is None:
            raise NullValueNotAllowed("map keys cannot be null")
        given.append((key, value))
    return sorted_pairs(given)


def _get(pairs: Pairs, key: str) -> Datum:
    return dict(pairs).get(key)


def _has(pairs: Pairs, key: str) -> bool:
    return key in dict(pairs)


def _has_all(pairs: Pairs, keys: tuple[str | None, ...]) -> bool:
    held = dict(pairs)
    return all(key is not None and key in held for key in keys)


def _has_any(pairs: Pairs, keys: tuple[str | None, ...]) -> bool:
    held = dict(pairs)
    return any(key is not None and key in held for key in keys)


def _built(pairs: tuple[tuple[str | None, Datum] | None, ...]) -> Pairs:
    """What is NULL, or has no key, is passed over."""
    return sorted_pairs(
        (pair[0], pair[1]) for pair in pairs if pair is not None and pair[0] is not None
    )


def pair_rows(element: SqlType) -> list[ScalarFunction]:
    """What makes maps of lists of such elements, if those are pairs of a key and a value."""
    match element.fields:
        case ((_, key), (_, value)) if key == TEXT:
            return [total("map_build", (list_of(element),), map_of(value), _built)]
        case _:
            return []


def map_rows(value: SqlType) -> list[ScalarFunction]:
    """All functions and operators of maps with these values."""
    maps, same = map_of(value), same_element(value)

    def contains(outer: Pairs, inner: Pairs) -> bool:
        held = dict(outer)
        return all(key in held and same(held[key], wanted) for key, wanted in inner)

    return [
        partial("map", (TEXT_ARRAY, list_of(value)), maps, _made),
        total("->", (maps, TEXT), value, _get),
        total("?", (maps, TEXT), BOOL, _has),
        total("?&", (maps, TEXT_ARRAY), BOOL, _has_all),
        total("?|", (maps, TEXT_ARRAY), BOOL, _has_any),
        total("@>", (maps, maps), BOOL, contains),
        total("<@", (maps, maps), BOOL, lambda inner, outer: contains(outer, inner)),
        total("map_length", (maps,), INT4, len),
    ]
