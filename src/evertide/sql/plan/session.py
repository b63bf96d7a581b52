"""Statements that steer the session: variables, transactions, prepared statements, cursors."""

from collections.abc import Sequence
from typing import Final, TypeAlias, assert_never

from evertide.expr.functions.cast import CastContext
from evertide.expr.interval_text import parse_interval
from evertide.expr.scalar import Parameter, Scalar, SessionCall
from evertide.sql.plan.coercion import coerce, settle
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred
from evertide.sql.plan.expression import plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.plans import (
    AlterSystemPlan,
    BeginPlan,
    ClosePlan,
    CommitPlan,
    DeallocatePlan,
    DiscardTemporaryPlan,
    ExecutePlan,
    FetchPlan,
    NoticePlan,
    ResetAllPlan,
    RollbackPlan,
    SavepointPlan,
    SessionPlan,
    SetTransactionPlan,
    SetVariablePlan,
    ShowVariablePlan,
)
from evertide.sql.plan.rewrite import walk_parts
from evertide.sql.plan.scope import Scope
from evertide.sql.resolve import position_of
from evertide.sql.syntax.command import (
    AlterSystemResetStatement,
    AlterSystemSetStatement,
    BeginStatement,
    CloseStatement,
    CommitStatement,
    DeallocateStatement,
    DiscardStatement,
    ExecuteStatement,
    FetchStatement,
    ResetVariableStatement,
    RollbackStatement,
    SavepointStatement,
    SetTransactionStatement,
    SetVariableStatement,
    ShowVariableStatement,
)
from evertide.sql.syntax.expression import (
    Expression,
    NumberLiteral,
    StringLiteral,
    TypedLiteral,
)
from evertide.sql.syntax.option import Option
from evertide.vocab.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    SqlSyntaxError,
    UndefinedPreparedStatement,
)
from evertide.vocab.sql_type import SqlType

SessionStatement: TypeAlias = (
    ShowVariableStatement
    | SetVariableStatement
    | ResetVariableStatement
    | SetTransactionStatement
    | BeginStatement
    | CommitStatement
    | RollbackStatement
    | SavepointStatement
    | FetchStatement
    | CloseStatement
    | ExecuteStatement
    | DeallocateStatement
    | DiscardStatement
    | AlterSystemSetStatement
    | AlterSystemResetStatement
)

_OF_ROLES: Final = {"role": "ROLE", "session_authorization": "SESSION AUTHORIZATION"}


def plan_session(statement: SessionStatement, query: QueryContext) -> SessionPlan | AlterSystemPlan:
    """Mostly the statement itself in other words: what a variable means is the adapter's to say."""
    match statement:
        case ShowVariableStatement(name=name):
            return ShowVariablePlan(name)
        case SetVariableStatement(name=name, values=values, local=local):
            return _set_role(statement) or SetVariablePlan(name, values, local)
        case ResetVariableStatement(name=reset):
            return ResetAllPlan("RESET") if reset is None else _reset(reset)
        case SetTransactionStatement(modes=modes, session=session):
            return SetTransactionPlan(modes.read_only, modes.isolation, session)
        case BeginStatement(modes=modes):
            return BeginPlan(modes.read_only, modes.isolation)
        case CommitStatement(chain=chain) | RollbackStatement(chain=chain):
            if chain:
                raise FeatureNotSupported(
                    "CHAIN not yet supported", position=position_of(statement.at)
                )
            return CommitPlan() if isinstance(statement, CommitStatement) else RollbackPlan()
        case SavepointStatement(action=action, name=name):
            return SavepointPlan(action, name)
        case FetchStatement():
            return _fetch(statement)
        case CloseStatement(name=cursor):
            return ClosePlan(cursor)
        case ExecuteStatement():
            return _execute(statement, query)
        case DeallocateStatement(name=prepared):
            return DeallocatePlan(prepared)
        case DiscardStatement(target="ALL"):
            return ResetAllPlan("DISCARD ALL")
        case DiscardStatement(target="TEMP"):
            return DiscardTemporaryPlan()
        case DiscardStatement(target=target):
            return NoticePlan(f"DISCARD {target}")
        case AlterSystemSetStatement(name=name, values=values):
            return AlterSystemPlan(name, values, any_name=query.plan.experimental)
        case AlterSystemResetStatement(name=variable):
            return _reset_system(variable, statement.at)
        case _:
            assert_never(statement)


