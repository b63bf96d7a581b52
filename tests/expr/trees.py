"""Random relations over three small tables: enough to reach every operator and every rewrite."""

from dataclasses import dataclass
from decimal import Decimal
from math import prod
from random import Random
from typing import cast

from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.rows import table_function_by_signature
from evertide.expr.functions.table import by_signature
from evertide.expr.interpret import Collection
from evertide.expr.relation import (
    AggregateCall,
    Apply,
    Constant,
    Distinct,
    Filter,
    FlatMap,
    Get,
    Join,
    Map,
    Negate,
    OrderKey,
    OuterJoin,
    Project,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Types,
    Union,
)
from evertide.expr.relation_walk import inputs_of
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
from evertide.expr.temporal import MZ_NOW
from evertide.vocab.datum import EMPTY_RANGE, Datum, Interval, Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import (
    BOOL,
    FLOAT8,
    INT8,
    INTERVAL,
    MZ_TIMESTAMP,
    NUMERIC,
    TEXT,
    Kind,
    SqlType,
)
from tests.expr import sample
from tests.expr.sample import agg, call, days, lit

TO_TIME = cast(ScalarFunction, by_signature("mz_timestamp(bigint)"))
TIME_COMPARISONS = [
    cast(ScalarFunction, by_signature(f"{name}(mz_timestamp,mz_timestamp)"))
    for name in ("<", "<=", ">", ">=", "=")
]
TABLES: dict[GlobalId, Types] = {
    GlobalId("t0"): (INT8, INT8, TEXT),
    GlobalId("t1"): (INT8, FLOAT8),
    GlobalId("t2"): (INT8, INT8),
    GlobalId("t3"): (INTERVAL, NUMERIC, INT8, sample.SPAN),
}
WIDEST = 7
TABLE_ROWS = 10
MOST_ROWS = 20_000
EQUALITY = {
    Kind.INT8: sample.EQUAL,
    Kind.TEXT: sample.TEXT_EQUAL,
    Kind.FLOAT8: sample.FLOAT_EQUAL,
    Kind.INTERVAL: sample.INTERVAL_EQUAL,
    Kind.NUMERIC: sample.NUMERIC_EQUAL,
    Kind.INT4RANGE: sample.SPAN_EQUAL,
}
KEY_TYPES = [INT8, TEXT, FLOAT8, INTERVAL, sample.SPAN]
AGGREGATES = {
    Kind.INT8: [
        sample.COUNT_INT, sample.SUM_INT, sample.MIN_INT, sample.MAX_INT, sample.ONLY_INT,
    ],
    Kind.TEXT: [sample.MAX_TEXT, sample.STRING_AGG],
    Kind.FLOAT8: [sample.SUM_FLOAT, sample.AVG_FLOAT, sample.MIN_FLOAT, sample.MAX_FLOAT],
    Kind.NUMERIC: [sample.SUM_NUMERIC, sample.AVG_NUMERIC],
    Kind.INTERVAL: [sample.MAX_INTERVAL],
}  # fmt: skip


def random_datum(rng: Random, sql_type: SqlType) -> Datum:
    """Few different values, so that joins meet and groups gather; zeros of both signs and NaN."""
    if rng.random() < 0.15:
        return None
    match sql_type.kind:
        case Kind.INT8:
            return rng.randrange(-1, 4)
        case Kind.TEXT:
            return rng.choice(["", "a", "b", "ab"])
        case Kind.FLOAT8:
            return rng.choice([0.0, -0.0, 1.5, 0.1, 1e16, float("nan"), float("inf")])
        case Kind.BOOL:
            return rng.random() < 0.5
        case Kind.INTERVAL:
            return rng.choice([days(30), Interval(1, 0, 0), Interval(0, 0, 0), days(1)])
        case Kind.NUMERIC:
            return rng.choice([Decimal(text) for text in ("0", "1.5", "0.1", "1E+20", "NaN")])
        case Kind.INT4RANGE:
            return rng.choice([EMPTY_RANGE, (1, 5, True, False), (None, 5, False, False)])
    raise AssertionError(f"no values of type {sql_type}")


def random_row(rng: Random, types: Types) -> Row:
    return tuple(random_datum(rng, sql_type) for sql_type in types)


def random_contents(rng: Random, most_rows: int = 6) -> dict[GlobalId, Collection]:
    return {
        global_id: Collection(
            [
                (random_row(rng, types), rng.choice([1, 1, 2]))
                for _ in range(rng.randrange(most_rows))
            ]
        )
        for global_id, types in TABLES.items()
    }


