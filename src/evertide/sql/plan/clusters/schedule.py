"""SCHEDULE: when a cluster's replicas run.

MANUAL, always, is all there is. Views with REFRESH need a replica at their refreshes alone, but
nobody turns one on and off for them yet; what is wrong with such a wish is told all the same.
"""

from evertide.expr.interval_text import format_interval, parse_interval
from evertide.sql.plan.clusters.options import Options
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import StringLiteral
from evertide.sql.syntax.option import Option, OptionGroup
from evertide.vocab.errors import FeatureNotSupported, InvalidParameterValue, SqlError


def asks_for_refreshes(options: Options) -> OptionGroup | None:
    """SCHEDULE = ON REFRESH, if that stands there."""
    value = options["SCHEDULE"].value if "SCHEDULE" in options else None
    return value if isinstance(value, OptionGroup) and value.words == "ON REFRESH" else None


def check_unscheduled(options: Options) -> None:
    """The replicas of an unmanaged cluster run as long as they are there."""
    if asks_for_refreshes(options) is not None:
        raise FeatureNotSupported(
            "cluster schedules other than MANUAL are not supported for unmanaged clusters",
            position=position_of(options["SCHEDULE"].at),
        )


def check_schedule(options: Options) -> None:
    """Of a managed cluster."""
    group = asks_for_refreshes(options)
    if group is None:
        return
    position = position_of(options["SCHEDULE"].at)
    if "REPLICATION FACTOR" in options:
        raise InvalidParameterValue(
            "REPLICATION FACTOR cannot be given together with any SCHEDULE other than MANUAL",
            position=position,
        )
    for option in group.options:
        _check_estimate(option)
    raise FeatureNotSupported(
        "SCHEDULE = ON REFRESH is not supported",
        detail="Replicas are not turned on and off for refreshes.",
        hint="Use SCHEDULE = MANUAL, and ALTER CLUSTER ... SET (REPLICATION FACTOR 0) to turn the"
        " replicas off. Views with REFRESH stay readable until their next refresh.",
        position=position,
    )


def _check_estimate(option: Option) -> None:
    assert isinstance(option.value, StringLiteral), "the parser takes nothing else"
    position = position_of(option.value.at)
    try:
        interval = parse_interval(option.value.value)
    except SqlError as error:
        error.position = position
        raise
    if interval.span_micros() < 0:
        raise InvalidParameterValue(
            f"{option.name} must be non-negative; got: {format_interval(interval)}",
            position=position,
        )
    if interval.months:
        raise InvalidParameterValue(
            f"{option.name} must not involve units larger than days", position=position
        )
