"""The relation under construction while one SELECT is planned.

Columns are only ever added at the end, so a scope over the relation stays right while subqueries
are joined to it.
"""

from collections.abc import Sequence

from evertide.expr.outer_columns import free_columns, lifted, move_free
from evertide.expr.relation import Apply, Constant, Filter, Join, Map, Project, Relation
from evertide.expr.scalar import (
    And,
    Call,
    Case,
    Coalesce,
    ColumnRef,
    IsNull,
    Literal,
    Or,
    OuterColumn,
    Scalar,
)
from evertide.sql.plan.planned import project

# One row without columns: what a SELECT without FROM reads.
ONE_ROW = Constant((((), 1),), ())


class RelationBuilder:
    """A relation and, column by column, whether it may be NULL."""

    def __init__(self, relation: Relation, nullable: Sequence[bool]) -> None:
        assert len(relation.types) == len(nullable), "one flag per column"
        self.relation = relation
        self.nullable = list(nullable)

    @property
    def arity(self) -> int:
        return len(self.nullable)

    def filter(self, predicates: Sequence[Scalar]) -> None:
        """Keep rows for which all are true."""
        flat = tuple(term for predicate in predicates for term in conjuncts(predicate))
        if not flat:
            return
        if isinstance(self.relation, Filter):
            self.relation = Filter(self.relation.input, self.relation.predicates + flat)
        else:
            self.relation = Filter(self.relation, flat)
        for term in flat:
            match term:  # IS NOT NULL
                case Call(function, (IsNull(ColumnRef(index)),)) if function.name == "not":
                    self.nullable[index] = False

    def product(self, relation: Relation, nullable: Sequence[bool]) -> list[ColumnRef]:
        """Put another relation's columns beside every row.

        A chain of inner joins becomes one product under one filter, however long it is.
        """
        first = self.arity
        match self.relation:
            case Constant() if self.relation is ONE_ROW:
                self.relation = relation
            case Join(inputs=inputs, equivalences=()):
                self.relation = Join((*inputs, relation))
            case Filter(input=Join(inputs=inputs, equivalences=()), predicates=predicates):
                self.relation = Filter(Join((*inputs, relation)), predicates)
            case _:
                self.relation = Join((self.relation, relation))
        self.nullable += nullable
        return [ColumnRef(first + i, sql_type) for i, sql_type in enumerate(relation.types)]

    def apply(self, relation: Relation, nullable: Sequence[bool]) -> list[ColumnRef]:
        """Put beside every row what a relation gives that is written one row further in."""
        if not any(column.depth == 0 for column in free_columns(relation)):
            return self.product(move_free(relation, -1), nullable)
        first = self.arity
        self.relation = Apply(self.relation, relation)
        self.nullable += nullable
        return [ColumnRef(first + i, sql_type) for i, sql_type in enumerate(relation.types)]

    def lifted(self, scalar: Scalar) -> Scalar:
        """A scalar over the row, as it is written one row further in."""
        return lifted(scalar, nullable=self.nullable.__getitem__)

    def map(self, scalars: Sequence[Scalar]) -> list[int]:
        """Positions where these values stand; those that are no columns yet are added."""
        added: list[Scalar] = []
        positions = []
        for scalar in scalars:
            if isinstance(scalar, ColumnRef):
                positions.append(scalar.index)
            else:
                positions.append(self.arity + len(added))
                added.append(scalar)
        if added:
            flags = [self.may_be_null(scalar) for scalar in added]
            self.relation = Map(self.relation, tuple(added))
            self.nullable += flags
        return positions

    def project(self, columns: Sequence[int]) -> None:
        """Keep these columns, in this order. Scopes made before are void."""
        self.relation = project(self.relation, tuple(columns))
        self.nullable = [self.nullable[column] for column in columns]

    def may_be_null(self, scalar: Scalar) -> bool:
        """Whether the value can be NULL here. Functions are not asked: any may return NULL."""
        match scalar:
            case ColumnRef(index=index):
                return self.nullable[index]
            case OuterColumn(nullable=nullable):
                return nullable
            case Literal(value=value):
                return value is None
            case IsNull():
                return False
            case And(arguments=arguments) | Or(arguments=arguments):
                return any(self.may_be_null(argument) for argument in arguments)
            case Coalesce(arguments=arguments):
                return all(self.may_be_null(argument) for argument in arguments)
            case Case(branches=branches, otherwise=otherwise):
                values = [value for _, value in branches]
                return any(self.may_be_null(value) for value in [*values, otherwise])
            case _:
                return True


def conjuncts(predicate: Scalar) -> tuple[Scalar, ...]:
    """The terms of an AND; the predicate itself if it is none."""
    if isinstance(predicate, And):
        return tuple(term for argument in predicate.arguments for term in conjuncts(argument))
    return (predicate,)


def projected(relation: Relation, columns: Sequence[int]) -> Relation:
    """A Project that is always there: its row has exactly these columns, even none."""
    return Project(relation, tuple(columns))
