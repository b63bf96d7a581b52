"""Short forms for rows of the function table."""

from collections.abc import Callable
from typing import TypeAlias

from evertide.expr.functions.row import Knowledge, ScalarFunction
from evertide.vocab.datum import Datum
from evertide.vocab.errors import SqlError, encode_error
from evertide.vocab.sql_type import SqlType

Types: TypeAlias = tuple[SqlType, ...]
Body: TypeAlias = Callable[..., Datum]


def total(
    name: str, arguments: Types, result: SqlType, body: Body, spark: str | None = None
) -> ScalarFunction:
    """A strict function that never fails."""
    return ScalarFunction(name, arguments, result, body, spark=spark)


def looked_up(
    name: str, arguments: Types, result: SqlType, unbound: Body, *, fallible: bool = False
) -> ScalarFunction:
    """A strict function that answers from the catalog; `unbound` is its body without one."""
    return ScalarFunction(
        name, arguments, result, unbound, fallible=fallible, knowledge=Knowledge.CATALOG
    )


def partial(name: str, arguments: Types, result: SqlType, body: Body) -> ScalarFunction:
    """A strict function that fails for some arguments, and that Spark cannot compute."""
    return ScalarFunction(name, arguments, result, body, fallible=True)


def guarded(
    name: str,
    arguments: Types,
    result: SqlType,
    body: Body,
    *,
    spark: str,
    fails: str,
    error: SqlError,
) -> ScalarFunction:
    """A strict function whose lowering is NULL exactly where arguments are NULL or it fails.

    `fails` may be NULL for NULL arguments: that is not true either.
    """
    return ScalarFunction(
        name,
        arguments,
        result,
        body,
        fallible=True,
        spark=spark,
        spark_error=fails,
        error=encode_error(error),
    )


def null_if_failed(
    name: str, arguments: Types, result: SqlType, body: Body, spark: str, error: SqlError
) -> ScalarFunction:
    """A guarded function whose lowering is itself the test: it gives NULL where it fails."""
    given = " AND ".join(f"{{{index}}} IS NOT NULL" for index in range(len(arguments)))
    fails = f"{given} AND ({spark}) IS NULL"
    return guarded(name, arguments, result, body, spark=spark, fails=fails, error=error)
