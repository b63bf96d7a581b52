"""Changes as lines of JSON, in an order that depends on nothing but the changes; pure.

A line is {"timestamp":T,"diff":D,"row":{...}}, or "error" in place of "row" while an expression of
a view fails. Lines are ordered by timestamp, then by what they say. So all lines of a collection
are one sequence, and a file that holds the beginning of it can be gone on with.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from evertide.expr.float_text import float4_text, float8_text
from evertide.expr.functions.jsonb_conversion import to_jsonb
from evertide.expr.json_value import dump_json
from evertide.expr.text_output import formatter
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import decode_error
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.sql_type import Kind, SqlType
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

_TIMESTAMP: Final = re.compile(rb'\{"timestamp":([0-9]{1,19}),')


class LineEncoder:
    """Of one collection."""

    def __init__(self, desc: RelationDesc) -> None:
        self._columns = [
            (f"{dump_json(column.name)}:", _writer(column.type)) for column in desc.columns
        ]

    def encode(self, updates: Iterable[Update]) -> bytes:
        """The lines of these changes, which must be all there are at their timestamps."""
        diffs: Counter[tuple[Timestamp, str]] = Counter()
        for update in updates:
            diffs[update.ts, self._what(update)] += update.diff
        lines = [
            f'{{"timestamp":{ts},"diff":{diff},{what}}}\n'
            for (ts, what), diff in sorted(diffs.items())
            if diff
        ]
        return "".join(lines).encode()

    def _what(self, update: Update) -> str:
        if update.error is not None:
            return f'"error":{dump_json(decode_error(update.error).message)}'
        return f'"row":{{{self._row(update.row)}}}'

    def _row(self, row: Row) -> str:
        parts = [
            name + ("null" if datum is None else write(datum))
            for (name, write), datum in zip(self._columns, row, strict=True)
        ]
        return ",".join(parts)


def _writer(sql_type: SqlType) -> Callable[..., str]:
    """How a value that is not NULL is written: as PostgreSQL's row_to_json has it."""
    match sql_type.kind:
        case Kind.FLOAT4:
            return lambda value: _float(value, float4_text(value))
        case Kind.FLOAT8:
            return lambda value: _float(value, float8_text(value))
        case Kind.ARRAY | Kind.LIST:
            assert sql_type.element is not None, "what has elements has a type of them"
            write = _writer(sql_type.element)
            return lambda values: _sequence(values, write)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            moment = formatter(sql_type)
            return lambda value: f'"{_iso(moment(value))}"'
        case Kind.MAP:
            text = formatter(sql_type)
            return lambda value: dump_json(text(value))
        case _:
            body = to_jsonb(sql_type)
            return lambda value: str(body(value))


def _iso(text: str) -> str:
    """As ISO 8601 has it. Times with a zone are those of UTC.

    >>> _iso("2026-11-16 12:00:00+00"), _iso("infinity")
    ('2026-11-16T12:00:00+00:00', 'infinity')
    """
    return text.replace(" ", "T", 1).replace("+00", "+00:00")


def _float(value: float, text: str) -> str:
    """JSON has no NaN and no infinities: they become strings."""
    return text if math.isfinite(value) else f'"{text}"'


def _sequence(values: Sequence[Datum], write: Callable[..., str]) -> str:
    return f"[{','.join(['null' if value is None else write(value) for value in values])}]"


def timestamp_of(line: bytes) -> Timestamp | None:
    """When a line's change was; None: it is no such line.

    >>> timestamp_of(b'{"timestamp":17,"diff":1,"row":{}}')
    17
    """
    found = _TIMESTAMP.match(line)
    return None if found is None else Timestamp(int(found[1]))
