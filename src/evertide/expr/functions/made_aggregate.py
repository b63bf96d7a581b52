"""Aggregates and table functions of types that are made of others; see `made`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from evertide.expr.data_errors import ArraySubscriptError
from evertide.expr.dimensions import base_of, dimension_count, flat, is_nested, regular
from evertide.expr.functions.made import arguments_of, is_made, made_rows
from evertide.expr.functions.maps import Pairs, sorted_pairs
from evertide.expr.functions.row import (
    Accumulator,
    AggregateFunction,
    ScalarFunction,
    TableFunction,
)
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import NullValueNotAllowed
from evertide.vocab.sql_type import INT8, TEXT, Kind, SqlType, array_of, list_of, map_of

_PACKING: dict[AggregateFunction, ScalarFunction] = {}


def made_aggregates(name: str, types: Sequence[SqlType]) -> tuple[AggregateFunction, ...]:
    """The aggregates called so that take exactly these types."""
    if name == "map_agg" and len(types) == 2:
        return (_map_agg(types[1]),)
    if len(types) != 1 or (types[0].element is None and types[0].fields is None):
        return ()
    found = _aggregates(types[0]).get(name)
    return () if found is None else (found,)


def made_aggregate(signature: str) -> AggregateFunction | None:
    """The aggregate with this signature, if it is one of these."""
    name, types = arguments_of(signature)
    rows = () if types is None else made_aggregates(name, types)
    return rows[0] if rows else None


def made_packing(aggregate: AggregateFunction) -> ScalarFunction | None:
    """What makes one datum of such an aggregate's arguments."""
    return _PACKING.get(aggregate)


@cache
def _aggregates(sql_type: SqlType) -> dict[str, AggregateFunction]:
    lists = AggregateFunction(
        "list_agg", (sql_type,), list_of(sql_type), Accumulator.ROWS, finish_rows=_collect_list
    )
    _PACKING[lists] = _function("pack", sql_type)
    found = [lists]
    if sql_type.fields is not None:
        arrays = AggregateFunction(
            "array_agg", (sql_type,), array_of(sql_type), Accumulator.ROWS, finish_rows=_collect
        )
        _PACKING[arrays] = _function("pack", sql_type)
        found.append(arrays)
    if sql_type.kind is Kind.ARRAY:
        arrays = AggregateFunction(
            "array_agg",
            (sql_type,),
            array_of(sql_type),
            Accumulator.ROWS,
            finish_rows=_collect_arrays(dimension_count(sql_type)),
        )
        _PACKING[arrays] = _function("pack", sql_type)
        found.append(arrays)
    if is_made(sql_type):
        found.append(AggregateFunction("count", (sql_type,), INT8, Accumulator.COUNT))
        for name, body in (("min", _first), ("max", _last)):
            rows = Accumulator.ROWS
            found.append(AggregateFunction(name, (sql_type,), sql_type, rows, finish_rows=body))
    return {row.name: row for row in found}


@cache
def _map_agg(value: SqlType) -> AggregateFunction:
    maps = map_of(value)
    row = AggregateFunction(
        "map_agg", (TEXT, value), maps, Accumulator.ROWS, finish_rows=_collect_map
    )
    rows = made_rows("pack_pair", (maps,))
    (_PACKING[row],) = [pack for pack in rows if pack.result == maps]
    return row


def _function(name: str, sql_type: SqlType) -> ScalarFunction:
    rows = made_rows(name, (list_of(sql_type),))
    (found,) = [row for row in rows if row.arguments == (sql_type,)]
    return found


def _collect(values: Sequence[tuple[Datum]]) -> Datum:
    return tuple(value for (value,) in values) if values else None


def _collect_arrays(dimensions: int) -> Callable[[Sequence[tuple[Datum]]], Datum]:
    """Arrays of equal lengths as one of a dimension more."""

    def collect(values: Sequence[tuple[Datum]]) -> Datum:
        arrays = tuple(value for (value,) in values)
        for array in arrays:
            if array is None:
                raise NullValueNotAllowed("cannot accumulate null arrays")
            if not array:
                raise ArraySubscriptError("cannot accumulate empty arrays")
        if regular(arrays, dimensions + 1) is None:
            raise ArraySubscriptError("cannot accumulate arrays of different dimensionality")
        return arrays or None

    return collect


def _collect_list(values: Sequence[tuple[Datum]]) -> Datum:
    return tuple(value for (value,) in values)


def _collect_map(values: Sequence[Pairs]) -> Datum:
    """Each is a map of one pair; the last of equal keys wins."""
    return sorted_pairs(pair for pairs in values for pair in pairs)


def _first(values: Sequence[Datum]) -> Datum:
    return values[0] if values else None


def _last(values: Sequence[Datum]) -> Datum:
    return values[-1] if values else None


def made_table_functions(name: str, types: Sequence[SqlType]) -> tuple[TableFunction, ...]:
    """The table functions called so that take exactly these types."""
    if name != "unnest" or len(types) != 1 or not is_made(types[0]):
        return ()
    return (_unnest(types[0]),)


def made_table_function(signature: str) -> TableFunction | None:
    """The table function with this signature, if it is one of these."""
    name, types = arguments_of(signature)
    rows = () if types is None else made_table_functions(name, types)
    return rows[0] if rows else None


@cache
def _unnest(container: SqlType) -> TableFunction:
    element = container.element
    assert element is not None, "it is made of others"
    if container == map_of(element):
        columns = (("key", TEXT), ("value", element))
        return TableFunction("unnest", (container,), columns, _pairs)
    if is_nested(container):
        count, base = dimension_count(container), base_of(container)
        elements = (("unnest", base),)
        return TableFunction("unnest", (container,), elements, lambda array: _all(array, count))
    return TableFunction("unnest", (container,), (("unnest", element),), _elements)


def _pairs(pairs: Pairs) -> Iterable[Row]:
    return pairs


def _all(array: tuple[Datum, ...], dimensions: int) -> Iterator[Row]:
    return ((element,) for element in flat(array, dimensions))


def _elements(elements: tuple[Datum, ...]) -> Iterator[Row]:
    return ((element,) for element in elements)
