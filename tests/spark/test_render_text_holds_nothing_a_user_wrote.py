"""A generated text has no literal and no name of a user's in it, whatever these are."""

from decimal import Decimal

from evertide.dataflow.delta import delta_plan
from evertide.expr.functions.row import AggregateFunction, ScalarFunction
from evertide.expr.functions.table import by_signature
from evertide.expr.relation import AggregateCall, Constant, Filter, Get, Map, Reduce, Types, Union
from evertide.expr.scalar import Call, ColumnRef, Literal
from evertide.spark.render.delta import Tick, kept_positions, render_tick
from evertide.spark.render.relation import ImportView, render_contents
from evertide.spark.render.text import TextBuilder
from evertide.vocab.datum import Datum, Interval
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import BOOL, INT4, INTERVAL, NUMERIC, TEXT, SqlType
from evertide.vocab.timestamp import Timestamp

CANARY = "canary'); DROP VIEW x; -- ${env:PATH}"
NUMBER = 424242
TYPES: Types = (TEXT, INT4, NUMERIC, INTERVAL)


def equal(signature: str, column: int, sql_type: SqlType, datum: Datum) -> Call:
    function = by_signature(signature)
    assert isinstance(function, ScalarFunction)
    return Call(function, (ColumnRef(column, sql_type), Literal(datum, sql_type)), BOOL)


def test_literals_are_parameters_and_names_are_positions() -> None:
    """Method: canaries in literals, constants and ids; none may reach a query or a tick."""
    rows = (((CANARY, NUMBER, Decimal(NUMBER), Interval(NUMBER, NUMBER, NUMBER)), 1),)
    source = Union((Get(GlobalId(CANARY), TYPES), Constant(rows, TYPES)))
    kept = Filter(
        source,
        (
            equal("=(text,text)", 0, TEXT, CANARY),
            equal("=(integer,integer)", 1, INT4, NUMBER),
            equal("=(numeric,numeric)", 2, NUMERIC, Decimal(NUMBER)),
            equal("=(interval,interval)", 3, INTERVAL, Interval(NUMBER, NUMBER, NUMBER)),
        ),
    )
    longest = by_signature("max(text)")
    assert isinstance(longest, AggregateFunction)
    upper = by_signature("upper(text)")
    assert isinstance(upper, ScalarFunction)
    mapped = Map(kept, (Call(upper, (Literal(CANARY, TEXT),), TEXT),))
    calls = (AggregateCall(longest, Literal(CANARY, TEXT)),)
    plan = delta_plan(Reduce(mapped, (ColumnRef(4, TEXT),), calls))

    query, tick = TextBuilder(), TextBuilder()
    views = {GlobalId(CANARY): ImportView("i0", may_fail=True)}
    contents = render_contents(query, plan, views, Timestamp(7))
    histories = {position: ImportView("i1", may_fail=False) for position in kept_positions(plan)}
    span = Timestamp(8), Timestamp(9)
    changes = render_tick(
        tick, Tick(plan, views, histories, *span, as_of=Timestamp(7), with_constants=True)
    )
    for builder, relations in ((query, contents), (tick, changes)):
        text = builder.text(f"SELECT * FROM {relations[-1].name}")
        assert "canary" not in text.lower()
        assert str(NUMBER) not in text
        assert "$" not in text
        assert ";" not in text
        assert CANARY in builder.parameters.values() or builder.functions
