"""Statements to plans: the one function that others call."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from evertide.sql.plan import (
    cluster,
    container,
    copy_from,
    define,
    drop,
    history,
    index,
    insert,
    mutation,
    read,
    rename,
    show,
    show_create,
    subscribe,
)
from evertide.sql.plan.context import PlanContext, QueryContext
from evertide.sql.plan.data_type import resolve_type
from evertide.sql.plan.parameters import Parameters
from evertide.sql.plan.plans import DataPlan, DdlPlan, NoticePlan, Plan, PreparePlan
from evertide.sql.plan.query import plan_query
from evertide.sql.plan.session import plan_session
from evertide.sql.pretty import to_sql
from evertide.sql.syntax.command import (
    AlterSystemResetStatement,
    AlterSystemSetStatement,
    BeginStatement,
    CloseStatement,
    CommitStatement,
    CopyFromStatement,
    CopyToStatement,
    DeallocateStatement,
    DeclareStatement,
    DeleteStatement,
    DiscardStatement,
    ExecuteStatement,
    ExplainPlanStatement,
    ExplainTimestampStatement,
    FetchStatement,
    InsertStatement,
    PrepareStatement,
    ResetVariableStatement,
    RollbackStatement,
    SelectStatement,
    SetTransactionStatement,
    SetVariableStatement,
    ShowCreateStatement,
    ShowObjectsStatement,
    ShowVariableStatement,
    SubscribeStatement,
    UpdateStatement,
)
from evertide.sql.syntax.definition import (
    AlterClusterResetStatement,
    AlterClusterSetStatement,
    AlterHistoryStatement,
    AlterOwnerStatement,
    AlterSetClusterStatement,
    CreateClusterReplicaStatement,
    CreateClusterStatement,
    CreateDatabaseStatement,
    CreateIndexStatement,
    CreateMaterializedViewStatement,
    CreateRoleStatement,
    CreateSchemaStatement,
    CreateTableStatement,
    CreateViewStatement,
    DefinitionStatement,
    DropStatement,
    RenameStatement,
    SwapStatement,
)
from evertide.sql.syntax.statement import Statement
from evertide.vocab.datum import Datum
from evertide.vocab.errors import StatementTooComplex
from evertide.vocab.sql_type import SqlType


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan and the types of its parameters.

    `needs_values`: LIMIT or OFFSET is a parameter, whose value a plan holds as a number. Such a
    plan can be described; to run it, plan again with `parameter_values`.
    """

    plan: Plan
    parameter_types: tuple[SqlType, ...] = ()
    needs_values: bool = False


def plan_statement(
    statement: Statement,
    context: PlanContext,
    parameter_types: Sequence[SqlType | None] = (),
    *,
    parameter_values: Sequence[Datum] | None = None,
) -> Planned:
    """What a statement asks for, checked against the context's snapshot."""
    parameters = Parameters(parameter_types, parameter_values)
    query = QueryContext(plan=context, parameters=parameters, plan_query=plan_query)
    try:
        plan = _plan(statement, query)
    except RecursionError:
        raise StatementTooComplex(
            "statement is too deeply nested to be planned",
            hint="Break up the query, for example with views.",
        ) from None
    return Planned(plan, parameters.finish(), parameters.needs_values)


def _plan(statement: Statement, query: QueryContext) -> Plan:
    match statement:
        case (
            ShowVariableStatement()
            | SetVariableStatement()
            | ResetVariableStatement()
            | SetTransactionStatement()
            | BeginStatement()
            | CommitStatement()
            | RollbackStatement()
            | FetchStatement()
            | CloseStatement()
            | ExecuteStatement()
            | DeallocateStatement()
            | DiscardStatement()
            | AlterSystemSetStatement()
            | AlterSystemResetStatement()
        ):
            return plan_session(statement, query)
        case (
            CreateTableStatement()
            | CreateViewStatement()
            | CreateMaterializedViewStatement()
            | CreateIndexStatement()
            | CreateClusterStatement()
            | CreateClusterReplicaStatement()
            | CreateSchemaStatement()
            | CreateDatabaseStatement()
            | CreateRoleStatement()
            | DropStatement()
            | RenameStatement()
            | AlterOwnerStatement()
            | AlterSetClusterStatement()
            | AlterHistoryStatement()
            | SwapStatement()
            | AlterClusterSetStatement()
            | AlterClusterResetStatement()
        ):
            return _plan_definition(statement, query)
        case PrepareStatement():
            return _plan_prepare(statement, query)
        case _:
            return _plan_data(statement, query)


