"""A database in memory: statements are parsed, planned and interpreted, nothing is stored.

It follows the path of a real statement but for time, storage and clusters, so that tests of the
planner can look at rows instead of trees.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evertide.adapter.ddl.ops import ops_for
from evertide.adapter.reading.selection import to_rows
from evertide.catalog.builtin.registry import builtin_of, builtin_rows
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID, bootstrap_updates
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.expr.compile import compile_scalar
from evertide.expr.interpret import Collection, evaluate, finish
from evertide.expr.relation import Finishing, Map, Relation
from evertide.expr.scalar import Literal, Parameter, Scalar, SessionCall
from evertide.expr.transform.passes import optimize
from evertide.expr.transform.substitute import substitute
from evertide.sql.parser.entry import parse_statement, parse_statements
from evertide.sql.plan.context import PlanContext
from evertide.sql.plan.entry import Planned, plan_statement
from evertide.sql.plan.plans import (
    DdlPlan,
    DeletePlan,
    InsertPlan,
    LiteralColumns,
    Plan,
    Returning,
    SelectPlan,
    UpdatePlan,
)
from evertide.sql.views import inline_views
from evertide.vocab.datum import Datum, Row
from evertide.vocab.ids import EnvironmentId, GlobalId, ItemId
from evertide.vocab.sql_type import TEXT, TIMESTAMPTZ, SqlType
from evertide.vocab.timestamp import Timestamp

SESSION_VALUES: dict[Parameter | SessionCall, Scalar] = {
    SessionCall("current_user", TEXT): Literal("materialize", TEXT),
    SessionCall("current_database", TEXT): Literal("materialize", TEXT),
    SessionCall("now", TIMESTAMPTZ): Literal(1_700_000_000_000_000, TIMESTAMPTZ),
}


@dataclass
class Database:
    """One session's view of a whole environment."""

    snapshot: Snapshot
    rows: dict[ItemId, list[Row]] = field(default_factory=dict)
    search_path: tuple[str, ...] = ("public",)
    cluster: str = "default"
    user: str = "materialize"
    experimental: bool = False
    prepared: Mapping[str, Sequence[SqlType]] | None = None

    @property
    def context(self) -> PlanContext:
        return PlanContext(
            snapshot=self.snapshot,
            database="materialize",
            search_path=self.search_path,
            cluster=self.cluster,
            user=self.user,
            experimental=self.experimental,
            prepared=self.prepared,
        )

    def plan(self, sql: str, types: Sequence[SqlType | None] = ()) -> Plan:
        """The plan of one statement."""
        return self.planned(sql, types).plan

    def planned(
        self,
        sql: str,
        types: Sequence[SqlType | None] = (),
        values: Sequence[Datum] | None = None,
    ) -> Planned:
        """The plan with its parameters' types."""
        return plan_statement(parse_statement(sql), self.context, types, parameter_values=values)

    def run(self, script: str) -> None:
        """Statements whose rows nobody wants."""
        for statement in parse_statements(script):
            self._execute(plan_statement(statement, self.context).plan, ())

    def query(self, sql: str, *values: Datum) -> list[Row]:
        """The rows of one statement, in order where it has one."""
        planned = self.planned(sql, values=values or None)
        parameters = [
            Literal(value, sql_type)
            for value, sql_type in zip(values, planned.parameter_types, strict=True)
        ]
        return self._execute(planned.plan, parameters)

    def rows_of(self, relation: Relation) -> list[Row]:
        """The rows of a relation over stored collections."""
        return self._read(relation, Finishing(), ())

    def _execute(self, plan: Plan, parameters: Sequence[Literal]) -> list[Row]:
        match plan:
            case SelectPlan():
                return self._read(plan.relation, plan.finishing, parameters)
            case InsertPlan(table_id=table_id, source=source, returning=returning):
                added = self._added(source, parameters)
                self.rows.setdefault(table_id, []).extend(added)
                return _returned(returning, added)
            case DeletePlan(table_id=table_id, selection=selection, returning=returning):
                removed = self._read(selection, Finishing(), parameters)
                self._replace(table_id, removed, [])
                return _returned(returning, removed)
            case UpdatePlan(table_id=table_id):
                both = Map(plan.selection, plan.assignments)
                arity, width = len(plan.assignments), len(plan.selection.types)
                rows = self._read(both, Finishing(), parameters)
                added = [row[width:] for row in rows]
                self._replace(table_id, [row[:arity] for row in rows], added)
                return _returned(plan.returning, added)
            case _:
                self._change(plan)
                return []

    def _added(
        self, source: SelectPlan | LiteralColumns, parameters: Sequence[Literal]
    ) -> list[Row]:
        if isinstance(source, SelectPlan):
            return self._read(source.relation, source.finishing, parameters)
        return to_rows(source.table, source.types)

    def _replace(self, table_id: ItemId, removed: list[Row], added: list[Row]) -> None:
        rows = self.rows.setdefault(table_id, [])
        for row in removed:
            rows.remove(row)
        rows.extend(added)

    def _change(self, plan: Plan) -> None:
        assert isinstance(plan, DdlPlan), f"{plan} is the adapter's business"
        ops = ops_for(plan, DEFAULT_ROLE_ID, Timestamp(0), self.snapshot)
        result = transact(self.snapshot, ops, now_ms=2_000, user="materialize")
        self.snapshot = self.snapshot.apply(result.updates, Timestamp(self.snapshot.upper + 1))

    def _read(
        self, relation: Relation, finishing: Finishing, parameters: Sequence[Literal]
    ) -> list[Row]:
        bindings: dict[Parameter | SessionCall, Scalar] = {
            **SESSION_VALUES,
            **{Parameter(i, literal.type): literal for i, literal in enumerate(parameters)},
        }
        inlined = inline_views(relation, self.snapshot, ())
        optimized = optimize(substitute(inlined, bindings))
        return finish(evaluate(optimized, self._collection), finishing, optimized.types)

    def _collection(self, global_id: GlobalId) -> Collection:
        builtin = builtin_of(global_id)
        if builtin is not None:
            if builtin.dynamic:
                return Collection([])
            rows = builtin_rows(builtin, self.snapshot, database="materialize")
            return Collection([(row, 1) for row in rows])
        item = self.snapshot.item_of(global_id)
        assert item is not None, f"{global_id} is in the catalog"
        return Collection([(row, 1) for row in self.rows.get(item.item_id, [])])


def _returned(returning: Returning | None, rows: Sequence[Row]) -> list[Row]:
    if returning is None:
        return []
    functions = [compile_scalar(scalar) for scalar in returning.scalars]
    return [tuple(function(row) for function in functions) for row in rows]


def new_database() -> Database:
    """An environment as it is when it is new."""
    updates = bootstrap_updates(EnvironmentId("test-environment"), 1_000)
    return Database(Snapshot().apply(updates, Timestamp(2)))
