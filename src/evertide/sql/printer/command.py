"""Statements that read, write or steer the session, as text."""

from __future__ import annotations

from typing import assert_never

from evertide.sql.printer.definition import create
from evertide.sql.printer.expression import expression, expressions
from evertide.sql.printer.names import columns, data_type, name, quote_ident, quote_literal
from evertide.sql.printer.option import with_options
from evertide.sql.printer.query import order_by, query, select_items, tables
from evertide.sql.printer.replacement import replacement_looked_at
from evertide.sql.printer.show import show, variable
from evertide.sql.syntax.command import (
    AlterSystemResetStatement,
    AlterSystemSetStatement,
    AsOf,
    BeginStatement,
    CloseStatement,
    CommandStatement,
    CommitStatement,
    CopyFromStatement,
    CopyTable,
    CopyToStatement,
    DeallocateStatement,
    DeclareStatement,
    DeleteStatement,
    DiscardStatement,
    EnvelopeOutput,
    ExecuteStatement,
    ExplainObject,
    ExplainPlanStatement,
    ExplainTarget,
    ExplainTimestampStatement,
    FetchStatement,
    InsertStatement,
    Preparable,
    PrepareStatement,
    ResetVariableStatement,
    RollbackStatement,
    SavepointAction,
    SavepointStatement,
    SelectStatement,
    SetTransactionStatement,
    SetVariableStatement,
    ShowCreateStatement,
    ShowObjectsStatement,
    ShowVariableStatement,
    SubscribeStatement,
    TransactionModes,
    UpdateStatement,
    WithinTimestampOutput,
)
from evertide.sql.syntax.expression import Expression, Name
from evertide.sql.syntax.query import SelectItem
from evertide.sql.syntax.replacement import (
    ExplainReplacementStatement,
    ShowReplacementChangesStatement,
)

Session = (
    SetVariableStatement | ResetVariableStatement | SetTransactionStatement | BeginStatement
) | (
    CommitStatement
    | RollbackStatement
    | SavepointStatement
    | DiscardStatement
    | AlterSystemSetStatement
    | AlterSystemResetStatement
)
Portal = (
    DeclareStatement | FetchStatement | CloseStatement | PrepareStatement | ExecuteStatement
) | DeallocateStatement


def command(node: CommandStatement) -> str:
    match node:
        case (
            SelectStatement()
            | InsertStatement()
            | UpdateStatement()
            | DeleteStatement()
            | SubscribeStatement()
        ):
            return preparable(node)
        case CopyToStatement():
            source = _copy_source(node.source)
            return f"COPY {source} TO STDOUT{with_options(node.options)}"
        case CopyFromStatement():
            target = _copy_source(node.target)
            return f"COPY {target} FROM STDIN{with_options(node.options)}"
        case ShowObjectsStatement() | ShowCreateStatement() | ShowVariableStatement():
            return show(node)
        case ExplainPlanStatement() | ExplainTimestampStatement():
            return _explain(node)
        case ExplainReplacementStatement() | ShowReplacementChangesStatement():
            return replacement_looked_at(node)
        case (
            DeclareStatement()
            | FetchStatement()
            | CloseStatement()
            | PrepareStatement()
            | ExecuteStatement()
            | DeallocateStatement()
        ):
            return _portal(node)
        case _:
            return _session(node)


def preparable(node: Preparable) -> str:
    match node:
        case SelectStatement():
            return query(node.query) + _as_of(node.as_of)
        case InsertStatement():
            source = "DEFAULT VALUES" if node.source is None else query(node.source)
            head = f"INSERT INTO {name(node.table)}{columns(node.columns)}"
            return f"{head} {source}{_returning(node.returning)}"
        case UpdateStatement():
            pairs = [
                f"{quote_ident(item.column)} = {expression(item.value)}"
                for item in node.assignments
            ]
            head = f"UPDATE {name(node.table)}{_alias(node.alias)} SET {', '.join(pairs)}"
            from_ = f" FROM {tables(node.from_)}" if node.from_ else ""
            return f"{head}{from_}{_where(node.where)}{_returning(node.returning)}"
        case DeleteStatement():
            using = f" USING {tables(node.using)}" if node.using else ""
            head = f"DELETE FROM {name(node.table)}{_alias(node.alias)}{using}"
            return f"{head}{_where(node.where)}{_returning(node.returning)}"
        case SubscribeStatement():
            return _subscribe(node)
        case _:
            assert_never(node)


def _as_of(node: AsOf | None) -> str:
    if node is None:
        return ""
    return f" AS OF {'AT LEAST ' if node.at_least else ''}{expression(node.timestamp)}"


def _alias(alias: str | None) -> str:
    return "" if alias is None else f" AS {quote_ident(alias)}"


def _where(condition: Expression | None) -> str:
    return "" if condition is None else f" WHERE {expression(condition)}"