def most_rows(relation: Relation) -> int:
    """A bound on how many rows there can be, so that no tree is a product of all there is."""
    below = [most_rows(source) for source in inputs_of(relation)]
    match relation:
        case Get() | Constant():
            return TABLE_ROWS
        case Join() | OuterJoin() | Apply():
            return prod(below) + sum(below)
        case FlatMap():
            return 11 * sum(below)
        case _:
            return sum(below)


def temporal_bound(trees: "Trees", types: Types) -> Scalar:
    """mz_now() compared with a value in the row; NULL, and failing, where others may be."""
    rng = trees.rng
    middle = lit(rng.choice(trees.times))
    given = trees.scalar(types, INT8, 1)
    spread = call(sample.TIMES, given, lit(4)) if trees.fallible else given
    value: Scalar = call(sample.ADD, middle, spread)
    if rng.random() < 0.1:
        value = lit(rng.choice([0, 2**63 - 1]))
    bound = Call(TO_TIME, (value,), MZ_TIMESTAMP)
    sides = (MZ_NOW, bound) if rng.random() < 0.5 else (bound, MZ_NOW)
    compared = Call(rng.choice(TIME_COMPARISONS), sides, BOOL)
    if rng.random() < 0.1 and compared.function.name != "=":
        return call(sample.NOT, compared)
    return compared


