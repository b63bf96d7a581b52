"""Plans of statements that differ in their constants alone.

The same INSERT, UPDATE or DELETE comes again and again with other values. Its text with parameters
in place of the constants is planned once, and once it is seen to mean the same: with the values put
in, it is the plan of the text itself. From then on only the values are read.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from evertide.expr.relation import Constant, Map, Relation
from evertide.expr.relation_walk import in_order_of_use, scalars_of
from evertide.expr.scalar import Call, Literal, Parameter, Scalar, SessionCall
from evertide.expr.scalar_walk import children, columns_of, is_fallible
from evertide.expr.text_input import parse_text
from evertide.expr.transform.fold_constants import fold_constants
from evertide.expr.transform.fold_scalar import fold_scalar
from evertide.expr.transform.substitute import substitute, substitute_scalar
from evertide.sql.parser.entry import parse_statements
from evertide.sql.parser.template import Template
from evertide.sql.plan.context import PlanContext
from evertide.sql.plan.entry import Planned, plan_statement
from evertide.sql.plan.plans import DeletePlan, InsertPlan, Plan, SelectPlan, UpdatePlan
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import Kind, SqlType

KEPT: Final = 1_024
T = TypeVar("T")
# What a number among the constants may become: there it is what it would be by itself.
_NUMBERS = frozenset({Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.FLOAT4, Kind.FLOAT8})


@dataclass(frozen=True, slots=True)
class Filled:
    """A plan and what stands for its parameters."""

    plan: Plan
    literals: tuple[Literal, ...]


class Templates:
    """One adapter's; what was used least recently goes first.

    A key is a template and all else that a plan depends on. A template is made when a text of its
    kind comes for the second time: many come but once.
    """

    def __init__(self) -> None:
        self._seen: dict[Hashable, None] = {}
        # None: a template that does not always mean what the text does.
        self._known: dict[Hashable, Planned | None] = {}

    def find(self, key: Hashable, template: Template) -> Filled | None:
        """The plan of a text, if its template is known to mean the same."""
        planned = self._known.get(key)
        if planned is None:
            return None
        literals = literals_of(template, planned.parameter_types)
        if literals is None:
            return None
        match planned.plan:
            case InsertPlan() as plan:
                inserted = _inserted(plan, literals)
                return None if inserted is None else Filled(inserted, ())
            case UpdatePlan(assignments=assignments) if not _assignable(assignments, literals):
                return None  # whether a row is there or not, such a text is refused
            case plan:
                return Filled(plan, literals)

    def learn(self, key: Hashable, template: Template, plan: Plan, context: PlanContext) -> None:
        """Take note of the plan of a text that had to be planned by itself."""
        if key in self._known or not isinstance(plan, InsertPlan | UpdatePlan | DeletePlan):
            return
        if key not in self._seen:
            _put(self._seen, key, None)
            return
        try:
            (statement,) = parse_statements(template.text)
            planned = plan_statement(statement, context)
        except (SqlError, ValueError):
            _put(self._known, key, None)
            return
        same = means_the_same(template, planned, plan)
        _put(self._known, key, planned if same else None)


def _put(kept: dict[Hashable, T], key: Hashable, value: T) -> None:
    kept[key] = value
    if len(kept) > KEPT:
        del kept[next(iter(kept))]


def literals_of(template: Template, types: Sequence[SqlType]) -> tuple[Literal, ...] | None:
    """The constants as what they are taken for; None where one of them is not that."""
    if len(types) != len(template.values):
        return None
    try:
        return tuple(
            Literal(parse_text(sql_type, text), sql_type)
            for sql_type, text in zip(types, template.values, strict=True)
        )
    except SqlError:
        return None  # how that is told is for the text itself


def means_the_same(template: Template, planned: Planned, plan: Plan) -> bool:
    """Whether the template's plan with its values is the plan of the text they come from."""
    types = planned.parameter_types
    if planned.needs_values or any(
        kind != "s" and sql_type.kind not in _NUMBERS
        for kind, sql_type in zip(template.kinds, types, strict=False)
    ):
        return False
    literals = literals_of(template, types)
    if literals is None:
        return False
    bindings = _bindings(literals)
    match planned.plan, plan:
        case InsertPlan(returning=None) as made, InsertPlan(returning=None) as asked:
            return _inserted(made, literals) == asked
        case UpdatePlan(returning=None) as made, UpdatePlan(returning=None) as asked:
            return (
                made.table_id == asked.table_id
                and not any(map(_may_fail_by_row, made.assignments))
                and _same(made.selection, asked.selection, bindings)
                and _all_same(made.assignments, asked.assignments, bindings)
            )
        case DeletePlan(returning=None) as made, DeletePlan(returning=None) as asked:
            return made.table_id == asked.table_id and _same(
                made.selection, asked.selection, bindings
            )
        case _:
            return False


def _bindings(literals: Sequence[Literal]) -> dict[Parameter | SessionCall, Scalar]:
    return {Parameter(i, literal.type): literal for i, literal in enumerate(literals)}


def _inserted(plan: InsertPlan, literals: Sequence[Literal]) -> InsertPlan | None:
    """The plan for one row of constants; None where it is more than that."""
    match plan.source:
        case SelectPlan(relation=Map(input=Constant(rows=(((), 1),)), scalars=scalars) as made):
            row = [_value(scalar, literals) for scalar in scalars]
        case _:
            return None
    values = [literal.value for literal in row if literal is not None]
    if len(values) < len(row):
        return None
    relation = Constant(((tuple(values), 1),), made.types)
    return replace(plan, source=replace(plan.source, relation=relation))


def _value(scalar: Scalar, literals: Sequence[Literal]) -> Literal | None:
    if isinstance(scalar, Parameter):
        return literals[scalar.index]
    found = fold_scalar(substitute_scalar(scalar, _bindings(literals)))
    return found if isinstance(found, Literal) else None


def _same(
    made: Relation, asked: Relation, bindings: Mapping[Parameter | SessionCall, Scalar]
) -> bool:
    conditions = [scalar for one in in_order_of_use(made) for scalar in scalars_of(one)]
    if any(is_fallible(scalar) and _has_parameter(scalar) for scalar in conditions):
        return False
    return fold_constants(substitute(made, bindings)) == fold_constants(asked)


def _has_parameter(scalar: Scalar) -> bool:
    return isinstance(scalar, Parameter) or any(map(_has_parameter, children(scalar)))


def _may_fail_by_row(scalar: Scalar) -> bool:
    """Whether its constants and the columns of a row may not go together."""
    return bool(columns_of(scalar)) and is_fallible(scalar) and _has_parameter(scalar)


def _assignable(assignments: Sequence[Scalar], literals: Sequence[Literal]) -> bool:
    """Whether all that follows from constants alone is a value."""
    made = [s for s in assignments if isinstance(s, Call) and not columns_of(s)]
    return all(_value(scalar, literals) is not None for scalar in made)


def _all_same(
    made: Sequence[Scalar],
    asked: Sequence[Scalar],
    bindings: Mapping[Parameter | SessionCall, Scalar],
) -> bool:
    return [fold_scalar(substitute_scalar(scalar, bindings)) for scalar in made] == [
        fold_scalar(scalar) for scalar in asked
    ]