def _returning(items: tuple[SelectItem, ...]) -> str:
    return f" RETURNING {select_items(items)}" if items else ""


def _subscribe(node: SubscribeStatement) -> str:
    source = name(node.source) if isinstance(node.source, Name) else f"({query(node.source)})"
    match node.output:
        case EnvelopeOutput(envelope, key):
            output = f" ENVELOPE {envelope} (KEY{columns(key)})"
        case WithinTimestampOutput(items):
            output = f" WITHIN TIMESTAMP{order_by(items)}"
        case None:
            output = ""
        case _:
            assert_never(node.output)
    until = "" if node.up_to is None else f" UP TO {expression(node.up_to)}"
    options = with_options(node.options)
    return f"SUBSCRIBE TO {source}{output}{options}{_as_of(node.as_of)}{until}"


def _copy_source(node: CopyTable | SelectStatement | SubscribeStatement) -> str:
    if isinstance(node, CopyTable):
        return name(node.name) + columns(node.columns)
    return f"({preparable(node)})"


def _explain(node: ExplainPlanStatement | ExplainTimestampStatement) -> str:
    format_ = "" if node.format_ is None else f" AS {node.format_}"
    if isinstance(node, ExplainTimestampStatement):
        return f"EXPLAIN TIMESTAMP{format_} FOR {preparable(node.target)}"
    stage = "" if node.stage is None else f" {node.stage}"
    options = with_options(node.options)
    return f"EXPLAIN{stage} PLAN{options}{format_} FOR {_explain_target(node.target)}"


def _explain_target(node: ExplainTarget) -> str:
    match node:
        case SelectStatement() | SubscribeStatement():
            return preparable(node)
        case ExplainObject():
            return f"{'REPLAN ' if node.replan else ''}{node.kind} {name(node.name)}"
        case _:
            return create(node)


def _portal(node: Portal) -> str:
    match node:
        case DeclareStatement():
            hold = " WITH HOLD" if node.hold else ""
            statement = preparable(node.statement)
            return f"DECLARE {quote_ident(node.name)} CURSOR{hold} FOR {statement}"
        case FetchStatement():
            count = "ALL" if node.count is None else str(node.count)
            return f"FETCH {count} FROM {quote_ident(node.name)}{with_options(node.options)}"
        case CloseStatement():
            return f"CLOSE {'ALL' if node.name is None else quote_ident(node.name)}"
        case PrepareStatement():
            types = ", ".join([data_type(item) for item in node.parameter_types])
            head = f"PREPARE {quote_ident(node.name)}" + (f" ({types})" if types else "")
            return f"{head} AS {preparable(node.statement)}"
        case ExecuteStatement():
            args = f" ({expressions(node.args)})" if node.args else ""
            return f"EXECUTE {quote_ident(node.name)}{args}"
        case DeallocateStatement():
            return f"DEALLOCATE {'ALL' if node.name is None else quote_ident(node.name)}"
        case _:
            assert_never(node)


def _session(node: Session) -> str:
    match node:
        case SetVariableStatement():
            scope = "LOCAL " if node.local else ""
            return f"SET {scope}{variable(node.name)} TO {_values(node.values)}"
        case ResetVariableStatement():
            return f"RESET {'ALL' if node.name is None else variable(node.name)}"
        case SetTransactionStatement():
            scope = "SESSION CHARACTERISTICS AS " if node.session else ""
            return f"SET {scope}TRANSACTION{_modes(node.modes)}"
        case BeginStatement():
            return f"BEGIN{_modes(node.modes)}"
        case CommitStatement():
            return "COMMIT AND CHAIN" if node.chain else "COMMIT"
        case RollbackStatement():
            return "ROLLBACK AND CHAIN" if node.chain else "ROLLBACK"
        case SavepointStatement(action=action, name=name):
            to = " TO SAVEPOINT" if action is SavepointAction.ROLL_BACK else ""
            return f"{action}{to} {quote_ident(name)}"
        case DiscardStatement():
            return f"DISCARD {node.target}"
        case AlterSystemSetStatement():
            return f"ALTER SYSTEM SET {variable(node.name)} TO {_values(node.values)}"
        case AlterSystemResetStatement():
            return f"ALTER SYSTEM RESET {'ALL' if node.name is None else variable(node.name)}"
        case _:
            assert_never(node)


def _values(values: tuple[str, ...] | None) -> str:
    return "DEFAULT" if values is None else ", ".join([quote_literal(value) for value in values])


def _modes(node: TransactionModes) -> str:
    modes: list[str] = []
    if node.isolation is not None:
        modes.append(f"ISOLATION LEVEL {node.isolation.upper()}")
    if node.read_only is not None:
        modes.append("READ ONLY" if node.read_only else "READ WRITE")
    if node.deferrable is not None:
        modes.append("DEFERRABLE" if node.deferrable else "NOT DEFERRABLE")
    return " " + ", ".join(modes) if modes else ""
