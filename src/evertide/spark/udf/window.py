"""The Python function of texts that gives a partition's rows the values of window functions."""

from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import msgspec
import pyarrow as pa

from evertide.dataflow.delta_plan import WindowNode
from evertide.expr.codec import plain_order, read_order
from evertide.expr.functions.table import by_signature
from evertide.expr.relation import Types
from evertide.expr.window import Windowing
from evertide.expr.window_codec import plain_window_calls, read_window_calls
from evertide.persist.coding.encoding import encode_column, spark_type_name
from evertide.spark.udf.reduce import struct_lists
from evertide.spark.udf.register import digest
from evertide.vocab.datum import Row


@dataclass(frozen=True, slots=True)
class WindowFunctions:
    """Takes a partition as an array of (f0, f1, ..., n), n being how often the row is there.

    Gives an array of (error, v0, v1, ...): rows with the functions' values, in no promised order.
    """

    order: bytes
    calls: bytes
    types: Types
    shown_types: Types

    deterministic = False

    @classmethod
    def of(cls, node: WindowNode, types: Types) -> "WindowFunctions":
        """Those of this node over rows of these types."""
        order = msgspec.msgpack.encode(plain_order(node.order))
        calls = msgspec.msgpack.encode(plain_window_calls(node.calls))
        return cls(order, calls, types, node.types)

    @property
    def name(self) -> str:
        return digest("window", self.order, self.calls, repr(self.types).encode())

    @property
    def returns(self) -> str:
        values = [f"v{i}: {spark_type_name(t)}" for i, t in enumerate(self.shown_types)]
        return f"array<struct<{', '.join(['e: string', *values])}>>"

    def __call__(self, *arrays: pa.Array) -> pa.Array:
        windowing = _prepared(self.types, self.order, self.calls)
        nothing: Row = (None,) * len(self.shown_types)
        offsets, errors, rows = [0], list[str | None](), list[Row]()
        for members in struct_lists(self.types, arrays[0]):
            counted = [(row[:-1], cast(int, row[-1])) for row in members]
            shown, failed = windowing.over_unordered(counted)
            rows += [row for row, _ in shown]
            errors += [None] * len(shown)
            rows += [nothing] * len(failed)
            errors += [error for error, _ in failed]
            offsets.append(len(rows))
        values = [
            encode_column(sql_type, [row[i] for row in rows])
            for i, sql_type in enumerate(self.shown_types)
        ]
        names = ["e", *(f"v{i}" for i in range(len(values)))]
        flat = pa.StructArray.from_arrays([pa.array(errors, pa.string()), *values], names=names)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat)


@lru_cache(maxsize=256)
def _prepared(types: Types, order: bytes, calls: bytes) -> Windowing:
    return Windowing(
        types,
        read_order(msgspec.msgpack.decode(order)),
        read_window_calls(msgspec.msgpack.decode(calls), by_signature),
    )
