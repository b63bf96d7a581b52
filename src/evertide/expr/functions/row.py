"""What one row of the function table says."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from evertide.vocab.datum import Datum, Row
from evertide.vocab.sql_type import SqlType


class Knowledge(Enum):
    """What a function's answer follows from."""

    ARGUMENTS = "its arguments"  # so it may run anywhere, and once for all
    CATALOG = "the catalog"  # whoever runs the statement binds its body to a snapshot first
    SNAPSHOT = "one snapshot"  # bound: it runs in this process and for this statement only


@dataclass(frozen=True, slots=True, eq=False)
class ScalarFunction:
    """A function, operator or cast for exact argument types. Rows are unique: compared by identity.

    `body` gets datums and returns one or raises SqlError. A strict function is not called when an
    argument is NULL: the result is NULL. An infallible one never raises.

    `spark` is Spark SQL text over the physical encodings (persist/coding/encoding.py) with {0}, {1}
    for the arguments. It must give the body's value for every argument for which the body gives
    one, and NULL, not a failure, where the body raises; `spark_error` is then a condition over the
    same arguments that is true exactly there, and `error` the error raised (one per function).
    None: executors that cannot call Python directly use a UDF around `body`.
    """

    name: str
    arguments: tuple[SqlType, ...]
    result: SqlType
    body: Callable[..., Datum]
    strict: bool = True
    fallible: bool = False
    spark: str | None = None
    spark_error: str | None = None
    error: str | None = None  # encode_error() text, with spark_error only
    # The last argument may be given any number of times, once or more.
    variadic: bool = False
    oid: int = 0
    knowledge: Knowledge = Knowledge.ARGUMENTS

    @property
    def signature(self) -> str:
        """Name and argument types: unique in the table, used to print and to find a row again."""
        inside = ",".join(str(t) for t in self.arguments)
        return f"{self.name}({inside}{'...' if self.variadic else ''})"

    def __repr__(self) -> str:
        return self.signature


@dataclass(frozen=True, slots=True, eq=False)
class TableFunction:
    """A function of rows for exact argument types; `body` gives its rows in their order.

    A strict one is not called when an argument is NULL: then it has no rows.
    """

    name: str
    arguments: tuple[SqlType, ...]
    columns: tuple[tuple[str, SqlType], ...]
    body: Callable[..., Iterable[Row]]
    strict: bool = True

    @property
    def signature(self) -> str:
        """Name and argument types: unique among table functions."""
        return f"{self.name}({','.join(str(t) for t in self.arguments)})"

    def __repr__(self) -> str:
        return self.signature


class Accumulator(Enum):
    """How an aggregate is maintained when rows come and go.

    Additive ones keep exact sums and counts per group; the others look at the group's rows again.
    """

    COUNT = "count"  # of non-NULL arguments, or of rows for count(*)
    SUM_INT = "sum of integers"  # an exact Python integer
    SUM_NUMERIC = "sum of numerics"  # an exact integer at a fixed scale, plus counts of specials
    SUM_FLOAT = "sum of floats"  # an exact fixed-point integer, plus counts of NaN and infinities
    ROWS = "rows of the group"


@dataclass(frozen=True, slots=True, eq=False)
class AggregateFunction:
    """An aggregate for an exact argument type; count(*) has none.

    Additive (accumulator is not ROWS): `finish(total, count)` turns the exact sum over non-NULL
    arguments and their count into the result. For SUM_FLOAT and SUM_NUMERIC `total` is the exact
    sum already rounded once to float, or Decimal; where no argument is non-NULL, `count` is 0.

    ROWS: `finish_rows(values)` gets the group's non-NULL argument datums, each repeated by its
    multiplicity, sorted by SQL order and then by encoding, so that the result is definite.
    """

    name: str
    arguments: tuple[SqlType, ...]
    result: SqlType
    accumulator: Accumulator
    finish: Callable[..., Datum] | None = None
    finish_rows: Callable[..., Datum] | None = None
    oid: int = 0

    @property
    def signature(self) -> str:
        """Name and argument types."""
        return f"{self.name}({','.join(str(t) for t in self.arguments) or '*'})"

    def __repr__(self) -> str:
        return self.signature
