"""Random relations over random collections, for executors that must agree.

Everything follows from a seed. Collections hold NULLs, values that are equal but look different,
rows that come more than once, and errors; relations use every operator, functions with and without
a Spark lowering, and expressions that fail for some rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Final, cast

from evertide.expr.functions.aggregate import packing
from evertide.expr.functions.row import AggregateFunction, ScalarFunction
from evertide.expr.functions.rows import table_function_by_signature
from evertide.expr.functions.table import AGGREGATE_FUNCTIONS, by_signature
from evertide.expr.interpret import Collection
from evertide.expr.relation import (
    AggregateCall,
    ArgumentOrder,
    Constant,
    Distinct,
    Filter,
    FlatMap,
    Get,
    Join,
    Map,
    Negate,
    OrderKey,
    Project,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Types,
    Union,
)
from evertide.expr.row_key import identity_function
from evertide.expr.scalar import And, Call, Case, Coalesce, ColumnRef, IsNull, Literal, Or, Scalar
from evertide.expr.temporal import MZ_NOW
from evertide.vocab.datum import EMPTY_RANGE, Datum, Interval, Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import (
    BOOL,
    FLOAT8,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    MZ_TIMESTAMP,
    NUMERIC,
    TEXT,
    Kind,
    SqlType,
    array_of,
)
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.expr.random_windows import windowed

CHAR: Final = SqlType(Kind.BPCHAR)
FLOATS: Final = array_of(FLOAT8)
SPAN: Final = SqlType(Kind.INT4RANGE)
NAN: Final = float("nan")

VALUES: Final[dict[SqlType, Sequence[Datum]]] = {
    BOOL: (True, False),
    INT4: (-2, 0, 1, 2, 3, 7, 2**31 - 1),
    INT8: (0, 1, -1, 2**62, -(2**63), 2**63 - 1),
    TEXT: ("", "a", "b", "é", "a'\\ ${x}", "ß"),
    CHAR: ("a", "a ", "b", ""),
    NUMERIC: tuple(
        Decimal(text)
        for text in ("0", "1.5", "-3", "1E+20", "1E-30", "12345678901234567890.123456789",
                     "999999999999999999999999999999999999999", "NaN", "Infinity", "-Infinity")
    ),
    FLOAT8: (0.0, -0.0, 1.5, 0.1, 3.0, -1e-300, 5e-324, 1e308, NAN, float("inf"), -float("inf")),
    INTERVAL: (Interval(1, 0, 0), Interval(0, 30, 0), Interval(0, 0, 5), Interval(-1, 31, 0),
               Interval(0, -1, 86_400_000_005), Interval(2**31 - 1, 2**31 - 1, 2**63 - 1)),
    JSONB: ("null", "1", "[]", '{"a":1}', '"x"'),
    SPAN: (EMPTY_RANGE, (1, 5, True, False), (None, 5, False, False), (None, None, False, False)),
    FLOATS: ((), (0.0,), (-0.0,), (NAN, None), (1.0, 2.0)),
}  # fmt: skip
STORED_TYPES: Final = tuple(VALUES)
FUNCTIONS: Final[tuple[ScalarFunction, ...]] = tuple(
    cast(ScalarFunction, by_signature(signature))
    for signature in (
        "+(integer,integer)", "/(integer,integer)", "=(integer,integer)", "<(integer,integer)",
        "%(integer,integer)", "*(bigint,bigint)", "int4(bigint)", "int8(integer)", "<(text,text)",
        "||(text,text)", "upper(text)", "*(numeric,numeric)", "=(numeric,numeric)",
        "/(numeric,numeric)", "+(double precision,double precision)",
        "/(double precision,double precision)", "=(interval,interval)", "=(character,character)",
        "=(int4range,int4range)", "float8(integer)", "int4(double precision)", "text(integer)",
    )
)  # fmt: skip
SMALLER: Final = cast(ScalarFunction, by_signature("<(integer,integer)"))
TO_TIME: Final = cast(ScalarFunction, by_signature("mz_timestamp(integer)"))
TIME_COMPARISONS: Final = tuple(
    cast(ScalarFunction, by_signature(f"{name}(mz_timestamp,mz_timestamp)"))
    for name in ("<", "<=", ">", ">=", "=")
)
AGGREGATES: Final[tuple[AggregateFunction, ...]] = tuple(
    function
    for function in AGGREGATE_FUNCTIONS
    if all(t in VALUES for t in function.arguments)
    and function.name in ("count", "sum", "avg", "min", "max", "string_agg", "array_agg", "stddev")
)


@dataclass(frozen=True, slots=True)
class RandomCase:
    """Collections with their histories, and a relation over them."""

    collections: Mapping[GlobalId, tuple[Types, Sequence[Update]]]
    relation: Relation

    def contents(self, global_id: GlobalId, as_of: Timestamp) -> Collection:
        """A collection's rows and errors at a timestamp."""
        updates = [u for u in self.collections[global_id][1] if u.ts <= as_of]
        return Collection(
            [(u.row, u.diff) for u in updates if u.error is None],
            [(u.error, u.diff) for u in updates if u.error is not None],
        )


