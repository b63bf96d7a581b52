"""The keys of an index: columns of its relation, or expressions over one row of it."""

from collections.abc import Sequence
from dataclasses import replace

from evertide.expr.relation import Constant, Map, Relation
from evertide.expr.scalar import ColumnRef, Literal, Scalar
from evertide.expr.transform.fold_scalar import fold_scalar
from evertide.persist.coding.encoding import is_storable
from evertide.sql.plan.builder import RelationBuilder
from evertide.sql.plan.coercion import settle
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred
from evertide.sql.plan.expression import plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.named.create_type import refuse_named_types
from evertide.sql.plan.naming import NAMELESS, expression_name
from evertide.sql.plan.plans import PlannedKey
from evertide.sql.plan.registered import registered_name
from evertide.sql.plan.rewrite import walk_parts
from evertide.sql.plan.scope import TableName, scope_of
from evertide.sql.rebuild import parts_of, with_changed_parts
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import Expression, Name, TypeName
from evertide.vocab.errors import FeatureNotSupported
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import Kind


def column_keys(desc: RelationDesc) -> tuple[PlannedKey, ...]:
    """All columns."""
    return tuple(
        PlannedKey(Name((column.name,)), ColumnRef(index, column.type), column)
        for index, column in enumerate(desc.columns)
    )


def plan_keys(
    nodes: Sequence[Expression], desc: RelationDesc, table: TableName, query: QueryContext
) -> tuple[PlannedKey, ...]:
    """Keys as a statement names them."""
    return tuple(plan_key(_bare(node, desc, table), desc, query) for node in nodes)


def plan_key(node: Expression, desc: RelationDesc, query: QueryContext) -> PlannedKey:
    """A key as it is stored."""
    deferred, before = Deferred(), tuple(query.dependencies)
    query = replace(query, stored=True)
    context = plain_context(scope_of(desc, None), query, Clause.INDEX, deferred)
    scalar = settle(context.bind(node), query.parameters)
    if deferred.values:
        raise FeatureNotSupported(
            "cannot use subquery in index expression", position=position_of(node.at)
        )
    refuse_named_types(node, query, before, Clause.INDEX)
    _refuse_object_names(node, scalar)
    if isinstance(scalar, ColumnRef):
        return PlannedKey(node, scalar, desc.columns[scalar.index])
    if not is_storable(scalar.type):
        raise FeatureNotSupported(
            f"index key has type {scalar.type}, which cannot be stored",
            position=position_of(node.at),
        )
    row = RelationBuilder(Constant((), desc.types), [column.nullable for column in desc.columns])
    return PlannedKey(node, scalar, ColumnDesc(_name(node), scalar.type, row.may_be_null(scalar)))


def with_expressions(relation: Relation, expressions: Sequence[Scalar]) -> Relation:
    """What an index by these expressions holds: their values stand behind the columns."""
    return Map(relation, tuple(map(fold_scalar, expressions))) if expressions else relation


def _refuse_object_names(node: Expression, scalar: Scalar) -> None:
    """A key is stored as text beside its relation, where no rename would find an object's name."""
    named = any(registered_name(part) for part in parts_of(node) if isinstance(part, TypeName))
    of_relation = (
        isinstance(part, Literal) and part.type.kind is Kind.REGCLASS for part in walk_parts(scalar)
    )
    if named or any(of_relation):
        raise FeatureNotSupported(
            f"names of objects in {Clause.INDEX} are not supported", position=position_of(node.at)
        )


def _name(node: Expression) -> str:
    name = expression_name(node)
    return "expr" if name == NAMELESS else name


def _bare(node: Expression, desc: RelationDesc, table: TableName) -> Expression:
    """The expression with columns named by their own names alone."""

    def bare(part: object) -> object:
        if isinstance(part, Name):
            *qualifier, name = part.parts
            known = qualifier and name in desc.names and table.answers_to(tuple(qualifier))
            return replace(part, parts=(name,)) if known else part
        return with_changed_parts(part, bare)

    changed: tuple[Expression] = with_changed_parts((node,), bare)
    return changed[0]
