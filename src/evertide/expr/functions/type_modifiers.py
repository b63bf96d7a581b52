"""Rows that bring a value into the bounds of numeric(p,s), varchar(n) and char(n).

`explicit` tells a cast that the user wrote from one that an assignment needs.
"""

from typing import Final

from evertide.expr.functions.build import partial
from evertide.expr.functions.type_groups import BPCHAR, VARCHAR
from evertide.expr.type_modifier import fit_bpchar, fit_numeric, fit_varchar
from evertide.vocab.sql_type import BOOL, INT4, NUMERIC

FIT_NUMERIC: Final = partial("numeric", (NUMERIC, INT4, INT4), NUMERIC, fit_numeric)
FIT_VARCHAR: Final = partial("varchar", (VARCHAR, INT4, BOOL), VARCHAR, fit_varchar)
FIT_BPCHAR: Final = partial("bpchar", (BPCHAR, INT4, BOOL), BPCHAR, fit_bpchar)

ROWS: Final = (FIT_NUMERIC, FIT_VARCHAR, FIT_BPCHAR)