def random_case(
    seed: int, *, last_ts: int = 9, flat: bool = False, temporal: bool = False, window: bool = False
) -> RandomCase:
    """One case, always the same for a seed; with window functions, a table function or a filter by
    time on top, or several of them, where that is asked for."""
    maker = _Maker(Random(seed), last_ts)
    case = maker.case()
    relation = case.relation
    if window:
        relation = windowed(maker.random, relation)
    if flat:
        relation = maker.flat_map(relation)
    if temporal:
        relation = maker.temporal(relation)
    if flat and maker.coin():
        relation = maker.flat_map(relation)
    return RandomCase(case.collections, relation)


def added_up(
    types: Types, rows: Sequence[tuple[Row, int]], errors: Sequence[tuple[str, int]]
) -> dict[object, int]:
    """Contents in a form that compares: multiplicities by identity, zeros left out."""
    identity = identity_function(types)
    sums: dict[object, int] = {}
    for row, count in rows:
        key = ("row", row if identity is None else identity(row))
        sums[key] = sums.get(key, 0) + count
    for error, count in errors:
        sums["error", error] = sums.get(("error", error), 0) + count
    return {key: count for key, count in sums.items() if count}


@dataclass(slots=True)
class _Maker:
    random: Random
    last_ts: int
    collections: dict[GlobalId, tuple[Types, Sequence[Update]]] = field(default_factory=dict)

    def case(self) -> RandomCase:
        for number in range(3):
            types = self._types(self.random.randint(1, 4))
            self.collections[GlobalId(f"u{number}")] = (types, self._history(types))
        relation = self._relation(self.random.randint(1, 3))
        return RandomCase(self.collections, relation)

    def _types(self, count: int) -> Types:
        return tuple(self.random.choice(STORED_TYPES) for _ in range(count))

    def _datum(self, sql_type: SqlType) -> Datum:
        return None if self.random.random() < 0.15 else self.random.choice(VALUES[sql_type])

    def _row(self, types: Types) -> Row:
        return tuple(self._datum(sql_type) for sql_type in types)

    def _ts(self) -> Timestamp:
        return Timestamp(self.random.randint(1, self.last_ts))

    def _history(self, types: Types) -> list[Update]:
        """Rows come, and some go later: multiplicities are never negative in the end."""
        updates: list[Update] = []
        for _ in range(self.random.randint(0, 12)):
            added = Update(self._row(types), self._ts(), self.random.choice((1, 1, 2)))
            updates.append(added)
            if self.random.random() < 0.4:
                later = Timestamp(self.random.randint(added.ts, self.last_ts))
                updates.append(added._replace(ts=later, diff=-added.diff))
        if self.random.random() < 0.3:
            updates.append(Update((), self._ts(), 1, '["22012","division by zero"]'))
        return updates

    def _leaf(self, types: Types, wanted: SqlType) -> Scalar:
        columns = [i for i, sql_type in enumerate(types) if sql_type == wanted]
        if columns and self.random.random() < 0.85:
            return ColumnRef(self.random.choice(columns), wanted)
        return Literal(self._datum(wanted), wanted)

    def _scalar(self, types: Types, wanted: SqlType, depth: int) -> Scalar:
        if depth == 0 or self.random.random() < 0.3:
            return self._leaf(types, wanted)
        below = depth - 1
        shapes = ["call", "call", "case", "coalesce"] + ["and", "or", "null"] * (wanted == BOOL)
        match self.random.choice(shapes):
            case "case":
                branch = (self._scalar(types, BOOL, below), self._scalar(types, wanted, below))
                return Case((branch,), self._scalar(types, wanted, below), wanted)
            case "coalesce":
                parts = (self._scalar(types, wanted, below), self._scalar(types, wanted, below))
                return Coalesce(parts, wanted)
            case "and":
                return And(tuple(self._scalar(types, BOOL, below) for _ in range(3)))
            case "or":
                return Or(tuple(self._scalar(types, BOOL, below) for _ in range(2)))
            case "null":
                return IsNull(self._scalar(types, self.random.choice(STORED_TYPES), below))
        fitting = [function for function in FUNCTIONS if function.result == wanted]
        if not fitting:
            return self._leaf(types, wanted)
        function = self.random.choice(fitting)
        arguments = tuple(self._scalar(types, t, below) for t in function.arguments)
        return Call(function, arguments, wanted)

    def _relation(self, depth: int) -> Relation:
        if depth == 0:
            return self._source()
        source = self._relation(depth - 1)
        make = self.random.choice(
            (self._map, self._filter, self._project, self._join, self._reduce, self._reduce,
             self._distinct, self._top_k, self._negate, self._threshold, self._union)
        )  # fmt: skip
        return make(source)

    def _source(self) -> Relation:
        if self.random.random() < 0.1:
            types = self._types(2)
            return Constant(tuple((self._row(types), n) for n in (1, 2)), types)
        global_id = self.random.choice(list(self.collections))
        return Get(global_id, self.collections[global_id][0])

    def _map(self, source: Relation) -> Relation:
        wanted = self._types(self.random.randint(1, 2))
        return Map(source, tuple(self._scalar(source.types, t, 2) for t in wanted))

    def _filter(self, source: Relation) -> Relation:
        count = self.random.randint(1, 2)
        return Filter(source, tuple(self._scalar(source.types, BOOL, 2) for _ in range(count)))

    def _project(self, source: Relation) -> Relation:
        width = len(source.types)
        columns = [self.random.randrange(width) for _ in range(self.random.randint(1, 3))]
        return Project(source, tuple(columns if width else ()))

    def _join(self, source: Relation) -> Relation:
        """Two or three inputs; sometimes without a common column, sometimes one with itself."""
        inputs = [source, *(self._relation(0) for _ in range(self.random.randint(1, 2)))]
        inputs += [source] * (self.random.random() < 0.2)
        types = tuple(t for relation in inputs for t in relation.types)
        if len(types) > 10:
            return source
        classes: list[tuple[int, ...]] = []
        for wanted in set(types):
            columns = tuple(i for i, sql_type in enumerate(types) if sql_type == wanted)
            if len(columns) > 1 and self.random.random() < 0.8:
                classes.append(columns[:3])
        return Join(tuple(inputs), tuple(sorted(classes)))

    def _reduce(self, source: Relation) -> Relation:
        wanted = self._types(self.random.randint(0, 2))
        keys = tuple(self._scalar(source.types, sql_type, 1) for sql_type in wanted)
        count = self.random.randint(0, 3)
        return Reduce(source, keys, tuple(self._aggregate(source.types) for _ in range(count)))

    def _aggregate(self, types: Types) -> AggregateCall:
        function = self.random.choice(AGGREGATES)
        arguments = tuple(self._scalar(types, t, 1) for t in function.arguments)
        pack = packing(function)
        argument = None if not arguments else arguments[0]
        if pack is not None:
            argument = Call(pack, arguments, pack.result)
        distinct = bool(arguments) and self.random.random() < 0.3
        order: tuple[ArgumentOrder, ...] = ()
        if function.finish_rows is not None and function.name not in ("min", "max"):
            order = self._argument_order(types, arguments if distinct else ())
        return AggregateCall(function, argument, distinct, order)

    def _argument_order(
        self, types: Types, arguments: tuple[Scalar, ...]
    ) -> tuple[ArgumentOrder, ...]:
        """By some of these arguments, or by anything if there are none."""
        if self.random.random() < 0.5:
            return ()
        count = self.random.randint(1, 2)
        keys = arguments[:count] or [self._scalar(types, t, 1) for t in self._types(count)]
        return tuple(ArgumentOrder(key, self._coin(), self._coin()) for key in keys)

    def _distinct(self, source: Relation) -> Relation:
        return Distinct(source)

    def _top_k(self, source: Relation) -> Relation:
        width = len(source.types)
        group = tuple(self.random.sample(range(width), self.random.randint(0, min(2, width))))
        order = tuple(
            OrderKey(self.random.randrange(width), self._coin(), self._coin())
            for _ in range(self.random.randint(0, 2) if width else 0)
        )
        limit = self.random.choice((None, 1, 2, 3))
        return TopK(source, group, order, limit, self.random.choice((0, 0, 1)))

    def _negate(self, source: Relation) -> Relation:
        return Union((source, Negate(Filter(source, (self._scalar(source.types, BOOL, 1),)))))

    def _threshold(self, source: Relation) -> Relation:
        return Threshold(Union((source, Negate(TopK(source, (), (), 2)))))

    def _union(self, source: Relation) -> Relation:
        return Union((source, Filter(source, (self._scalar(source.types, BOOL, 1),))))

    def flat_map(self, source: Relation) -> Relation:
        """Short series of small numbers, or the elements of an array; some fail."""
        if FLOATS in source.types and self.coin():
            function = table_function_by_signature("unnest(double precision[])")
            return FlatMap(source, function, (self._leaf(source.types, FLOATS),), self.coin())
        function = table_function_by_signature("generate_series(integer,integer,integer)")
        given = self._scalar(source.types, INT4, 1)
        small = Call(SMALLER, (given, Literal(9, INT4)), BOOL)
        last = Case(((small, given),), Literal(1, INT4), INT4)
        step = Literal(self.random.choice((1, 1, 2, 0)), INT4)
        arguments = (Literal(-1, INT4), last, step)
        return FlatMap(source, function, arguments, self.coin())

    def temporal(self, source: Relation) -> Relation:
        """Times in the history and around it; NULL, and failing, for some rows."""
        predicates: list[Scalar] = []
        for _ in range(self.random.choice((1, 1, 2))):
            value: Scalar = Call(TO_TIME, (self._scalar(source.types, INT4, 1),), MZ_TIMESTAMP)
            if self.random.random() < 0.8:
                fixed = Literal(self.random.randint(4, 9), MZ_TIMESTAMP)
                value = Case(((self._scalar(source.types, BOOL, 1), value),), fixed, MZ_TIMESTAMP)
            sides = (MZ_NOW, value) if self.coin() else (value, MZ_NOW)
            predicates.append(Call(self.random.choice(TIME_COMPARISONS), sides, BOOL))
        if self.coin():
            predicates.append(self._scalar(source.types, BOOL, 1))
        return Filter(source, tuple(predicates))

    def coin(self) -> bool:
        return self.random.random() < 0.5

    def _coin(self) -> bool:
        return self.coin()
