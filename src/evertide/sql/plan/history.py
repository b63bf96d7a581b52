"""RETAIN HISTORY: how long an object's past stays readable."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from evertide.expr.interval_text import parse_interval
from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.drop import ITEM_KINDS, item_of_kind
from evertide.sql.plan.plans import AlterHistoryPlan, NoticePlan
from evertide.sql.pretty import to_sql
from evertide.sql.resolve import position_of
from evertide.sql.syntax.definition import (
    AlterHistoryStatement,
    CreateIndexStatement,
    CreateMaterializedViewStatement,
    CreateTableStatement,
)
from evertide.sql.syntax.expression import StringLiteral, TypedLiteral, TypeName
from evertide.sql.syntax.option import Option, OptionValue
from evertide.vocab.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    Notice,
    SqlError,
    UndefinedTable,
)

RETAIN_HISTORY: Final = "RETAIN HISTORY"
_INTERVAL: Final = TypeName(("interval",))


def history_option(options: Sequence[Option]) -> int | None:
    """The milliseconds that RETAIN HISTORY asks for; None: it is not there."""
    found = [option for option in options if option.name == RETAIN_HISTORY]
    if not found:
        return None
    if len(found) > 1:
        raise InvalidParameterValue(
            "RETAIN HISTORY specified more than once", position=position_of(found[1].at)
        )
    return _milliseconds(found[0].value, found[0].at)


def _milliseconds(value: OptionValue | None, at: int) -> int:
    if not isinstance(value, StringLiteral | TypedLiteral):
        raise _invalid("an interval is needed", at)
    if isinstance(value, TypedLiteral) and value.target != _INTERVAL:
        raise _invalid("an interval without fields is needed", at)
    try:
        interval = parse_interval(value.value)
    except SqlError as error:
        raise _invalid(error.message, at) from error
    milliseconds = interval.span_micros() // 1_000
    if milliseconds <= 0:
        raise _invalid("it must be longer than nothing", at)
    return milliseconds


def _invalid(reason: str, at: int) -> InvalidParameterValue:
    return InvalidParameterValue(f"invalid RETAIN HISTORY: {reason}", position=position_of(at))


def plan_alter_history(
    statement: AlterHistoryStatement, query: QueryContext
) -> AlterHistoryPlan | NoticePlan:
    """A longer or shorter history, or with RESET the usual one."""
    tag = f"ALTER {statement.kind}"
    try:
        item = item_of_kind(statement.name, ITEM_KINDS[statement.kind], query.plan.names)
    except UndefinedTable as error:
        if not statement.if_exists:
            raise
        return NoticePlan(tag, (Notice("NOTICE", "00000", f"{error.message}, skipping"),))
    if item.replacement is not None:
        raise FeatureNotSupported(
            f"replacement materialized view {item.name} keeps the history of its target",
            hint="Set RETAIN HISTORY there.",
            position=position_of(statement.name.at),
        )
    option: tuple[Option, ...] = ()
    history_ms = None
    if statement.history is not None:
        option = (Option(RETAIN_HISTORY, statement.history),)
        history_ms = _milliseconds(statement.history, statement.at)
    create_sql = _with_option(item.create_sql, option)
    return AlterHistoryPlan(item.item_id, history_ms, create_sql, tag)


def _with_option(create_sql: str, option: tuple[Option, ...]) -> str:
    definition = parse_statement(create_sql)
    match definition:
        case CreateIndexStatement() | CreateTableStatement() | CreateMaterializedViewStatement():
            others = tuple(o for o in definition.options if o.name != RETAIN_HISTORY)
            return to_sql(replace(definition, options=(*others, *option)))
        case _:
            raise AssertionError("only what keeps a history has one to be changed")
