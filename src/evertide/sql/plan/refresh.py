"""REFRESH: the times at which a materialized view is brought up to date.

What they are may depend on when the view is created (`mz_now()`, AT CREATION), which is known only
when it is. From then on they are constants, in the stored text too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar, cast

from evertide.expr.compile import compile_scalar
from evertide.expr.functions.cast import CastContext
from evertide.expr.interval_text import format_interval, parse_interval
from evertide.expr.scalar import ColumnRef, Literal, Parameter, Scalar, SessionCall
from evertide.expr.temporal import MZ_NOW
from evertide.expr.transform.substitute import substitute_scalar
from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.coercion import coerce
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred
from evertide.sql.plan.expression import plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.place import start_of
from evertide.sql.plan.rewrite import walk_parts
from evertide.sql.plan.scope import Scope
from evertide.sql.pretty import to_sql
from evertide.sql.rebuild import with_changed_parts
from evertide.sql.resolve import position_of
from evertide.sql.syntax.definition import CreateMaterializedViewStatement
from evertide.sql.syntax.expression import (
    Cast,
    Expression,
    FunctionCall,
    NumberLiteral,
    StringLiteral,
    TypeName,
)
from evertide.sql.syntax.option import Option, Refresh
from evertide.vocab.errors import (
    CannotCoerce,
    DataException,
    FeatureNotSupported,
    InvalidParameterValue,
    SqlError,
)
from evertide.vocab.refresh import Every, RefreshSchedule
from evertide.vocab.sql_type import MZ_TIMESTAMP
from evertide.vocab.timestamp import MIN_TS, Timestamp

REFRESH: Final = "REFRESH"
ALLOWED: Final = "enable_refresh_every_mvs"
_OFF: Final = ("off", "false", "f", "no", "n", "0")
_MICROS_PER_MS: Final = 1_000
_MOST_MICROS: Final = 2**63 - 1
# The last that a timestamp with time zone can be, in which these times are shown.
_LAST_MS: Final = 9_224_318_015_999_999
_MZ_NOW_NAMES: Final = (("mz_now",), ("mz_catalog", "mz_now"), ("pg_catalog", "mz_now"))
_MZ_TIMESTAMP_NAME: Final = TypeName(("mz_timestamp",))

NodeT = TypeVar("NodeT")


@dataclass(frozen=True, slots=True)
class Moment:
    """A time that is told by an expression without columns, which may ask for mz_now()."""

    scalar: Scalar
    clause: Clause
    at: int

    def value(self, created_at: Timestamp) -> Timestamp:
        """The time, for a view that is created at this one."""
        now = Literal(created_at, MZ_TIMESTAMP)
        try:
            found = compile_scalar(substitute_scalar(self.scalar, {MZ_NOW: now}))(())
        except SqlError as error:
            raise _not_constant(self.clause, self.at) from error
        if not isinstance(found, int):
            raise _not_constant(self.clause, self.at)
        if found > _LAST_MS:
            raise InvalidParameterValue(
                f"{self.clause} time too large: {found}", position=position_of(self.at)
            )
        return Timestamp(found)


@dataclass(frozen=True, slots=True)
class RefreshAt:
    """Once; None: when the view is created."""

    moment: Moment | None


@dataclass(frozen=True, slots=True)
class RefreshEvery:
    """Again and again, so that one of them is at `aligned_to`; None: when it is created."""

    interval_ms: int
    aligned_to: Moment | None


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """What the statement asks for."""

    times: tuple[RefreshAt | RefreshEvery, ...]

    def schedule(self, created_at: Timestamp, *, reads: bool) -> RefreshSchedule:
        """The times of a view that is created then; if it reads anything, not before."""
        ats: list[Timestamp] = []
        every: list[Every] = []
        for one in self.times:
            moment = one.moment if isinstance(one, RefreshAt) else one.aligned_to
            ts = created_at if moment is None else moment.value(created_at)
            if isinstance(one, RefreshEvery):
                every.append(Every(one.interval_ms, ts))
            elif reads and ts < created_at:
                raise DataException(
                    "REFRESH AT requested for a time where not all the inputs are readable",
                    detail=f"The requested time is {ts}, and the view is created at {created_at}.",
                    hint="Use REFRESH AT greatest(..., mz_now()).",
                )
            else:
                ats.append(ts)
        return RefreshSchedule(tuple(ats), tuple(every))


def plan_refresh(options: Sequence[Option], query: QueryContext) -> RefreshPlan | None:
    """None: the view is kept up to date all the time."""
    asked = [(option, option.value) for option in options if isinstance(option.value, Refresh)]
    always = [option for option, value in asked if value.kind == "ON COMMIT"]
    if len(always) > 1:
        raise InvalidParameterValue(
            "REFRESH ON COMMIT cannot be specified multiple times",
            position=position_of(always[1].at),
        )
    if always and len(asked) > 1:
        raise InvalidParameterValue(
            "REFRESH ON COMMIT is not compatible with any of the other REFRESH options",
            position=position_of(always[0].at),
        )
    times = [_plan_one(value, query) for _, value in asked if value.kind != "ON COMMIT"]
    if not times:
        return None
    allowed = query.plan.snapshot.system_configurations.get(ALLOWED, "on")
    if allowed.lower() in _OFF:
        raise FeatureNotSupported(
            "REFRESH EVERY and REFRESH AT materialized views is not available",
            hint=f"The system variable {ALLOWED} is off.",
            position=position_of(asked[0][0].at),
        )
    return RefreshPlan(tuple(times))


def _plan_one(node: Refresh, query: QueryContext) -> RefreshAt | RefreshEvery:
    match node.kind:
        case "AT CREATION":
            return RefreshAt(None)
        case "EVERY":
            aligned = node.aligned_to
            clause = Clause.REFRESH_ALIGNED_TO
            moment = None if aligned is None else _plan_moment(aligned, clause, query)
            return RefreshEvery(_interval_ms(node), moment)
        case _:
            assert node.moment is not None, "AT has a time"
            return RefreshAt(_plan_moment(node.moment, Clause.REFRESH_AT, query))


def _plan_moment(node: Expression, clause: Clause, query: QueryContext) -> Moment:
    deferred, at = Deferred(), start_of(node)
    bound = plain_context(Scope(), query, clause, deferred).bind(node)
    if deferred.values:
        raise FeatureNotSupported(f"{clause} does not allow subqueries", position=position_of(at))
    try:
        scalar = coerce(bound, MZ_TIMESTAMP, CastContext.ASSIGNMENT, query, at=at)
    except CannotCoerce as error:
        raise CannotCoerce(
            f"{clause} does not support casting from {bound.type} to mz_timestamp",
            position=position_of(at),
        ) from error
    except SqlError as error:
        raise _not_constant(clause, at) from error
    for part in walk_parts(scalar):
        if isinstance(part, Parameter | ColumnRef) or (
            isinstance(part, SessionCall) and part != MZ_NOW
        ):
            raise _not_constant(clause, at)
    moment = Moment(scalar, clause, at)
    if MZ_NOW not in walk_parts(scalar):
        moment.value(MIN_TS)  # whatever is wrong with it can be told now
    return moment


def _not_constant(clause: Clause, at: int) -> InvalidParameterValue:
    return InvalidParameterValue(
        f"{clause} argument must be an expression that can be simplified and/or cast to a constant"
        " whose type is mz_timestamp",
        position=position_of(at),
    )


def _interval_ms(node: Refresh) -> int:
    assert isinstance(node.moment, StringLiteral), "the parser takes nothing else"
    position = position_of(node.moment.at)
    try:
        interval = parse_interval(node.moment.value)
    except SqlError as error:
        error.position = position
        raise
    micros = interval.span_micros()
    if micros <= 0:
        raise InvalidParameterValue(
            f"REFRESH interval must be positive; got: {format_interval(interval)}",
            position=position,
        )
    if interval.months:
        raise InvalidParameterValue(
            "REFRESH interval must not involve units larger than days", position=position
        )
    if micros > _MOST_MICROS:
        raise InvalidParameterValue("REFRESH interval too large", position=position)
    if micros < _MICROS_PER_MS:
        raise InvalidParameterValue("REFRESH interval must be at least 1 ms", position=position)
    return micros // _MICROS_PER_MS


def with_settled_times(create_sql: str, created_at: Timestamp) -> str:
    """A view's stored text with the time of its creation wherever that was meant."""
    statement = parse_statement(create_sql)
    assert isinstance(statement, CreateMaterializedViewStatement), "it was printed from one"
    now = Cast(NumberLiteral(str(created_at)), _MZ_TIMESTAMP_NAME)
    settled = tuple(
        replace(option, value=_settled(option.value, now))
        if isinstance(option.value, Refresh)
        else option
        for option in statement.options
    )
    return to_sql(replace(statement, options=settled))


def _settled(node: Refresh, now: Cast) -> Refresh:
    if node.kind == "AT CREATION":
        return Refresh("AT", now)
    if node.kind == "EVERY" and node.aligned_to is None:
        return replace(node, aligned_to=now)
    return _with_now(node, now)


def _with_now(node: NodeT, now: Cast) -> NodeT:
    if isinstance(node, FunctionCall) and node.name.parts in _MZ_NOW_NAMES:
        return cast(NodeT, now)
    return with_changed_parts(node, lambda part: _with_now(part, now))
