"""Aggregates whose arguments come in an order asked for: `string_agg(a, ',' ORDER BY b DESC)`.

Executors give an aggregate its arguments in the arguments' own order. So a call with another order
is made into one whose arguments sort as it asks: pairs of bytes, of which the first is what ORDER
BY compares, and the second the argument. There is no end of such functions, so their rows are made
when a plan names them, once, as those of `made` are.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby, product
from operator import itemgetter
from typing import Final

import msgspec

from evertide.expr.functions.made import arguments_of
from evertide.expr.functions.row import Accumulator, AggregateFunction, ScalarFunction
from evertide.expr.functions.type_groups import unmodified
from evertide.expr.relation import OrderKey
from evertide.expr.row_key import first_of_equals, in_value_order, order_key
from evertide.expr.scalar_codec import Plain, plain_datum, read_datum
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import BOOL, BYTEA, Kind, SqlType, array_of

# Before the aggregate's own name; True: equal arguments count once.
_PREFIXES: Final = {False: "mz_in_order.", True: "mz_in_order.distinct."}
_PLACE: Final = "mz_place"
_PLACED: Final = "mz_placed"
_PAIR: Final = array_of(BYTEA)
# What each of them was made of, and whether equal arguments count once.
_MADE_OF: dict[AggregateFunction, tuple[AggregateFunction, bool]] = {}


def place_of(sql_type: SqlType) -> ScalarFunction:
    """Of a value, whether it is descending and whether NULL is first: bytes that sort so."""
    return _place_of(unmodified(sql_type))


def placed(sql_type: SqlType) -> ScalarFunction:
    """Of an argument and its place: both as a pair. An argument that is NULL stays NULL."""
    return _placed(unmodified(sql_type))


def in_order(
    function: AggregateFunction, argument: SqlType, *, distinct: bool
) -> AggregateFunction:
    """The aggregate that gives over pairs what `function` gives over their arguments.

    `argument` is what `function` looks at, which may be several arguments packed into one.
    """
    return _in_order(function, unmodified(argument), distinct)


def made_of(function: AggregateFunction) -> tuple[AggregateFunction, bool] | None:
    """The aggregate that `in_order` was given, and whether equal arguments count once."""
    return _MADE_OF.get(function)


def ordered_row(signature: str) -> ScalarFunction | None:
    """The scalar function with this signature, if it is one of these."""
    name, types = arguments_of(signature)
    if name not in (_PLACE, _PLACED) or not types:
        return None
    return _place_of(types[0]) if name == _PLACE else _placed(types[0])


def ordered_aggregate(
    signature: str, functions: Callable[[str], ScalarFunction | AggregateFunction]
) -> AggregateFunction | None:
    """The aggregate with this signature, if it is one of these."""
    for distinct, prefix in reversed(_PREFIXES.items()):
        if signature.startswith(prefix):
            name, types = arguments_of(signature.removeprefix(prefix))
            assert types, f"{signature!r} names what it looks at"
            function = functions(f"{name}({','.join(map(str, types[1:]))})")
            assert isinstance(function, AggregateFunction), f"{function} is an aggregate"
            return _in_order(function, types[0], distinct)
    return None


@cache
def _place_of(sql_type: SqlType) -> ScalarFunction:
    ways = {
        way: order_key((sql_type,), (OrderKey(0, *way),))
        for way in product((False, True), repeat=2)
    }

    def place(datum: Datum, descending: bool, nulls_first: bool) -> bytes:
        return ways[descending, nulls_first]((datum,))

    return ScalarFunction(_PLACE, (sql_type, BOOL, BOOL), BYTEA, place, strict=False)


@cache
def _placed(sql_type: SqlType) -> ScalarFunction:
    encode = msgspec.msgpack.encode

    plain = _plain_with_one_nan if _holds_floats(sql_type) else plain_datum

    def pair(datum: Datum, place: bytes) -> Datum:
        return None if datum is None else (place, encode(plain(sql_type, datum)))

    return ScalarFunction(_PLACED, (sql_type, BYTEA), _PAIR, pair, strict=False)


def _holds_floats(sql_type: SqlType) -> bool:
    inside = [sql_type.element] if sql_type.element else [t for _, t in sql_type.fields or ()]
    return sql_type.kind in (Kind.FLOAT4, Kind.FLOAT8) or any(map(_holds_floats, inside))


def _plain_with_one_nan(sql_type: SqlType, datum: Datum) -> Plain:
    """As plain_datum. A pair is taken back by its bytes, and there are many that mean NaN."""
    return _one_nan(plain_datum(sql_type, datum))


def _one_nan(plain: Plain) -> Plain:
    if isinstance(plain, list):
        return [_one_nan(part) for part in plain]
    return math.nan if plain != plain else plain


@cache
def _in_order(function: AggregateFunction, argument: SqlType, distinct: bool) -> AggregateFunction:
    body = function.finish_rows
    assert body is not None, f"{function} does not depend on order"

    def finish(pairs: Sequence[tuple[bytes, bytes]]) -> Datum:
        return body([*_arguments(argument, pairs, distinct=distinct)])

    name, types = f"{_PREFIXES[distinct]}{function.name}", (argument, *function.arguments)
    made = AggregateFunction(name, types, function.result, Accumulator.ROWS, finish_rows=finish)
    _MADE_OF[made] = function, distinct
    return made


def _arguments(
    sql_type: SqlType, pairs: Iterable[tuple[bytes, bytes]], *, distinct: bool
) -> Iterator[Datum]:
    """Arguments by place, those of one place in their own order. Equal ones have one place."""
    decode = msgspec.msgpack.decode
    for _, group in groupby(pairs, key=itemgetter(0)):
        values = [read_datum(sql_type, decode(encoded)) for _, encoded in group]
        if len(values) > 1:
            values = in_value_order(sql_type, values)
        yield from first_of_equals(sql_type, values) if distinct else values