def _plan_definition(statement: DefinitionStatement, query: QueryContext) -> DdlPlan | NoticePlan:
    match statement:
        case CreateTableStatement():
            return define.plan_create_table(statement, query)
        case CreateViewStatement():
            return define.plan_create_view(statement, query)
        case CreateMaterializedViewStatement():
            return define.plan_create_materialized_view(statement, query)
        case CreateIndexStatement():
            return index.plan_create_index(statement, query)
        case CreateClusterStatement():
            return cluster.plan_create_cluster(statement, query)
        case CreateSchemaStatement():
            return container.plan_create_schema(statement, query)
        case CreateDatabaseStatement():
            return container.plan_create_database(statement, query)
        case DropStatement():
            return drop.plan_drop(statement, query)
        case RenameStatement():
            return rename.plan_rename(statement, query)
        case AlterHistoryStatement():
            return history.plan_alter_history(statement, query)
        case CreateClusterReplicaStatement():
            raise read.unsupported("CREATE CLUSTER REPLICA", statement.at)
        case CreateRoleStatement():
            raise read.unsupported("CREATE ROLE", statement.at)
        case AlterOwnerStatement(kind=kind):
            raise read.unsupported(f"ALTER {kind} ... OWNER TO", statement.at)
        case AlterSetClusterStatement(kind=kind):
            raise read.unsupported(f"ALTER {kind} ... SET CLUSTER", statement.at)
        case SwapStatement(kind=kind):
            raise read.unsupported(f"ALTER {kind} ... SWAP WITH", statement.at)
        case AlterClusterSetStatement():
            raise read.unsupported("ALTER CLUSTER ... SET", statement.at)
        case AlterClusterResetStatement():
            raise read.unsupported("ALTER CLUSTER ... RESET", statement.at)
        case _:
            assert_never(statement)


_DataStatement: TypeAlias = (
    SelectStatement
    | InsertStatement
    | UpdateStatement
    | DeleteStatement
    | SubscribeStatement
    | CopyToStatement
    | CopyFromStatement
    | ShowObjectsStatement
    | ShowCreateStatement
    | ExplainPlanStatement
    | ExplainTimestampStatement
    | DeclareStatement
)


def _plan_data(statement: _DataStatement, query: QueryContext) -> DataPlan:
    match statement:
        case SelectStatement():
            return read.plan_select_statement(statement, query)
        case InsertStatement():
            return insert.plan_insert(statement, query)
        case UpdateStatement():
            return mutation.plan_update(statement, query)
        case DeleteStatement():
            return mutation.plan_delete(statement, query)
        case CopyToStatement():
            return read.plan_copy_to(statement, query)
        case ShowObjectsStatement():
            return show.plan_show(statement, query)
        case ShowCreateStatement():
            return show_create.plan_show_create(statement, query)
        case ExplainPlanStatement():
            return read.plan_explain(statement, query)
        case ExplainTimestampStatement():
            return read.plan_explain_timestamp(statement, query)
        case DeclareStatement():
            return read.plan_declare(statement, query)
        case SubscribeStatement():
            return subscribe.plan_subscribe(statement, query)
        case CopyFromStatement():
            return copy_from.plan_copy_from(statement, query)
        case _:
            assert_never(statement)


def _plan_prepare(statement: PrepareStatement, query: QueryContext) -> PreparePlan:
    """The statement is planned to find its parameters' types, and printed to be kept."""
    declared = [resolve_type(node) for node in statement.parameter_types]
    planned = plan_statement(statement.statement, query.plan, declared)
    return PreparePlan(statement.name, to_sql(statement.statement), planned.parameter_types)
