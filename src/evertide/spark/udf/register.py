"""Python functions that Spark texts call, over Arrow arrays of physical values.

They exist where Spark's own functions do not mean what SQL means: functions without a lowering and
the order of some types here, sums and the ends of aggregates in udf_reduce. Each is a value: its
name is a digest of what it does, so a session registers it once, and a worker that gets it prepares
it once.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import repeat
from typing import Protocol, cast

import pyarrow as pa

from evertide.dataflow.delta_plan import LinearNode
from evertide.expr.codec import decode_scalar, encode_scalar
from evertide.expr.compile import compile_predicates, compile_scalar
from evertide.expr.functions.table import by_signature
from evertide.expr.relation import Types
from evertide.expr.row_key import representation
from evertide.expr.scalar import Scalar
from evertide.persist.coding.encoding import (
    decode_column,
    encode_column,
    key_encoder,
    spark_type_name,
)
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import SqlError, encode_error
from evertide.vocab.sql_type import SqlType

_SIGN_BIAS = 2**63


class PythonFunction(Protocol):
    """Something that a text can call by name."""

    @property
    def name(self) -> str:
        """Unique for what it does: letters, digits and _ only."""
        ...

    @property
    def returns(self) -> str:
        """The result's type in Spark DDL."""
        ...

    @property
    def deterministic(self) -> bool:
        """False keeps Spark from calling it twice for one row, in a filter and a projection."""
        ...

    def __call__(self, *arrays: pa.Array) -> pa.Array: ...


def digest(kind: str, *parts: bytes) -> str:
    """A function's name: its kind and what makes it that one."""
    hashed = blake2b(digest_size=12)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "big") + part)
    return f"ev_{kind}_{hashed.hexdigest()}"


@dataclass(frozen=True, slots=True)
class LinearFunction:
    """All scalars and predicates of a LinearNode.

    Takes d, then the `needed` columns; gives k (is the row in), e (its error), and v0, v1, ... of
    those scalars that the node's output shows.
    """

    scalars: tuple[bytes, ...]
    predicates: tuple[bytes, ...]
    needed_types: Types
    needed: tuple[int, ...]
    arity: int
    # The scalars that the node's output shows, and their types.
    given: tuple[int, ...]
    given_types: Types

    deterministic = False

    @classmethod
    def of(
        cls, node: LinearNode, types: Types, needed: tuple[int, ...], given: tuple[int, ...]
    ) -> "LinearFunction":
        """The function of this node over rows of these types."""
        return cls(
            tuple(encode_scalar(scalar) for scalar in node.scalars),
            tuple(encode_scalar(predicate) for predicate in node.predicates),
            tuple(types[i] for i in needed),
            needed,
            len(types),
            given,
            tuple(node.scalars[i].type for i in given),
        )

    @property
    def name(self) -> str:
        shape = repr((len(self.scalars), self.needed_types, self.needed, self.arity, self.given))
        return digest("linear", *self.scalars, *self.predicates, shape.encode())

    @property
    def returns(self) -> str:
        shown = zip(self.given, self.given_types, strict=True)
        values = [f"v{i} {spark_type_name(sql_type)}" for i, sql_type in shown]
        return ", ".join(["k boolean", "e string", *values])

    def __call__(self, *arrays: pa.Array) -> pa.Array:
        evaluate = _prepared_linear(self.scalars, self.predicates)
        results = [evaluate(row) for row in self._rows(arrays)]
        values = [
            encode_column(sql_type, [values[i] for _, _, values in results])
            for i, sql_type in zip(self.given, self.given_types, strict=True)
        ]
        keep = pa.array([kept for kept, _, _ in results], pa.bool_())
        errors = pa.array([error for _, error, _ in results], pa.string())
        names = ["k", "e", *(f"v{i}" for i in self.given)]
        return pa.StructArray.from_arrays([keep, errors, *values], names=names)

    def _rows(self, arrays: Sequence[pa.Array]) -> Iterable[Row]:
        """Rows of the node's input in which columns that nobody looks at are NULL."""
        count = len(arrays[0])
        columns: list[Iterable[Datum]] = [repeat(None, count) for _ in range(self.arity)]
        for index, sql_type, array in zip(self.needed, self.needed_types, arrays[1:], strict=True):
            columns[index] = decode_column(sql_type, array)
        return zip(*columns, strict=True) if columns else repeat((), count)


@dataclass(frozen=True, slots=True)
class KeyFunction:
    """The sort key of one column; or, by representation, what orders values equal in SQL."""

    sql_type: SqlType
    by_representation: bool = False

    returns = "binary"
    deterministic = True

    @property
    def name(self) -> str:
        return digest("key", repr((self.sql_type, self.by_representation)).encode())

    def __call__(self, *arrays: pa.Array) -> pa.Array:
        datums = decode_column(self.sql_type, arrays[0])
        encode = self._look if self.by_representation else key_encoder(self.sql_type)
        keys = [None if datum is None else encode(datum) for datum in datums]
        return pa.array(keys, pa.binary())

    def _look(self, datum: Datum) -> bytes:
        order = representation((self.sql_type,))
        return b"" if order is None else _ordered_bytes(order((datum,)))


def _ordered_bytes(part: object) -> bytes:
    """Bytes that compare as the parts of representations of equal values do."""
    match part:
        case str():
            return part.encode() + b"\x00"
        case int():
            return (int(part) + _SIGN_BIAS).to_bytes(8, "big")
        case _:
            return b"".join([_ordered_bytes(inner) for inner in cast("Sequence[object]", part)])


@lru_cache(maxsize=256)
def _prepared_linear(
    scalars: tuple[bytes, ...], predicates: tuple[bytes, ...]
) -> Callable[[Row], tuple[bool, str | None, Row]]:
    """(is the row in, its error, the scalars' values) of a row; NULLs where it failed."""
    compiled = [compile_scalar(_read_scalar(encoded)) for encoded in scalars]
    holds = compile_predicates([_read_scalar(encoded) for encoded in predicates])
    nothing: Row = (None,) * len(compiled)

    def evaluate(row: Row) -> tuple[bool, str | None, Row]:
        width = len(row)
        try:
            for scalar in compiled:
                row = (*row, scalar(row))
            return holds(row), None, row[width:]
        except SqlError as error:
            return False, encode_error(error), nothing

    return evaluate


def _read_scalar(encoded: bytes) -> Scalar:
    return decode_scalar(encoded, by_signature)