@dataclass
class Trees:
    """Makes relations from one source of chance."""

    rng: Random
    fallible: bool = True
    outer: bool = True
    correlated: bool = False
    # Table functions, and filters by mz_now() about such times.
    flat: bool = False
    times: range = range(0)
    # Types of the rows around what is being made, innermost first.
    around: tuple[Types, ...] = ()

    def relation(self, depth: int) -> Relation:
        if depth == 0:
            return self._leaf()
        makers = [
            self._project, self._map, self._filter, self._filter, self._join, self._product,
            self._reduce, self._distinct, self._top_k, self._union, self._except,
        ]  # fmt: skip
        if self.outer:
            makers += [self._outer_join, self._outer_join]
        if self.correlated:
            makers += [self._apply] * 8
        if self.flat:
            makers += [self._flat_map] * 4
        if self.times:
            makers += [self._temporal] * 5
        made = self.rng.choice(makers)(depth - 1)
        if most_rows(made) > MOST_ROWS:
            return self._leaf()
        if len(made.types) > WIDEST:
            columns = self.rng.sample(range(len(made.types)), WIDEST)
            return Project(made, tuple(columns))
        return made

    def _leaf(self) -> Relation:
        if self.rng.random() < 0.1:
            rows = tuple((random_row(self.rng, (INT8, TEXT)), 1) for _ in range(2))
            return Constant(rows, (INT8, TEXT))
        global_id, types = self.rng.choice(list(TABLES.items()))
        return Get(global_id, types)

    def _project(self, depth: int) -> Relation:
        source = self.relation(depth)
        width = len(source.types)
        count = self.rng.randrange(1, width + 2)
        return Project(source, tuple(self.rng.randrange(width) for _ in range(count)))

    def _map(self, depth: int) -> Relation:
        source = self.relation(depth)
        wanted = [self.rng.choice([INT8, TEXT, FLOAT8]) for _ in range(self.rng.randrange(1, 3))]
        return Map(source, tuple(self.scalar(source.types, sql_type, 2) for sql_type in wanted))

    def _filter(self, depth: int) -> Relation:
        source = self.relation(depth)
        return Filter(source, self.predicates(source.types))

    def _join(self, depth: int) -> Relation:
        inputs = [self.relation(depth) for _ in range(self.rng.choice([2, 2, 3]))]
        if self.rng.random() < 0.3:
            inputs[1] = inputs[0]
        types = tuple(t for source in inputs for t in source.types)
        taken: set[int] = set()
        equivalences = []
        for _ in range(self.rng.randrange(1, 3)):
            sql_type = self.rng.choice(types)
            free = [i for i, t in enumerate(types) if t == sql_type and i not in taken]
            members = self.rng.sample(free, min(len(free), self.rng.choice([2, 2, 3])))
            if len(members) > 1:
                taken |= set(members)
                equivalences.append(tuple(sorted(members)))
        return Join(tuple(inputs), tuple(equivalences))

    def _product(self, depth: int) -> Relation:
        """As the planner writes FROM a, b WHERE ..."""
        left, right = self.relation(depth), self.relation(0)
        types = left.types + right.types
        return Filter(Join((left, right)), (*self._equalities(types), *self.predicates(types)))

    def _outer_join(self, depth: int) -> Relation:
        left, right = self.relation(depth), self.relation(self.rng.randrange(depth + 1))
        types = left.types + right.types
        on = self._equalities(types)
        if self.rng.random() < 0.5:
            on += self.predicates(types)
        if self.rng.random() < 0.2:
            on = ()
        return OuterJoin(self.rng.choice(["left", "right", "full"]), left, right, on)

    def _flat_map(self, depth: int) -> Relation:
        """Short series; where that is allowed, some fail, for want of a step."""
        source = self.relation(depth)
        bounds = [self.scalar(source.types, INT8, 1), self.scalar(source.types, INT8, 1)]
        step = self.rng.choice([1, 1, 2, -1, 0 if self.fallible else 1])
        clipped = tuple(Case(((call(sample.LESS, b, lit(9)), b),), lit(3), INT8) for b in bounds)
        function = table_function_by_signature("generate_series(bigint,bigint,bigint)")
        return FlatMap(source, function, (*clipped, lit(step)), self.rng.random() < 0.3)

    def _temporal(self, depth: int) -> Relation:
        """One or two bounds, and sometimes something else beside them."""
        source = self.relation(depth)
        count = self.rng.choice([1, 1, 2])
        predicates = [temporal_bound(self, source.types) for _ in range(count)]
        if self.rng.random() < 0.4:
            predicates += self.predicates(source.types)
        return Filter(source, tuple(self.rng.sample(predicates, len(predicates))))

    def _apply(self, depth: int) -> Relation:
        return self.subquery(depth)

    def subquery(self, depth: int) -> Relation:
        """An Apply whose right side looks around in at least one place, mostly in several."""
        left = self.relation(0 if self.rng.random() < 0.5 else depth)
        around = self.around
        self.around = (left.types, *around)
        right = self.rng.choice([self.relation, self._looking, self._looking, self._both_looking])(
            depth
        )
        self.around = around
        return Apply(left, right)

    def _looking(self, depth: int) -> Relation:
        """A relation, and over it what looks around."""
        source = self.relation(depth)
        sql_type = self.rng.choice([INT8, INT8, TEXT, FLOAT8, INTERVAL])
        outer = self._outer_column(sql_type)
        columns = [i for i, one in enumerate(source.types) if one == sql_type]
        if outer is None or self.rng.random() < 0.3:
            return Map(source, (self.scalar(source.types, INT8, 1),) if outer is None else (outer,))
        if not columns:
            return Filter(source, (IsNull(outer),))
        column = ColumnRef(self.rng.choice(columns), sql_type)
        return Filter(source, (call(EQUALITY[sql_type.kind], column, outer),))

    def _both_looking(self, depth: int) -> Relation:
        """A join of two that look around, which must look at one and the same row."""
        return Join((self._looking(depth - 1 if depth else 0), self._looking(0)))

    def _outer_column(self, wanted: SqlType) -> Scalar | None:
        found = [
            OuterColumn(depth, index, sql_type)
            for depth, types in enumerate(self.around)
            for index, sql_type in enumerate(types)
            if sql_type == wanted
        ]
        return self.rng.choice(found) if found else None

    def _reduce(self, depth: int) -> Relation:
        source = self.relation(depth)
        count = self.rng.randrange(3)
        keys = tuple(self.scalar(source.types, self.rng.choice(KEY_TYPES), 1) for _ in range(count))
        calls = tuple(self._aggregate(source.types) for _ in range(self.rng.randrange(1, 4)))
        return Reduce(source, keys, calls)

    def _aggregate(self, types: Types) -> AggregateCall:
        if self.rng.random() < 0.2:
            return agg(sample.COUNT)
        kind = self.rng.choice(list(AGGREGATES))
        argument = self.scalar(types, SqlType(kind), 1)
        choices = [f for f in AGGREGATES[kind] if self.fallible or f is not sample.ONLY_INT]
        return agg(self.rng.choice(choices), argument, distinct=self.rng.random() < 0.3)

    def _distinct(self, depth: int) -> Relation:
        return Distinct(self.relation(depth))

    def _top_k(self, depth: int) -> Relation:
        source = self.relation(depth)
        columns = list(range(len(source.types)))
        group = tuple(self.rng.sample(columns, min(len(columns), self.rng.randrange(2))))
        order = tuple(
            OrderKey(column, self.rng.random() < 0.5, self.rng.random() < 0.5)
            for column in self.rng.sample(columns, min(len(columns), self.rng.randrange(3)))
        )
        limit = self.rng.choice([None, 0, 1, 2, 3])
        return TopK(source, group, order, limit, self.rng.choice([0, 0, 1]))

    def _union(self, depth: int) -> Relation:
        source = self.relation(depth)
        return Union(
            (source, *(self._alike(source, depth) for _ in range(self.rng.choice([1, 2]))))
        )

    def _except(self, depth: int) -> Relation:
        source = self.relation(depth)
        other = self._alike(source, depth)
        if self.rng.random() < 0.5:
            source, other = Distinct(source), Distinct(other)
        return Threshold(Union((source, Negate(other))))

    def _alike(self, model: Relation, depth: int) -> Relation:
        """Another relation with the same types."""
        if self.rng.random() < 0.5:
            return Filter(model, self.predicates(model.types))
        source = self.relation(depth)
        scalars = tuple(self.scalar(source.types, sql_type, 1) for sql_type in model.types)
        width = len(source.types)
        return Project(Map(source, scalars), tuple(range(width, width + len(scalars))))

    def _equalities(self, types: Types) -> tuple[Scalar, ...]:
        """Infallible: a join key that fails is computed for rows that find no partner."""
        made: list[Scalar] = []
        for _ in range(self.rng.choice([0, 1, 1, 2])):
            sql_type = self.rng.choice(types)
            columns = [i for i, t in enumerate(types) if t == sql_type]
            left = ColumnRef(self.rng.choice(columns), sql_type)
            right: Scalar = ColumnRef(self.rng.choice(columns), sql_type)
            if sql_type == INT8 and self.rng.random() < 0.3:
                right = call(sample.ADD, right, lit(1))
            made.append(call(EQUALITY[sql_type.kind], left, right))
        return tuple(made)

    def predicates(self, types: Types) -> tuple[Scalar, ...]:
        return tuple(self.scalar(types, BOOL, 2) for _ in range(self.rng.choice([1, 1, 2])))

    def scalar(self, types: Types, wanted: SqlType, depth: int) -> Scalar:
        columns = [i for i, sql_type in enumerate(types) if sql_type == wanted]
        if self.around and self.rng.random() < 0.4:
            outer = self._outer_column(wanted)
            if outer is not None:
                return outer
        if columns and self.rng.random() < 0.5:
            return ColumnRef(self.rng.choice(columns), wanted)
        if depth == 0 or self.rng.random() < 0.15:
            return Literal(random_datum(self.rng, wanted), wanted)
        match wanted.kind:
            case Kind.INT8:
                return self._int(types, depth - 1)
            case Kind.BOOL:
                return self._bool(types, depth - 1)
            case Kind.TEXT:
                return call(sample.TO_TEXT, self.scalar(types, INT8, depth - 1))
            case Kind.FLOAT8:
                return call(sample.TO_FLOAT, self.scalar(types, INT8, depth - 1))
            case Kind.NUMERIC | Kind.INTERVAL | Kind.INT4RANGE:
                return Literal(random_datum(self.rng, wanted), wanted)
        raise AssertionError(f"no scalars of type {wanted}")

    def _int(self, types: Types, depth: int) -> Scalar:
        parts = tuple(self.scalar(types, INT8, depth) for _ in range(2))
        condition = self.scalar(types, BOOL, depth)
        choices: list[Scalar] = [
            call(sample.ADD, *parts),
            Case(((condition, parts[0]),), parts[1], INT8),
            Coalesce(parts, INT8),
        ]
        if self.fallible:
            choices += [call(sample.DIVIDE, *parts), call(sample.TIMES, *parts)]
        return self.rng.choice(choices)

    def _bool(self, types: Types, depth: int) -> Scalar:
        ints = tuple(self.scalar(types, INT8, depth) for _ in range(2))
        bools = tuple(self.scalar(types, BOOL, depth) for _ in range(2))
        column = self.rng.randrange(len(types)) if types else None
        anything: Scalar = lit(1) if column is None else ColumnRef(column, types[column])
        # Infallible, because such an equality may become a join key: see _equalities.
        careful = Trees(self.rng, fallible=False, around=self.around)
        safe = tuple(careful.scalar(types, INT8, depth) for _ in range(2))
        choices: list[Scalar] = [
            call(sample.EQUAL, *safe), call(sample.LESS, *ints), call(sample.LESS, *ints),
            And(bools), Or(bools), call(sample.NOT, bools[0]), IsNull(anything),
        ]  # fmt: skip
        return self.rng.choice(choices)
