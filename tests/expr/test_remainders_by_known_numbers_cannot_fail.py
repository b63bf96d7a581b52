"""What cannot fail for any row is known not to: it may be evaluated anywhere, and once."""

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.expr.compile import compile_scalar
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.table import by_signature
from evertide.expr.relation import Get, Map
from evertide.expr.scalar import Call, ColumnRef, Literal
from evertide.expr.scalar_walk import is_fallible
from evertide.spark.render.relation import ImportView, render_contents
from evertide.spark.render.text import TextBuilder
from evertide.vocab.errors import SqlError
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import INT2, INT4, INT8, SqlType
from evertide.vocab.timestamp import Timestamp

LEAST = {INT2: -(2**15), INT4: -(2**31), INT8: -(2**63)}
TABLE = GlobalId("u1")


def remainder(name: str, sql_type: SqlType, divisor: int | None) -> Call:
    function = by_signature(f"{name}({sql_type},{sql_type})")
    assert isinstance(function, ScalarFunction)
    assert function.fallible, "by zero"
    return Call(function, (ColumnRef(0, sql_type), Literal(divisor, sql_type)), sql_type)


@pytest.mark.parametrize("name", ["%", "mod"])
@pytest.mark.parametrize("sql_type", LEAST, ids=str)
def test_only_zero_fails(name: str, sql_type: SqlType) -> None:
    least = LEAST[sql_type]
    for divisor in (None, 1, -1, 7, least, -least - 1):
        call = remainder(name, sql_type, divisor)
        assert not is_fallible(call)
        evaluate = compile_scalar(call)
        for value in (None, 0, 1, -1, least, -least - 1):
            evaluate((value,))
    zero = remainder(name, sql_type, 0)
    assert is_fallible(zero)
    with pytest.raises(SqlError):
        compile_scalar(zero)((1,))


def test_spark_looks_for_no_error_of_theirs() -> None:
    for divisor, fails in ((7, False), (0, True)):
        plan = delta_plan(Map(Get(TABLE, (INT8,)), (remainder("%", INT8, divisor),)))
        views = {TABLE: ImportView("v", may_fail=False)}
        output = render_contents(TextBuilder(), plan, views, Timestamp(1))[-1]
        assert output.fallible is fails
