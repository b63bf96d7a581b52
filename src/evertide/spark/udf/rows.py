"""Python functions of texts that give rows for a row, or the times between which it is there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat

import pyarrow as pa

from evertide.dataflow.delta_plan import FlatMapNode, TemporalFilterNode
from evertide.expr.codec import decode_scalar, encode_scalar
from evertide.expr.flat_rows import FlatRows, compile_flat_rows
from evertide.expr.functions.rows import table_function_by_signature
from evertide.expr.functions.table import by_signature
from evertide.expr.relation import Types
from evertide.expr.scalar import Scalar
from evertide.expr.scalar_walk import columns_of
from evertide.expr.temporal import StayOf, compile_stay
from evertide.persist.coding.encoding import decode_column, encode_column, spark_type_name
from evertide.spark.udf.register import digest
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import SqlError, encode_error


@dataclass(frozen=True, slots=True)
class Seen:
    """The columns of a row that a function is given, and how wide the row is."""

    columns: tuple[int, ...]
    types: Types
    arity: int

    @classmethod
    def by(cls, scalars: Iterable[Scalar], types: Types) -> "Seen":
        """Those that the scalars look at."""
        columns = tuple(sorted(frozenset().union(*map(columns_of, scalars))))
        return cls(columns, tuple(types[i] for i in columns), len(types))

    @property
    def arguments(self) -> list[str]:
        """What a text calls the function with: d is always there and tells how many rows."""
        return ["d", *(f"c{i}" for i in self.columns)]

    def rows(self, arrays: Sequence[pa.Array]) -> Iterable[Row]:
        """Rows in which columns that nobody looks at are NULL."""
        count = len(arrays[0])
        columns: list[Iterable[Datum]] = [repeat(None, count) for _ in range(self.arity)]
        for index, sql_type, array in zip(self.columns, self.types, arrays[1:], strict=True):
            columns[index] = decode_column(sql_type, array)
        return zip(*columns, strict=True) if columns else repeat((), count)


@dataclass(frozen=True, slots=True)
class FlatMapFunction:
    """A FlatMapNode's rows for a row: an array of (error, v0, v1, ...)."""

    signature: str
    arguments: tuple[bytes, ...]
    ordinality: bool
    seen: Seen
    given_types: Types

    deterministic = False

    @classmethod
    def of(cls, node: FlatMapNode, types: Types) -> "FlatMapFunction":
        """The function of this node over rows of these types."""
        return cls(
            node.function.signature,
            tuple(encode_scalar(argument) for argument in node.arguments),
            node.ordinality,
            Seen.by(node.arguments, types),
            node.types[len(types) :],
        )

    @property
    def name(self) -> str:
        shape = repr((self.signature, self.ordinality, self.seen))
        return digest("flat", *self.arguments, shape.encode())

    @property
    def returns(self) -> str:
        values = [f"v{i}: {spark_type_name(t)}" for i, t in enumerate(self.given_types)]
        return f"array<struct<{', '.join(['e: string', *values])}>>"

    def __call__(self, *arrays: pa.Array) -> pa.Array:
        rows_of = _prepared_flat_rows(self.signature, self.arguments, ordinality=self.ordinality)
        nothing: Row = (None,) * len(self.given_types)
        offsets, errors, rows = [0], list[str | None](), list[Row]()
        for row in self.seen.rows(arrays):
            try:
                given = rows_of(row)
                rows += given
                errors += [None] * len(given)
            except SqlError as error:
                rows.append(nothing)
                errors.append(encode_error(error))
            offsets.append(len(rows))
        values = [
            encode_column(sql_type, [row[i] for row in rows])
            for i, sql_type in enumerate(self.given_types)
        ]
        names = ["e", *(f"v{i}" for i in range(len(values)))]
        flat = pa.StructArray.from_arrays([pa.array(errors, pa.string()), *values], names=names)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat)


@dataclass(frozen=True, slots=True)
class StayFunction:
    """When a TemporalFilterNode's row is there: s, u and an error; s is NULL if it never is."""

    predicates: tuple[bytes, ...]
    seen: Seen

    deterministic = False
    returns = "s bigint, u bigint, e string"

    @classmethod
    def of(cls, node: TemporalFilterNode) -> "StayFunction":
        """The function of this node."""
        encoded = tuple(encode_scalar(predicate) for predicate in node.predicates)
        return cls(encoded, Seen.by(node.predicates, node.types))

    @property
    def name(self) -> str:
        return digest("stay", *self.predicates, repr(self.seen).encode())

    def __call__(self, *arrays: pa.Array) -> pa.Array:
        stay_of = _prepared_stay(self.predicates)
        stays = [stay_of(row) for row in self.seen.rows(arrays)]
        columns = [
            pa.array([None if s is None else s.start for s in stays], pa.int64()),
            pa.array([None if s is None else s.end for s in stays], pa.int64()),
            pa.array([None if s is None else s.error for s in stays], pa.string()),
        ]
        return pa.StructArray.from_arrays(columns, names=["s", "u", "e"])


@lru_cache(maxsize=256)
def _prepared_flat_rows(
    signature: str, arguments: tuple[bytes, ...], *, ordinality: bool
) -> FlatRows:
    scalars = [decode_scalar(encoded, by_signature) for encoded in arguments]
    function = table_function_by_signature(signature)
    return compile_flat_rows(function, scalars, ordinality=ordinality)


@lru_cache(maxsize=256)
def _prepared_stay(predicates: tuple[bytes, ...]) -> StayOf:
    return compile_stay([decode_scalar(encoded, by_signature) for encoded in predicates])
