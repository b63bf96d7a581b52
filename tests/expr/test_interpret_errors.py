"""Goal: an error on one side of a difference cannot hide one on the other."""

from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.table import by_signature
from evertide.expr.interpret import evaluate
from evertide.expr.relation import Constant, Map, Negate, Project, Union
from evertide.expr.scalar import Call, ColumnRef, Literal
from evertide.vocab.sql_type import INT4

DIVIDE = by_signature("/(integer,integer)")


def test_equal_errors_on_both_sides_of_a_difference_are_told() -> None:
    assert isinstance(DIVIDE, ScalarFunction)
    failing = Map(
        Constant((((0,), 1),), (INT4,)),
        (Call(DIVIDE, (Literal(1, INT4), ColumnRef(0, INT4)), INT4),),
    )
    quotient = Project(failing, (1,))
    found = evaluate(Union((quotient, Negate(quotient))), lambda _: (_ for _ in ()).throw(KeyError))
    assert sum(count for _, count in found.errors) == 2
