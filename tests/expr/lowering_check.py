"""Compares Spark's answers to lowered functions with the answers of their bodies.

Rows of one argument list are asked in one job. A test with a Spark session calls `differences`.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.table import SCALAR_FUNCTIONS
from evertide.persist.coding.encoding import (
    arrow_type,
    decode_column,
    encode_column,
    spark_type_name,
)
from evertide.vocab.datum import Datum
from evertide.vocab.errors import SqlError, encode_error
from evertide.vocab.sql_type import SqlType
from tests.expr.lowering_vectors import vectors

LOWERED = tuple(row for row in SCALAR_FUNCTIONS if row.spark is not None)
BATCH = 40


def differences(session: Any, rows: Sequence[ScalarFunction] = LOWERED) -> Iterator[str]:
    """One line for each call that Spark answers differently, or with another type."""
    groups: dict[tuple[SqlType, ...], list[ScalarFunction]] = defaultdict(list)
    for row in rows:
        groups[row.arguments].append(row)
    for types, members in groups.items():
        for start in range(0, len(members), BATCH):
            yield from _compare(session, types, members[start : start + BATCH])


def _compare(
    session: Any, types: tuple[SqlType, ...], members: Sequence[ScalarFunction]
) -> Iterator[str]:
    arguments = list(vectors(types, limit=200)) or [()]
    columns = [encode_column(t, [row[index] for row in arguments]) for index, t in enumerate(types)]
    names = [f"a{index}" for index in range(len(types))]
    schema = pa.schema([pa.field(n, arrow_type(t)) for n, t in zip(names, types, strict=True)])
    table = pa.table(columns, schema=schema) if types else pa.table({"dummy": [1]})
    selected = []
    for position, row in enumerate(members):
        assert row.spark is not None
        selected.append(f"{_filled(row.spark, names)} AS v{position}")
        selected.append(f"{_filled(row.spark_error or 'false', names)} AS e{position}")
    frame = session.createDataFrame(table).selectExpr(*selected)
    answer = frame.toArrow()
    for position, row in enumerate(members):
        found = frame.schema[f"v{position}"].dataType.simpleString()
        if found != spark_type_name(row.result):
            yield f"{row}: type {found} instead of {spark_type_name(row.result)}"
            continue
        values = decode_column(row.result, answer[f"v{position}"])
        failed = answer[f"e{position}"].to_pylist()
        for given, value, fails in zip(arguments, values, failed, strict=True):
            expected, error = _evaluate(row, given)
            if bool(fails) != (error is not None) or not _same(expected, value):
                yield f"{row}{given!r}: {value!r} fails={fails} instead of {expected!r} {error}"
            if error is not None and error != row.error:
                yield f"{row}{given!r}: error {row.error} instead of {error}"


def _filled(template: str, names: Sequence[str]) -> str:
    filled = re.sub(r"\{(\d+)\}", lambda place: names[int(place.group(1))], template)
    return f"({filled})"


def _evaluate(row: ScalarFunction, arguments: tuple[Datum, ...]) -> tuple[Datum, str | None]:
    if row.strict and None in arguments:
        return None, None
    try:
        return row.body(*arguments), None
    except SqlError as error:
        return None, encode_error(error)


def _same(left: Datum, right: Datum) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    return repr(left) == repr(right)
