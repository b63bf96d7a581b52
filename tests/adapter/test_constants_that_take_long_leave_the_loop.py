"""Functions of very large constants are not called where every session waits for it."""

import asyncio
import threading

import pytest

from evertide.adapter.reading.at_leisure import worked_out
from evertide.adapter.reading.plans import ReadPlan, ReadPlans
from evertide.adapter.reading.question import Read
from evertide.adapter.reading.read import compute_rows
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.table import by_signature
from evertide.expr.heavy import HEAVY, has_heavy, is_heavy
from evertide.expr.interpret import Collection, evaluate
from evertide.expr.relation import Constant, Filter, Finishing, Map, Relation
from evertide.expr.scalar import Call, Literal, Parameter, Scalar
from evertide.expr.transform.passes import optimize, optimize_at_leisure
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.datum import Datum
from evertide.vocab.errors import DataError, InvalidTextRepresentation
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import BOOL, INT4, INT8, TEXT
from tests.expr.sample import col, table
from tests.sql.database import new_database

HERE = ScalarFunction("here", (TEXT,), INT8, lambda _: threading.get_ident())
ONE_ROW = Constant((((), 1),), ())
LARGE = HEAVY + 1


def repeated(count: Scalar) -> Scalar:
    repeat = by_signature("repeat(text,integer)")
    assert isinstance(repeat, ScalarFunction)
    return Call(repeat, (Literal("x", TEXT), count), TEXT)


def here(count: Scalar) -> Scalar:
    return Call(HERE, (repeated(count),), INT8)


def planned(relation: Relation) -> ReadPlan:
    return ReadPlans().plan(relation, new_database().snapshot, None)


def the_value(relation: Relation) -> Datum:
    nothing: dict[GlobalId, Collection] = {}
    ((row, _),) = evaluate(relation, nothing.__getitem__).rows
    return row[0]


@pytest.mark.parametrize(
    "relation",
    [
        Map(ONE_ROW, (here(Literal(LARGE, INT4)),)),
        Map(Constant((((("x" * LARGE),), 1),), (TEXT,)), (Call(HERE, (col(0, TEXT),), INT8),)),
    ],
    ids=["a call", "rows"],
)
async def test_a_large_constant_is_worked_out_on_a_thread(relation: Relation) -> None:
    found = await worked_out(planned(relation), (), {})
    assert isinstance(found, Constant)
    assert found.rows[0][0][-1] != threading.get_ident()


async def test_a_small_one_is_worked_out_at_once() -> None:
    plan = planned(Map(ONE_ROW, (here(Literal(3, INT4)),)))
    assert await worked_out(plan, (), {}) is None
    assert the_value(plan.relation) == threading.get_ident()


@pytest.mark.parametrize(("count", "leaves"), [(3, False), (LARGE, True)])
async def test_parameters_decide(count: int, leaves: bool) -> None:
    parameter, given = Parameter(0, INT4), Literal(count, INT4)
    plan = planned(Map(ONE_ROW, (here(parameter),)))
    found = await worked_out(plan, (given,), {parameter: given})
    assert (found is not None) == leaves
    assert found is None or the_value(found) != threading.get_ident()


async def test_who_waits_for_it_can_be_told_to_stop() -> None:
    """Were it called on the loop, nothing else could happen until it is done."""
    go_on, begun = threading.Event(), threading.Event()

    def wait(_: str) -> int:
        begun.set()
        return int(go_on.wait(60))

    call = Call(ScalarFunction("wait", (TEXT,), INT8, wait), (Literal("x" * LARGE, TEXT),), INT8)
    waiting = asyncio.create_task(worked_out(planned(Map(ONE_ROW, (call,))), (), {}))
    assert await asyncio.to_thread(begun.wait, 60)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not go_on.is_set()
    go_on.set()


async def test_a_condition_over_a_table_is_worked_out_once_and_not_for_each_row() -> None:
    equal = by_signature("=(bigint,bigint)")
    assert isinstance(equal, ScalarFunction)
    condition = Call(equal, (col(0), here(Literal(LARGE, INT4))), BOOL)
    relation = Filter(table("t", INT8), (condition,))
    assert has_heavy(optimize(relation))
    found = await worked_out(planned(relation), (), {})
    assert found is not None
    assert not has_heavy(found)
    assert not has_heavy(optimize_at_leisure(relation))


async def test_what_fails_fails_on_a_thread() -> None:
    threads: list[int] = []

    def fail(_: str) -> int:
        threads.append(threading.get_ident())
        raise InvalidTextRepresentation("no")

    function = ScalarFunction("fail", (TEXT,), INT8, fail, fallible=True)
    relation = optimize(Map(ONE_ROW, (Call(function, (Literal("x" * LARGE, TEXT),), INT8),)))
    read = Read(relation, Finishing(), new_database().snapshot, None, {}, heavy=True)
    with pytest.raises(DataError):
        await compute_rows(read, {})
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("target", ["map[text=>int]", "int list"])
def test_a_long_text_of_a_list_or_map_is_not_read_while_planning(target: str) -> None:
    parts = ",".join(f"k{i}=>{i}" if "map" in target else str(i) for i in range(HEAVY // 4))
    database = new_database()
    sql = f"SELECT '{{{parts}}}'::{target}"
    plan = database.plan(sql)
    assert isinstance(plan, SelectPlan)
    relation = optimize(plan.relation)
    assert not isinstance(relation, Constant)
    ((found,),) = database.query(sql)
    assert isinstance(found, tuple)
    assert len(found) == HEAVY // 4


def test_plans_with_large_values_are_not_kept() -> None:
    plans, snapshot = ReadPlans(), new_database().snapshot
    for count, kept in ((3, True), (LARGE, False)):
        relation = Map(ONE_ROW, (repeated(Literal(count, INT4)),))
        first = plans.plan(relation, snapshot, None)
        assert (plans.plan(relation, snapshot, None) is first) == kept


@pytest.mark.parametrize(
    ("datum", "heavy"),
    [
        ("x" * HEAVY, False), ("x" * LARGE, True), (b"x" * LARGE, True), ((1,) * LARGE, True),
        (("x" * (HEAVY // 2),) * 3, True), ((("k", ("x",) * HEAVY),), True), (10**9, False),
        ((("k", None),), False), (None, False),
    ],
)  # fmt: skip
def test_what_a_value_holds_counts(datum: Datum, heavy: bool) -> None:
    assert is_heavy(datum) == heavy
