"""Statements that read: SELECT, COPY TO, EXPLAIN, DECLARE, PREPARE."""

from collections.abc import Sequence
from dataclasses import replace

from evertide.sql.plan.as_of import plan_timestamp, refuse_session_calls
from evertide.sql.plan.clusters.active import check_active_cluster
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.copy_format import copy_to_format
from evertide.sql.plan.define import plan_create_materialized_view, plan_create_view
from evertide.sql.plan.drop import ITEM_KINDS, item_of_kind
from evertide.sql.plan.index import plan_create_index
from evertide.sql.plan.plans import (
    CopyToPlan,
    DeclarePlan,
    ExplainPlan,
    ExplainTimestampPlan,
    SelectPlan,
)
from evertide.sql.plan.subscribe import plan_subscribe
from evertide.sql.resolve import position_of
from evertide.sql.syntax.command import (
    CopyTable,
    CopyToStatement,
    DeclareStatement,
    ExplainObject,
    ExplainPlanStatement,
    ExplainTimestampStatement,
    SelectStatement,
    SubscribeStatement,
)
from evertide.sql.syntax.definition import (
    CreateIndexStatement,
    CreateMaterializedViewStatement,
    CreateViewStatement,
)
from evertide.sql.syntax.expression import Name, Star
from evertide.sql.syntax.query import Query, Select, SelectItem, TableRef
from evertide.vocab.errors import FeatureNotSupported
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.sql_type import TEXT

_STAGES = {
    None: "optimized",
    "RAW": "raw",
    "DECORRELATED": "decorrelated",
    "LOCALLY OPTIMIZED": "optimized",
    "OPTIMIZED": "optimized",
    "PHYSICAL": "physical",
    "DELTA": "delta",
    "SPARK": "spark",
}


def plan_select_statement(statement: SelectStatement, query: QueryContext) -> SelectPlan:
    """A query as a statement: order and limit are its finishing."""
    planned = query.plan_query(statement.query, query)
    check_active_cluster(planned.relation, query, statement.at)
    given = statement.as_of
    if given is not None:
        refuse_session_calls(planned.relation, statement.at)
    return SelectPlan(
        planned.relation,
        planned.finishing,
        _as_words(planned.desc, planned.vectors),
        None if given is None else plan_timestamp(given.timestamp, query),
        at_least=given is not None and given.at_least,
        vectors=planned.vectors,
    )


def _as_words(desc: RelationDesc, vectors: Sequence[int]) -> RelationDesc:
    """As PostgreSQL's clients know vectors: `1 2 3`."""
    columns = list(desc.columns)
    for vector in vectors:
        columns[vector] = replace(columns[vector], type=TEXT)
    return RelationDesc(tuple(columns))


def plan_copy_to(statement: CopyToStatement, query: QueryContext) -> CopyToPlan:
    """COPY ... TO STDOUT. What never ends is written as text."""
    form = copy_to_format(statement.options)
    match statement.source:
        case CopyTable() as table:
            return CopyToPlan(plan_select_statement(_select_of(table), query), form)
        case SelectStatement() as select:
            return CopyToPlan(plan_select_statement(select, query), form)
        case SubscribeStatement() as subscribe:
            if form.binary or form.csv:
                raise unsupported("COPY SUBSCRIBE in another format than text", statement.at)
            return CopyToPlan(plan_subscribe(subscribe, query), form)


def _select_of(table: CopyTable) -> SelectStatement:
    """`COPY t (a, b)` means a query of these columns."""
    wanted = [Name((column,), at=table.at) for column in table.columns]
    items = tuple(SelectItem(name) for name in wanted) or (SelectItem(Star(at=table.at)),)
    body = Select(items, (TableRef(table.name, at=table.at),), at=table.at)
    return SelectStatement(Query(body, at=table.at), at=table.at)


def plan_declare(statement: DeclareStatement, query: QueryContext) -> DeclarePlan:
    """A cursor over a query."""
    if statement.hold:
        raise unsupported("DECLARE ... WITH HOLD", statement.at)
    if isinstance(statement.statement, SubscribeStatement):
        return DeclarePlan(statement.name, plan_subscribe(statement.statement, query))
    return DeclarePlan(statement.name, plan_select_statement(statement.statement, query))


def plan_explain(statement: ExplainPlanStatement, query: QueryContext) -> ExplainPlan:
    """The plan of a query, of a stored object, or of one that might be created."""
    plan = ExplainPlan(_STAGES[statement.stage], as_json=statement.format_ == "JSON")
    match statement.target:
        case SelectStatement() as select:
            return replace(plan, select=plan_select_statement(select, query))
        case ExplainObject(kind=kind, name=name):
            item = item_of_kind(name, ITEM_KINDS[kind], query.plan.names)
            return replace(plan, item_id=item.item_id)
        case CreateViewStatement() as view:
            return replace(plan, relation=plan_create_view(view, query).relation)
        case CreateMaterializedViewStatement() as view:
            return replace(plan, relation=plan_create_materialized_view(view, query).relation)
        case CreateIndexStatement() as index:
            return replace(plan, relation=plan_create_index(index, query).relation)
        case SubscribeStatement() as subscribe:
            return replace(plan, relation=plan_subscribe(subscribe, query).relation)


def plan_explain_timestamp(
    statement: ExplainTimestampStatement, query: QueryContext
) -> ExplainTimestampPlan:
    """Which timestamp a query would read at."""
    select = plan_select_statement(statement.target, query)
    return ExplainTimestampPlan(select, statement.format_ == "JSON")


def unsupported(what: str, at: int, hint: str | None = None) -> FeatureNotSupported:
    """The answer to a statement that parses but that nothing here can run yet."""
    return FeatureNotSupported(f"{what} is not supported", hint=hint, position=position_of(at))
