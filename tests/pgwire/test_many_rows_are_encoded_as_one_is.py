"""Goal: rows that are encoded column by column are, byte for byte, those encoded one by one.

Method: every type's awkward values, NULLs among them, in every format and next to other columns;
and random floats, whose text takes a short cut.
"""

import random
import struct
from collections.abc import Sequence

import pytest

from evertide.expr.text_input import parse_text
from evertide.pgwire import row_columns
from evertide.pgwire.row_columns import row_messages
from evertide.pgwire.values import row_encoder
from evertide.vocab.datum import Datum, Row
from evertide.vocab.sql_type import FLOAT4, FLOAT8, INT4, INT8, TEXT, SqlType
from tests.pgwire.test_binary_values_equal_postgres import CASES


def one_by_one(
    types: tuple[SqlType, ...], formats: tuple[int, ...], digits: int, rows: Sequence[Row]
) -> bytes:
    return b"".join(map(row_encoder(types, formats, digits), rows))


@pytest.mark.parametrize("digits", [1, 0, -3])
@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize(("sql_type", "texts"), CASES, ids=[str(case[0]) for case in CASES])
def test_every_type(sql_type: SqlType, texts: list[str], code: int, digits: int) -> None:
    values: list[Datum] = [*(parse_text(sql_type, text) for text in texts), None]
    types, formats = (sql_type, INT4, sql_type), (code, 1 - code, code)
    rows = [(value, place, other) for place, value in enumerate(values) for other in values]
    expected = one_by_one(types, formats, digits, rows)
    assert b"".join(row_messages(types, formats, digits, rows)) == expected
    alone = [(value,) for value in values]
    expected = one_by_one((sql_type,), (code,), digits, alone)
    assert b"".join(row_messages((sql_type,), (code,), digits, alone)) == expected


@pytest.mark.parametrize("sql_type", [FLOAT4, FLOAT8], ids=str)
def test_floats_have_the_same_digits(sql_type: SqlType) -> None:
    rng = random.Random(7)
    form = "f" if sql_type is FLOAT4 else "d"
    size = struct.calcsize(form)
    rows: list[Row] = [struct.unpack(form, rng.randbytes(size)) for _ in range(3_000)]
    if sql_type is FLOAT8:
        powers = [float(f"{sign}{digits}e{power}")
                  for sign in "+-" for digits in ("1", "9.99", "1.2345678901234567", "999999.5")
                  for power in range(-20, 24)]  # fmt: skip
        rows += [(value,) for value in powers]
        rows += [(round(rng.uniform(-1e17, 1e17), rng.randrange(-17, 4)),) for _ in range(3_000)]
    expected = one_by_one((sql_type,), (0,), 1, rows)
    assert b"".join(row_messages((sql_type,), (0,), 1, rows)) == expected


def test_what_is_made_at_once_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_columns, "MOST_CHARACTERS", 10_000)
    types = (INT8, TEXT)
    rows: list[Row] = [(n, "x" * (5_000 if n > 1_500 else 5)) for n in range(3_000)]
    pieces = list(row_messages(types, (0, 0), 1, rows))
    assert b"".join(pieces) == one_by_one(types, (0, 0), 1, rows)
    assert len(pieces) < 2_100, "short rows come together"
    assert max(map(len, pieces)) < 40_000, "long rows come one by one"


def test_rows_without_columns() -> None:
    assert b"".join(row_messages((), (), 1, [(), ()])) == one_by_one((), (), 1, [(), ()])
