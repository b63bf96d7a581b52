"""Which rows of the function table are asked of PostgreSQL too.

Rows that exist once per element type are asked for a few element types only: their bodies are one.
"""

from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.table import SCALAR_FUNCTIONS
from evertide.expr.functions.type_groups import REGISTERED
from evertide.vocab.sql_type import FLOAT8, INT4, JSONB, TEXT
from tests.expr.deviations import (
    NOT_COMPARED,
    NOT_COMPARED_PREFIXES,
    SIGNATURES_NOT_COMPARED,
)
from tests.expr.postgres_oracle import is_known

ELEMENTS = (INT4, TEXT, FLOAT8, JSONB)
# PostgreSQL answers that there is no such function, or no such cast.
ABSENT = ("42883", "42846")
ABSENT_ROWS = {
    "%(real,real)", "%(double precision,double precision)", "mod(real,real)",
    "mod(double precision,double precision)", "int8(boolean)", "bool(bigint)",
    "date_bin(interval,timestamp without time zone)", "date_bin(interval,timestamp with time zone)",
}  # fmt: skip


def _is_compared(row: ScalarFunction) -> bool:
    types = (*row.arguments, row.result)
    if row.name in NOT_COMPARED or row.signature in SIGNATURES_NOT_COMPARED:
        return False
    if row.name.startswith(tuple(NOT_COMPARED_PREFIXES)):
        return False
    if any(t in REGISTERED or t.element in REGISTERED for t in types):
        return False  # printed as names
    elements = {t.element for t in types if t.element is not None}
    return all(map(is_known, types)) and elements <= set(ELEMENTS)


COMPARED = [row for row in SCALAR_FUNCTIONS if _is_compared(row)]
