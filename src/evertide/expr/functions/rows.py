"""Functions that give rows: series, elements of arrays and jsonb, what psql asks of the catalog."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from evertide.expr.functions.array import split_text
from evertide.expr.functions.datetime_arithmetic import add_interval, is_infinite
from evertide.expr.functions.datetime_functions import date_bin
from evertide.expr.functions.extracted_rows import EXTRACTING, extracting_function
from evertide.expr.functions.jsonb_rows import JSONB_TABLE_ROWS
from evertide.expr.functions.made_aggregate import made_table_function
from evertide.expr.functions.regex import matches, split_rows
from evertide.expr.functions.row import TableFunction
from evertide.expr.functions.rows_in_step import in_step, parts_of
from evertide.expr.functions.type_groups import RANGES, REGCLASS, SCALARS, TEXT_ARRAY
from evertide.persist.coding.keys import key_encoder
from evertide.vocab.datum import MICROS_PER_DAY, Datum, Interval, Row
from evertide.vocab.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    UndefinedFunction,
)
from evertide.vocab.sql_type import (
    BOOL,
    INT4,
    INT8,
    INTERVAL,
    OID,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    SqlType,
    array_of,
)

_NOTHING: Final = Interval(0, 0, 0)


def _integers(sql_type: SqlType) -> Callable[..., Iterator[Row]]:
    """Integers from start to stop; the series ends where the type does."""
    low, high = RANGES[sql_type]

    def series(start: int, stop: int, step: int = 1) -> Iterator[Row]:
        if step == 0:
            raise _no_step()
        end = min(stop, high) + 1 if step > 0 else max(stop, low) - 1
        return ((number,) for number in range(start, end, step))

    return series


def _times(start: int, stop: int, step: Interval) -> Iterator[Row]:
    """Timestamps from start to stop. Steps of months differ in length, so each is added anew."""
    compare = key_encoder(INTERVAL)
    if compare(step) == compare(_NOTHING):
        raise _no_step()
    forward = compare(step) > compare(_NOTHING)
    return _steps(start, stop, step, forward=forward)


def _steps(moment: int, stop: int, step: Interval, *, forward: bool) -> Iterator[Row]:
    while (moment <= stop) if forward else (moment >= stop):
        yield (moment,)
        moment = add_interval(moment, step)


def _no_step() -> InvalidParameterValue:
    return InvalidParameterValue("step size cannot equal zero")


def _elements(array: tuple[Datum, ...]) -> Iterator[Row]:
    return ((element,) for element in array)


def _numbered(array: tuple[Datum, ...]) -> Iterator[Row]:
    return ((element, number) for number, element in enumerate(array, start=1))


def _subscripts(array: tuple[Datum, ...], dimension: int, reverse: bool = False) -> Iterable[Row]:
    numbers = range(1, len(array) + 1) if dimension == 1 else range(0)
    return ((number,) for number in (reversed(numbers) if reverse else numbers))


def _options(options: tuple[str | None, ...]) -> Iterator[Row]:
    """Each `name=value` as a row; an option without a value has NULL there."""
    for option in options:
        if option is not None:
            name, sign, value = option.partition("=")
            yield name, value if sign else None


def _none(*_arguments: Datum) -> Iterable[Row]:
    """Rows about things that this system does not have."""
    return ()


def _series_rows() -> Iterator[TableFunction]:
    name = "generate_series"
    for sql_type in (INT4, INT8):
        body, columns = _integers(sql_type), ((name, sql_type),)
        yield TableFunction(name, (sql_type, sql_type), columns, body)
        yield TableFunction(name, (sql_type, sql_type, sql_type), columns, body)
    for sql_type in (TIMESTAMP, TIMESTAMPTZ):
        arguments = (sql_type, sql_type, INTERVAL)
        yield TableFunction(name, arguments, ((name, sql_type),), _times)


def _array_rows(element: SqlType) -> Iterator[TableFunction]:
    array, subscripts = array_of(element), "generate_subscripts"
    for container in (array, SqlType(Kind.LIST, element=element)):
        yield TableFunction("unnest", (container,), (("unnest", element),), _elements)
    yield TableFunction("_pg_expandarray", (array,), (("x", element), ("n", INT4)), _numbered)
    for arguments in ((array, INT4), (array, INT4, BOOL)):
        yield TableFunction(subscripts, arguments, ((subscripts, INT4),), _subscripts)


def _pieces(text: str | None, separator: str | None, null: str | None = None) -> Iterator[Row]:
    """Parts of a text; NULL for a separator parts every character."""
    return ((part,) for part in split_text(text, separator, null) or ())


def _hops(hop: Interval, width: Interval, moment: int, origin: int = 0) -> Iterable[Row]:
    """The starts of all windows of this width, one ended at each hop, that hold a moment."""
    last = date_bin(hop, moment, origin)
    if last == moment and is_infinite(moment):
        return ((moment,),)
    if width.months:
        raise FeatureNotSupported(
            "timestamps cannot be binned into intervals containing months or years"
        )
    step, length = (one.days * MICROS_PER_DAY + one.micros for one in (hop, width))
    first = last + step - length
    return ((start,) for start in range(first, moment + 1, step))


def _text_rows() -> Iterator[TableFunction]:
    for arguments in ((TEXT, TEXT), (TEXT, TEXT, TEXT)):
        for name, result, body in (
            ("regexp_matches", TEXT_ARRAY, matches),
            ("regexp_split_to_table", TEXT, split_rows),
        ):
            yield TableFunction(name, arguments, ((name, result),), body)
        name = "string_to_table"
        yield TableFunction(name, arguments, ((name, TEXT),), _pieces, strict=False)


def _hop_rows() -> Iterator[TableFunction]:
    name = "date_bin_hopping"
    for moment in (TIMESTAMP, TIMESTAMPTZ):
        for arguments in ((INTERVAL, INTERVAL, moment), (INTERVAL, INTERVAL, moment, moment)):
            yield TableFunction(name, arguments, ((name, moment),), _hops)


TABLE_FUNCTION_ROWS: Final = (
    *_series_rows(),
    *_text_rows(),
    *_hop_rows(),
    *(row for element in SCALARS for row in _array_rows(element)),
    *JSONB_TABLE_ROWS,
    *EXTRACTING,
    TableFunction(
        "pg_options_to_table",
        (TEXT_ARRAY,),
        (("option_name", TEXT), ("option_value", TEXT)),
        _options,
    ),
    TableFunction(
        "ts_token_type", (OID,), (("tokid", INT4), ("alias", TEXT), ("description", TEXT)), _none
    ),
    TableFunction(
        "pg_partition_tree",
        (REGCLASS,),
        (("relid", REGCLASS), ("parentrelid", REGCLASS), ("isleaf", BOOL), ("level", INT4)),
        _none,
    ),
    TableFunction("pg_listening_channels", (), (("pg_listening_channels", TEXT),), _none),
    TableFunction(
        "pg_timezone_names",
        (),
        (("name", TEXT), ("abbrev", TEXT), ("utc_offset", INTERVAL), ("is_dst", BOOL)),
        lambda: [("UTC", "UTC", _NOTHING, False)],
    ),
    TableFunction("pg_partition_ancestors", (REGCLASS,), (("relid", REGCLASS),), _none),
)

_BY_SIGNATURE: Final = {row.signature: row for row in TABLE_FUNCTION_ROWS}
assert len(_BY_SIGNATURE) == len(TABLE_FUNCTION_ROWS), "two rows have one signature"


def find_table_functions(name: str) -> tuple[TableFunction, ...]:
    """All table functions called so."""
    return tuple(row for row in TABLE_FUNCTION_ROWS if row.name == name)


def table_function_by_signature(signature: str) -> TableFunction:
    """The row with this signature.

    >>> table_function_by_signature("unnest(integer[])").columns[0][0]
    'unnest'
    """
    parts = parts_of(signature)
    if parts:
        return in_step([table_function_by_signature(part) for part in parts])
    found = (
        _BY_SIGNATURE.get(signature)
        or extracting_function(signature)
        or made_table_function(signature)
    )
    if found is None:
        raise UndefinedFunction(f"table function {signature} does not exist")
    return found
