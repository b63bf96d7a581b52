"""Statements to plans: the one function that others call."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from evertide.sql.plan import (
    comment,
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
from evertide.sql.plan.clusters import alter as alter_cluster
from evertide.sql.plan.clusters import create as cluster
from evertide.sql.plan.clusters import profile, replica, set_cluster
from evertide.sql.plan.clusters.active import check_cluster_of_write
from evertide.sql.plan.clusters.plans import ClusterPlan
from evertide.sql.plan.context import PlanContext, QueryContext
from evertide.sql.plan.data_type import resolve_type
from evertide.sql.plan.external import sink as sink_define
from evertide.sql.plan.external import source as source_define
from evertide.sql.plan.named import entry as named
from evertide.sql.plan.parameters import Parameters
from evertide.sql.plan.plans import (
    DataPlan,
    DdlPlan,
    DeletePlan,
    InsertPlan,
    NoticePlan,
    Plan,
    PreparePlan,
    UpdatePlan,
)
from evertide.sql.plan.query import plan_query
from evertide.sql.plan.renames.moving import plan_set_schema
from evertide.sql.plan.renames.schema import plan_swap_schemas
from evertide.sql.plan.replacements import entry as replacements
from evertide.sql.plan.roles import define as role
from evertide.sql.plan.roles import owned as role_owned
from evertide.sql.plan.session import plan_session
from evertide.sql.plan.undrop.entry import plan_undrop
from evertide.sql.pretty import to_sql
from evertide.sql.syntax.cluster import (
    AlterClusterProfileResetStatement,
    AlterClusterProfileSetStatement,
    CreateClusterProfileStatement,
    MoveReplicaStatement,
)
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
    SavepointStatement,
    SelectStatement,
    SetTransactionStatement,
    SetVariableStatement,
    ShowCreateStatement,
    ShowObjectsStatement,
    ShowVariableStatement,
    SubscribeStatement,
    UpdateStatement,
)
from evertide.sql.syntax.comment import CommentStatement
from evertide.sql.syntax.definition import (
    AlterClusterResetStatement,
    AlterClusterSetStatement,
    AlterHistoryStatement,
    AlterOwnerStatement,
    AlterSetClusterStatement,
    AlterSetSchemaStatement,
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
    ObjectKind,
    RenameStatement,
    SwapStatement,
)
from evertide.sql.syntax.external import (
    CreateSinkStatement,
    CreateSourceStatement,
    CreateSubsourceStatement,
)
from evertide.sql.syntax.named import NamedStatement
from evertide.sql.syntax.replacement import (
    ExplainReplacementStatement,
    ReplacementStatement,
    ShowReplacementChangesStatement,
)
from evertide.sql.syntax.role import RoleStatement
from evertide.sql.syntax.statement import Statement
from evertide.sql.syntax.undrop import UndropStatement
from evertide.vocab.datum import Datum
from evertide.vocab.errors import StatementTooComplex
from evertide.vocab.ids import ItemId
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
    # Items that the statement names to read them, in order of first sight.
    reads: tuple[ItemId, ...] = ()


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
    if isinstance(plan, InsertPlan | UpdatePlan | DeletePlan):
        check_cluster_of_write(query)
    reads = tuple(query.dependencies)
    return Planned(plan, parameters.finish(), parameters.needs_values, reads)


def _plan(statement: Statement, query: QueryContext) -> Plan:
    if isinstance(
        statement,
        RoleStatement | ReplacementStatement | CommentStatement | UndropStatement | NamedStatement,
    ):
        return _plan_definition(statement, query)
    match statement:
        case (
            ShowVariableStatement()
            | SetVariableStatement()
            | ResetVariableStatement()
            | SetTransactionStatement()
            | BeginStatement()
            | CommitStatement()
            | RollbackStatement()
            | SavepointStatement()
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
            | CreateSourceStatement()
            | CreateSubsourceStatement()
            | CreateSinkStatement()
            | CreateClusterStatement()
            | CreateClusterReplicaStatement()
            | CreateClusterProfileStatement()
            | CreateSchemaStatement()
            | CreateDatabaseStatement()
            | CreateRoleStatement()
            | DropStatement()
            | RenameStatement()
            | AlterOwnerStatement()
            | AlterSetClusterStatement()
            | AlterSetSchemaStatement()
            | AlterHistoryStatement()
            | SwapStatement()
            | AlterClusterSetStatement()
            | AlterClusterResetStatement()
            | AlterClusterProfileSetStatement()
            | AlterClusterProfileResetStatement()
            | MoveReplicaStatement()
        ):
            return _plan_definition(statement, query)
        case PrepareStatement():
            return _plan_prepare(statement, query)
        case _:
            return _plan_data(statement, query)


def _plan_definition(statement: DefinitionStatement, query: QueryContext) -> DdlPlan | NoticePlan:
    if isinstance(statement, RoleStatement):
        return role.plan_role_statement(statement, query)
    if isinstance(statement, ReplacementStatement):
        return replacements.plan_replacement_statement(statement, query)
    if isinstance(statement, CommentStatement):
        return comment.plan_comment(statement, query)
    if isinstance(statement, NamedStatement):
        return named.plan_named(statement, query)
    if isinstance(statement, UndropStatement):
        return plan_undrop(statement, query)
    match statement:
        case CreateTableStatement():
            return define.plan_create_table(statement, query)
        case CreateViewStatement():
            return define.plan_create_view(statement, query)
        case CreateMaterializedViewStatement():
            return define.plan_create_materialized_view(statement, query)
        case CreateIndexStatement():
            return index.plan_create_index(statement, query)
        case CreateSourceStatement():
            return source_define.plan_create_source(statement, query)
        case CreateSubsourceStatement():
            raise read.unsupported("CREATE SUBSOURCE without its source", statement.at)
        case CreateSinkStatement():
            return sink_define.plan_create_sink(statement, query)
        case CreateClusterStatement():
            return cluster.plan_create_cluster(statement, query)
        case CreateSchemaStatement():
            return container.plan_create_schema(statement, query)
        case CreateDatabaseStatement():
            return container.plan_create_database(statement, query)
        case DropStatement(kind=ObjectKind.ROLE):
            return role.plan_drop_role(statement, query)
        case DropStatement():
            return drop.plan_drop(statement, query)
        case RenameStatement():
            return rename.plan_rename(statement, query)
        case AlterSetSchemaStatement():
            return plan_set_schema(statement, query)
        case AlterHistoryStatement():
            return history.plan_alter_history(statement, query)
        case (
            CreateClusterReplicaStatement()
            | CreateClusterProfileStatement()
            | AlterClusterSetStatement()
            | AlterClusterResetStatement()
            | AlterClusterProfileSetStatement()
            | AlterClusterProfileResetStatement()
            | MoveReplicaStatement()
        ):
            return _plan_in_cluster(statement, query)
        case CreateRoleStatement():
            return role.plan_create_role(statement, query)
        case AlterOwnerStatement():
            return role_owned.plan_alter_owner(statement, query)
        case AlterSetClusterStatement():
            return set_cluster.plan_set_cluster(statement, query)
        case SwapStatement(kind=ObjectKind.CLUSTER):
            return alter_cluster.plan_swap_clusters(statement, query)
        case SwapStatement():
            return plan_swap_schemas(statement, query)
        case _:
            assert_never(statement)


_InCluster: TypeAlias = (
    CreateClusterReplicaStatement
    | CreateClusterProfileStatement
    | AlterClusterSetStatement
    | AlterClusterResetStatement
    | AlterClusterProfileSetStatement
    | AlterClusterProfileResetStatement
    | MoveReplicaStatement
)


def _plan_in_cluster(statement: _InCluster, query: QueryContext) -> ClusterPlan | NoticePlan:
    match statement:
        case CreateClusterReplicaStatement():
            return replica.plan_create_replica(statement, query)
        case CreateClusterProfileStatement():
            return profile.plan_create_profile(statement, query)
        case AlterClusterSetStatement():
            return alter_cluster.plan_alter_cluster(statement, query)
        case AlterClusterResetStatement():
            return alter_cluster.plan_reset_cluster(statement, query)
        case AlterClusterProfileSetStatement():
            return profile.plan_alter_profile(statement, query)
        case AlterClusterProfileResetStatement():
            return profile.plan_reset_profile(statement, query)
        case MoveReplicaStatement():
            return replica.plan_move_replica(statement, query)
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
    | ExplainReplacementStatement
    | ShowReplacementChangesStatement
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
        case ExplainReplacementStatement():
            return replacements.plan_explain_replacement(statement, query)
        case ShowReplacementChangesStatement():
            return replacements.plan_show_changes(statement, query)
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
    declared = [resolve_type(node, query) for node in statement.parameter_types]
    planned = plan_statement(statement.statement, query.plan, declared)
    return PreparePlan(statement.name, to_sql(statement.statement), planned.parameter_types)
