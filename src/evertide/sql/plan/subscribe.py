"""SUBSCRIBE: what is followed, from when until when, and in which form its changes are told."""

from dataclasses import replace

from evertide.catalog.builtin.registry import builtin_of
from evertide.expr.relation import Get, OrderKey, Relation
from evertide.expr.relation_walk import in_order_of_use
from evertide.expr.scalar import ColumnRef, Parameter, Scalar, SessionCall
from evertide.expr.temporal import has_temporal
from evertide.expr.traverse import gets
from evertide.sql.plan.as_of import plan_timestamp
from evertide.sql.plan.clusters.active import check_active_cluster
from evertide.sql.plan.coercion import settle
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import FIRST_PLACE, Deferred
from evertide.sql.plan.define import check_maintainable
from evertide.sql.plan.expression import plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.place import start_of
from evertide.sql.plan.planned import fold_finishing
from evertide.sql.plan.plans import ChangeForm, DiffForm, EnvelopeForm, SubscribePlan
from evertide.sql.plan.rewrite import walk_parts
from evertide.sql.plan.scope import scope_of
from evertide.sql.plan.select import order_key
from evertide.sql.resolve import position_of, resolve_readable
from evertide.sql.syntax.command import (
    EnvelopeOutput,
    SubscribeStatement,
    WithinTimestampOutput,
)
from evertide.sql.syntax.expression import BooleanLiteral, Name
from evertide.sql.syntax.option import Option
from evertide.sql.syntax.query import OrderItem
from evertide.sql.views import inline_views
from evertide.vocab.errors import (
    AmbiguousColumn,
    FeatureNotSupported,
    InvalidParameterValue,
    SqlSyntaxError,
    UndefinedColumn,
)
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import BOOL, INT8, NUMERIC, TEXT
from evertide.vocab.timestamp import Timestamp

_TIMESTAMP = ColumnDesc("mz_timestamp", replace(NUMERIC, precision=39, scale=0), nullable=False)
_PROGRESSED = ColumnDesc("mz_progressed", BOOL, nullable=False)
_DIFF = ColumnDesc("mz_diff", INT8)
_STATE = ColumnDesc("mz_state", TEXT)


def plan_subscribe(statement: SubscribeStatement, query: QueryContext) -> SubscribePlan:
    """A relation or a query whose changes are told."""
    relation, columns = _source(statement, query)
    check_active_cluster(relation, query, statement.at)
    if not _reads_system(relation, query):
        check_maintainable(relation, "subscription", query, statement.at)
        _refuse_timely_constants(relation, query, statement.at)
    options = _flags(statement.options)
    progress = options.get("PROGRESS", False)
    form = _form(statement.output, columns, query)
    as_of, up_to = statement.as_of, statement.up_to
    return SubscribePlan(
        relation=relation,
        columns=columns,
        desc=_desc(form, columns, progress=progress),
        depends_on=tuple(query.dependencies),
        form=form,
        snapshot=options.get("SNAPSHOT", True),
        progress=progress,
        as_of=None if as_of is None else plan_timestamp(as_of.timestamp, query),
        at_least=as_of is not None and as_of.at_least,
        up_to=None if up_to is None else Timestamp(plan_timestamp(up_to, query)),
    )


def _source(statement: SubscribeStatement, query: QueryContext) -> tuple[Relation, RelationDesc]:
    if isinstance(statement.source, Name):
        found = resolve_readable(statement.source, query.plan.names)
        query.dependencies.setdefault(found.item_id)
        return Get(found.global_id, found.desc.types), found.desc
    planned = query.plan_query(statement.source, query)
    return fold_finishing(planned), planned.desc


def _reads_system(relation: Relation, query: QueryContext) -> bool:
    """Whether rows come from the catalog, which no dataflow reads."""
    inlined = inline_views(relation, query.plan.snapshot, ())
    nodes = in_order_of_use(inlined)
    return any(isinstance(n, Get) and builtin_of(n.global_id) is not None for n in nodes)


