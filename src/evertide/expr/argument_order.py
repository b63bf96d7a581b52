"""ORDER BY inside aggregates, for executors that give an aggregate its arguments in value order."""

from typing import Final

from evertide.expr.functions.in_order import in_order, made_of, place_of, placed
from evertide.expr.functions.table import find_scalar
from evertide.expr.relation import AggregateCall, ArgumentOrder
from evertide.expr.scalar import Call, Literal, Scalar
from evertide.vocab.sql_type import BOOL, BYTEA

_JOINED: Final = find_scalar("mz_joined_keys")[0]


def in_value_order(call: AggregateCall) -> AggregateCall:
    """The same aggregate over arguments whose own order is the one that was asked for."""
    if not call.order or call.argument is None:
        return call
    argument = call.argument
    function = placed(argument.type)
    pair = Call(function, (argument, _place(call.order)), function.result)
    return AggregateCall(in_order(call.function, argument.type, distinct=call.distinct), pair)


def _place(order: tuple[ArgumentOrder, ...]) -> Scalar:
    places = [
        Call(
            place_of(key.key.type),
            (key.key, Literal(key.descending, BOOL), Literal(key.nulls_first, BOOL)),
            BYTEA,
        )
        for key in order
    ]
    return places[0] if len(places) == 1 else Call(_JOINED, tuple(places), BYTEA)


def as_asked(call: AggregateCall) -> AggregateCall:
    """The inverse, for those who show a plan."""
    made = made_of(call.function)
    if made is None:
        return call
    assert isinstance(call.argument, Call), "it looks at pairs"
    argument, place = call.argument.arguments
    assert isinstance(place, Call), "places are made"
    places = place.arguments if place.function is _JOINED else (place,)
    function, distinct = made
    return AggregateCall(function, argument, distinct, tuple(map(_asked_order, places)))


def _asked_order(place: Scalar) -> ArgumentOrder:
    match place:
        case Call(arguments=(key, Literal(value=bool(descending)), Literal(value=bool(first)))):
            return ArgumentOrder(key, descending, first)
        case _:
            raise AssertionError(f"{place} is no place")
