"""Options of load generators: what each takes, and what their values must be."""

from collections.abc import Sequence
from typing import Final

from evertide.catalog.objects import AuctionLoad, CounterLoad, Load
from evertide.expr.interval_text import parse_interval
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import NumberLiteral, StringLiteral, TypedLiteral, TypeName
from evertide.sql.syntax.option import Option
from evertide.vocab.errors import InvalidParameterValue, SqlError, SqlSyntaxError

DEFAULT_TICK_MS: Final = 1_000
# What is there from the beginning is written in one piece.
MOST_TICKS_AT_ONCE: Final = 1_000_000
_MOST: Final = 2**62
_INTERVAL: Final = TypeName(("interval",))
_EVERY: Final = ("TICK INTERVAL", "AS OF", "UP TO")
_TAKEN: Final = {
    "COUNTER": (*_EVERY, "MAX CARDINALITY"),
    "AUCTION": (*_EVERY, "SEED"),
}


def load_of(generator: str, options: Sequence[Option]) -> Load:
    """The generator that the options ask for."""
    found = _by_name(generator, options)
    tick_ms = _tick_ms(found["TICK INTERVAL"]) if "TICK INTERVAL" in found else DEFAULT_TICK_MS
    from_tick = _number(found.get("AS OF"), 0, MOST_TICKS_AT_ONCE) or 0
    up_to = _number(found.get("UP TO"), 0, _MOST)
    if up_to is not None and up_to < from_tick:
        raise InvalidParameterValue(
            f"UP TO {up_to} is before AS OF {from_tick}", position=position_of(found["UP TO"].at)
        )
    if generator == "COUNTER":
        most = _number(found.get("MAX CARDINALITY"), 1, _MOST)
        return CounterLoad(
            tick_ms=tick_ms, from_tick=from_tick, up_to_tick=up_to, max_cardinality=most
        )
    seed = _number(found.get("SEED"), 0, _MOST) or 0
    return AuctionLoad(tick_ms=tick_ms, from_tick=from_tick, up_to_tick=up_to, seed=seed)


def _by_name(generator: str, options: Sequence[Option]) -> dict[str, Option]:
    found: dict[str, Option] = {}
    for option in options:
        if option.name in found:
            raise SqlSyntaxError(
                f"{option.name} specified more than once", position=position_of(option.at)
            )
        if option.name not in _TAKEN[generator]:
            raise InvalidParameterValue(
                f"load generator {generator} has no option {option.name}",
                hint=f"It takes {', '.join(_TAKEN[generator])}.",
                position=position_of(option.at),
            )
        found[option.name] = option
    return found


def _tick_ms(option: Option) -> int:
    value = option.value
    plain = isinstance(value, TypedLiteral) and value.target == _INTERVAL
    if not plain and not isinstance(value, StringLiteral):
        raise _bad(option, "an interval is needed")
    assert isinstance(value, TypedLiteral | StringLiteral), "nothing else was let through"
    try:
        micros = parse_interval(value.value).span_micros()
    except SqlError as error:
        raise _bad(option, error.message) from error
    if micros < 1_000 or micros % 1_000:
        raise _bad(option, "it must be one or more whole milliseconds")
    return micros // 1_000


def _number(option: Option | None, least: int, most: int) -> int | None:
    if option is None:
        return None
    match option.value:
        case NumberLiteral(text=text) if text.isdecimal() and least <= int(text) <= most:
            return int(text)
        case _:
            raise _bad(option, f"a whole number between {least} and {most} is needed")


def _bad(option: Option, reason: str) -> InvalidParameterValue:
    return InvalidParameterValue(
        f"invalid {option.name}: {reason}", position=position_of(option.at)
    )