def _refuse_timely_constants(relation: Relation, query: QueryContext, at: int) -> None:
    """Constants are told once, by no dataflow, and nobody would take them away again."""
    inlined = inline_views(relation, query.plan.snapshot, ())
    if has_temporal(inlined) and not gets(inlined):
        raise FeatureNotSupported(
            "SUBSCRIBE to constants with mz_now() is not supported",
            hint="Keep them in a table or a materialized view.",
            position=position_of(at),
        )


def _flags(options: tuple[Option, ...]) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for option in options:
        if option.name in found:
            raise SqlSyntaxError(
                f"{option.name} specified more than once", position=position_of(option.at)
            )
        match option.value:
            case None:
                found[option.name] = True
            case BooleanLiteral(value=value):
                found[option.name] = value
            case _:
                raise InvalidParameterValue(
                    f"{option.name} must be a boolean", position=position_of(option.at)
                )
    return found


def _form(
    output: EnvelopeOutput | WithinTimestampOutput | None,
    columns: RelationDesc,
    query: QueryContext,
) -> ChangeForm:
    match output:
        case None:
            return DiffForm()
        case EnvelopeOutput(envelope=envelope, key=names):
            key = tuple(_position(name, columns, output.at) for name in names)
            if len(set(key)) < len(key):
                raise SqlSyntaxError(
                    "a KEY column is named more than once", position=position_of(output.at)
                )
            return EnvelopeForm(key, before=envelope == "DEBEZIUM")
        case WithinTimestampOutput(order_by=order_by):
            return _ordered(order_by, columns, query)


def _position(name: str, columns: RelationDesc, at: int) -> int:
    found = [i for i, column in enumerate(columns.columns) if column.name == name]
    if len(found) > 1:
        raise AmbiguousColumn(f'column reference "{name}" is ambiguous', position=position_of(at))
    if not found:
        raise UndefinedColumn(f'column "{name}" does not exist', position=position_of(at))
    return found[0]


def _ordered(
    order_by: tuple[OrderItem, ...], columns: RelationDesc, query: QueryContext
) -> DiffForm:
    """Keys are expressions over a change: its diff, then its row."""
    scope = scope_of(RelationDesc((_DIFF, *columns.columns)), None)
    context = plain_context(scope, query, Clause.ORDER_BY, Deferred())
    keys: list[Scalar] = []
    order: list[OrderKey] = []
    for position, item in enumerate(order_by):
        key = settle(context.bind(item.expression), query.parameters)
        if any(_not_of_the_change(part) for part in walk_parts(key)):
            raise FeatureNotSupported(
                "WITHIN TIMESTAMP ORDER BY takes expressions over the columns only",
                position=position_of(start_of(item.expression)),
            )
        keys.append(key)
        order.append(order_key(position, item))
    return DiffForm(tuple(keys), tuple(order))


def _not_of_the_change(part: Scalar) -> bool:
    """A subquery's place, or what only a session knows."""
    if isinstance(part, ColumnRef):
        return part.index >= FIRST_PLACE
    return isinstance(part, Parameter | SessionCall)


def _desc(form: ChangeForm, columns: RelationDesc, *, progress: bool) -> RelationDesc:
    """A row that only tells progress has no values, so every column may be NULL."""
    open_columns = tuple(ColumnDesc(c.name, c.type) for c in columns.columns)
    leading = (_TIMESTAMP, _PROGRESSED) if progress else (_TIMESTAMP,)
    match form:
        case DiffForm():
            return RelationDesc((*leading, _DIFF, *open_columns))
        case EnvelopeForm(key=key, before=before):
            keys = tuple(open_columns[i] for i in key)
            values = [c for i, c in enumerate(open_columns) if i not in key]
            if not before:
                return RelationDesc((*leading, _STATE, *keys, *values))
            both = [
                ColumnDesc(f"{w}_{c.name}", c.type) for w in ("before", "after") for c in values
            ]
            return RelationDesc((*leading, _STATE, *keys, *both))