def _set_role(statement: SetVariableStatement) -> NoticePlan | None:
    """A session is its role's from its start to its end; that it shall be so again changes nothing.

    None: it is about something else.
    """
    words = _OF_ROLES.get(statement.name.lower())
    if words is None:
        return None
    if statement.values in (None, ("none",)):
        return NoticePlan("SET")
    raise FeatureNotSupported(
        f"SET {words} is not supported",
        hint="Connect as the role, or grant it to the role of this session.",
        position=position_of(statement.at),
    )


def _reset(name: str) -> SetVariablePlan | NoticePlan:
    if name.lower() in _OF_ROLES:
        return NoticePlan("RESET")
    return SetVariablePlan(name, None, local=False, tag="RESET")


def _fetch(statement: FetchStatement) -> FetchPlan:
    """A timeout bounds how long a cursor over a stream waits; the others have their rows."""
    timeout_ms = None
    for option in statement.options:
        if option.name != "TIMEOUT":
            raise FeatureNotSupported(
                f"FETCH option {option.name} is not supported", position=position_of(option.at)
            )
        timeout_ms = _timeout_ms(option)
    return FetchPlan(statement.name, statement.count, timeout_ms)


def _timeout_ms(option: Option) -> float:
    """An interval; a bare number counts seconds."""
    match option.value:
        case StringLiteral(value=text) | NumberLiteral(text=text):
            months, days, micros = parse_interval(text)
        case TypedLiteral(value=text):
            months, days, micros = parse_interval(text)
        case _:
            raise InvalidParameterValue(
                "TIMEOUT must be an interval", position=position_of(option.at)
            )
    timeout_ms = micros / 1_000 + (months * 30 + days) * 86_400_000
    if timeout_ms < 0:
        raise InvalidParameterValue("TIMEOUT must not be negative", position=position_of(option.at))
    return timeout_ms


def _reset_system(name: str | None, at: int) -> AlterSystemPlan:
    if name is None:
        raise FeatureNotSupported(
            "ALTER SYSTEM RESET ALL is not supported",
            hint="Reset variables one by one.",
            position=position_of(at),
        )
    return AlterSystemPlan(name, None)


def _execute(statement: ExecuteStatement, query: QueryContext) -> ExecutePlan:
    """Arguments are constants, cast as if assigned to columns of the parameters' types."""
    prepared = query.plan.prepared
    types: Sequence[SqlType | None] = [None] * len(statement.args)
    if prepared is not None:
        if statement.name not in prepared:
            raise UndefinedPreparedStatement(
                f'prepared statement "{statement.name}" does not exist',
                position=position_of(statement.at),
            )
        types = prepared[statement.name]
    if len(types) != len(statement.args):
        raise SqlSyntaxError(
            f'wrong number of parameters for prepared statement "{statement.name}"',
            detail=f"Expected {len(types)} parameters but got {len(statement.args)}.",
            position=position_of(statement.at),
        )
    arguments = [
        _argument(node, sql_type, query)
        for node, sql_type in zip(statement.args, types, strict=True)
    ]
    return ExecutePlan(statement.name, tuple(arguments))


def _argument(node: Expression, sql_type: SqlType | None, query: QueryContext) -> Scalar:
    deferred = Deferred()
    scalar = plain_context(Scope(), query, Clause.EXECUTE, deferred).bind(node)
    if sql_type is None:
        scalar = settle(scalar, query.parameters)
    else:
        scalar = coerce(scalar, sql_type, CastContext.ASSIGNMENT, query, at=node.at)
    if deferred.values or any(isinstance(p, Parameter | SessionCall) for p in walk_parts(scalar)):
        raise FeatureNotSupported(
            "arguments of EXECUTE must be constants", position=position_of(node.at)
        )
    return scalar
