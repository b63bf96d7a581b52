"""Rows that bring a value into the bounds of numeric(p,s), varchar(n), char(n), timestamp(p) …

`explicit` tells a cast that the user wrote from one that an assignment needs.
"""

from typing import Final

from evertide.expr.functions.build import partial
from evertide.expr.functions.type_groups import BPCHAR, VARCHAR
from evertide.expr.type_modifier import (
    fit_bpchar,
    fit_interval,
    fit_numeric,
    fit_timestamp,
    fit_varchar,
    round_micros,
)
from evertide.vocab.sql_type import (
    BOOL,
    INT4,
    INTERVAL,
    NUMERIC,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
)

FIT_NUMERIC: Final = partial("numeric", (NUMERIC, INT4, INT4), NUMERIC, fit_numeric)
FIT_VARCHAR: Final = partial("varchar", (VARCHAR, INT4, BOOL), VARCHAR, fit_varchar)
FIT_BPCHAR: Final = partial("bpchar", (BPCHAR, INT4, BOOL), BPCHAR, fit_bpchar)
# By the type whose digits after the second they cut.
FIT_TIMES: Final = {
    TIME: partial("time", (TIME, INT4), TIME, round_micros),
    TIMESTAMP: partial("timestamp", (TIMESTAMP, INT4), TIMESTAMP, fit_timestamp),
    TIMESTAMPTZ: partial("timestamptz", (TIMESTAMPTZ, INT4), TIMESTAMPTZ, fit_timestamp),
    INTERVAL: partial("interval", (INTERVAL, INT4), INTERVAL, fit_interval),
}

ROWS: Final = (FIT_NUMERIC, FIT_VARCHAR, FIT_BPCHAR, *FIT_TIMES.values())
