"""Windows by name, and frames."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from evertide.expr.functions.cast import CastContext
from evertide.expr.functions.type_groups import unmodified
from evertide.expr.range_frame import DISTANCES, is_distance
from evertide.expr.relation import ArgumentOrder, Distance, Frame
from evertide.expr.scalar import Literal
from evertide.sql.plan.constant import plan_constant
from evertide.sql.plan.errors import InvalidFrameOffset
from evertide.sql.plan.expression_context import ExpressionContext
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import FrameBound, NumberLiteral, Window, WindowFrame
from evertide.sql.syntax.query import NamedWindow
from evertide.vocab.errors import (
    CannotCoerce,
    FeatureNotSupported,
    NullValueNotAllowed,
    UndefinedObject,
    WindowingError,
)
from evertide.vocab.sql_type import INTERVAL, Kind

# No partition has so many rows, and plans can still be sent.
_FARTHEST: Final = 1 << 62


def named_windows(windows: Sequence[NamedWindow]) -> Mapping[str, Window]:
    """What WINDOW defines, each definition whole; one may stand on those before it."""
    known: dict[str, Window] = {}
    for item in windows:
        if item.name in known:
            raise WindowingError(
                f'window "{item.name}" is already defined', position=position_of(item.window.at)
            )
        known[item.name] = resolved(item.window, known)
    return known


def resolved(window: Window, known: Mapping[str, Window]) -> Window:
    """The window with what it takes from the one it names."""
    if window.base is None:
        return window
    at, base = position_of(window.at), known.get(window.base)
    if base is None:
        raise UndefinedObject(f'window "{window.base}" does not exist', position=at)
    if window.bare:
        return base
    if window.partition_by:
        raise WindowingError(
            f'cannot override PARTITION BY clause of window "{window.base}"', position=at
        )
    if window.order_by and base.order_by:
        raise WindowingError(
            f'cannot override ORDER BY clause of window "{window.base}"', position=at
        )
    if base.frame is not None:
        alone = not window.order_by and window.frame is None
        raise WindowingError(
            f'cannot copy window "{window.base}" because it has a frame clause',
            hint="Omit the parentheses in this OVER clause." if alone else None,
            position=at,
        )
    order_by = window.order_by or base.order_by
    return replace(window, base=None, partition_by=base.partition_by, order_by=order_by)


def plan_frame(
    frame: WindowFrame, order: Sequence[ArgumentOrder], constants: ExpressionContext, window_at: int
) -> Frame:
    """The frame, if it can hold rows at all. Distances are planned in the context of constants."""
    start, end = frame.start, frame.end or FrameBound("CURRENT ROW", at=frame.start.at)
    if start.kind == "FOLLOWING" and start.offset is None:
        raise WindowingError(
            "frame start cannot be UNBOUNDED FOLLOWING", position=position_of(start.at)
        )
    if end.kind == "PRECEDING" and end.offset is None:
        raise WindowingError(
            "frame end cannot be UNBOUNDED PRECEDING", position=position_of(end.at)
        )
    if start.kind == "CURRENT ROW" and end.kind == "PRECEDING":
        raise WindowingError(
            "frame starting from current row cannot have preceding rows",
            position=position_of(end.at),
        )
    if start.kind == "FOLLOWING" and end.kind != "FOLLOWING":
        what = "have preceding rows" if end.kind == "PRECEDING" else "end with current row"
        raise WindowingError(
            f"frame starting from following row cannot {what}", position=position_of(end.at)
        )
    if frame.unit == "RANGE":
        return _range(start, end, order, constants, window_at)
    if frame.unit == "GROUPS" and not order:
        raise WindowingError(
            "GROUPS mode requires an ORDER BY clause", position=position_of(window_at)
        )
    return Frame(frame.unit.lower(), _offset(start), _offset(end))


def _range(
    start: FrameBound,
    end: FrameBound,
    order: Sequence[ArgumentOrder],
    constants: ExpressionContext,
    window_at: int,
) -> Frame:
    offsets = any(bound.offset is not None for bound in (start, end))
    if offsets and len(order) != 1:
        raise WindowingError(
            "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
            position=position_of(window_at),
        )
    first, last = (
        0 if bound.kind == "CURRENT ROW" else _distance(bound, what, order, constants)
        for bound, what in ((start, "starting"), (end, "ending"))
    )
    return Frame("range", first, last)


def _distance(
    bound: FrameBound, what: str, order: Sequence[ArgumentOrder], constants: ExpressionContext
) -> Distance | None:
    """How far keys may be away; None: as far as the partition goes."""
    if bound.offset is None:
        return None
    at, key = position_of(bound.offset.at), order[0].key.type
    wanted = DISTANCES.get(key.kind)
    if wanted is None:
        raise FeatureNotSupported(
            "RANGE with offset PRECEDING/FOLLOWING is not supported for column type"
            f" {unmodified(key)}",
            position=at,
        )
    try:
        by = plan_constant(bound.offset, wanted, constants, CastContext.IMPLICIT)
    except CannotCoerce as error:
        error.hint = f"Distances between values of type {unmodified(key)} are of type {wanted}."
        raise
    return Distance(_checked(by, key.kind, what, at), bound.kind == "FOLLOWING")


def _checked(by: Literal | None, kind: Kind, what: str, at: int | None) -> Literal:
    if by is None:  # a parameter whose value is not known yet
        return Literal(None, INTERVAL)
    if by.value is None:
        raise NullValueNotAllowed(f"frame {what} offset must not be null", position=at)
    if not is_distance(kind, by.value):
        raise InvalidFrameOffset(
            "invalid preceding or following size in window function", position=at
        )
    return by


def _offset(bound: FrameBound) -> int | None:
    """Rows from the current one; None: as far as the partition goes."""
    if bound.kind == "CURRENT ROW":
        return 0
    if bound.offset is None:
        return None
    assert isinstance(bound.offset, NumberLiteral), "the parser takes digits alone"
    distance = min(int(bound.offset.text), _FARTHEST)
    return -distance if bound.kind == "PRECEDING" else distance
