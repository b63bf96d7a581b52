"""Goal: an expression gives on Spark what it gives here, its errors included.

Method: the expressions that tests/expr compares with PostgreSQL. Many run in one job, each for rows
of its own: first those that become Spark's own SQL as a whole, then those that need Python.
"""

from collections.abc import Iterator, Sequence

import pytest

from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.table import by_signature
from evertide.expr.interpret import Collection, evaluate
from evertide.expr.relation import Get, Map, Project, Relation
from evertide.expr.scalar import Call, Case, ColumnRef, Literal, Scalar
from evertide.expr.scalar_walk import shift_columns
from evertide.persist.spark_input import PartFiles
from evertide.spark.building.hydrate import recompute
from evertide.spark.jobs import SparkJobs
from evertide.spark.render.scalar import has_lowering
from evertide.vocab.datum import Row
from evertide.vocab.errors import SqlError
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import BOOL, INT4
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.expr.expression_check import PER_SEED, ROWS
from tests.expr.own_answers import OwnAnswers
from tests.expr.random_expressions import TYPES, Maker
from tests.spark.random_plans import added_up
from tests.support.seeds import seeds

AS_OF = Timestamp(6)
SAMPLES = GlobalId("u1")
PER_JOB = 60
# An expression and the rows that it is asked for.
Asked = tuple[Scalar, Sequence[Row]]
# A column that says whose row it is stands before those of the samples.
COLUMN_TYPES = (INT4, INT4, *TYPES)


# Jobs are dear, so each test takes the expressions of several seeds.
@pytest.mark.timeout(1_800)
@seeds(range(10), deep=[*range(10, 20), *range(1_000, 1_400)], fresh=50, block=10)
def test_random_expressions(spark_jobs: SparkJobs, seeds: Sequence[int]) -> None:
    asked = [one for seed in seeds for one in planned(seed)]
    assert len(asked) > len(seeds) * PER_SEED * 0.95, "nearly every expression can be planned"
    lowered = [one for one in asked if has_lowering((chosen(0, one[0]),))]
    # Nearly all of the odd seeds.
    assert len(seeds) == 1 or len(lowered) > len(asked) * 0.4, "many expressions are Spark's own"
    others = [one for one in asked if not has_lowering((chosen(0, one[0]),))]
    different: list[str] = []
    for batch in [*batches(lowered), *batches(others)]:
        different += differences(spark_jobs, batch)
    assert not different, f"{seeds}\n" + "\n".join(different[:10])


def planned(seed: int) -> Iterator[Asked]:
    maker = Maker(seed)
    own = OwnAnswers([maker.row(number) for number in range(ROWS)])
    for _ in range(PER_SEED):
        expression = maker.expression().text()
        try:
            yield own.scalar(expression)[0], own.rows
        except SqlError:
            continue  # compared elsewhere


def batches(asked: Sequence[Asked]) -> Iterator[list[Asked]]:
    """As many at once as Spark is given as its own SQL; what is not is given by number."""
    batch: list[Asked] = []
    for one in asked:
        longer = [chosen(i, scalar) for i, (scalar, _) in enumerate([*batch, one])]
        alike = has_lowering(longer) == has_lowering(longer[:1])
        if batch and (len(batch) == PER_JOB or not alike):
            yield batch
            batch = []
        batch.append(one)
    if batch:
        yield batch


def chosen(number: int, scalar: Scalar) -> Scalar:
    """The scalar for the rows of this number, NULL for others, which cannot fail then."""
    equal = by_signature("=(integer,integer)")
    assert isinstance(equal, ScalarFunction)
    is_its = Call(equal, (ColumnRef(0, INT4), Literal(number, INT4)), BOOL)
    return Case(((is_its, shift_columns(scalar, 1)),), Literal(None, scalar.type), scalar.type)


def differences(spark_jobs: SparkJobs, asked: Sequence[Asked]) -> Iterator[str]:
    scalars = [scalar for scalar, _ in asked]
    relation = _relation(scalars)
    given = [(number, *row) for number, (_, rows) in enumerate(asked) for row in rows]
    updates = tuple(Update(row, Timestamp(1), 1) for row in given)
    expected = evaluate(relation, lambda _: Collection([(row, 1) for row in given]))
    found = recompute(spark_jobs, relation, {SAMPLES: PartFiles((), updates)}, AS_OF)
    types = relation.types
    ours = added_up(types, expected.rows, expected.errors)
    theirs = added_up(types, found.rows, found.errors)
    for key in ours.keys() ^ theirs.keys():
        whose = "interpreter" if key in ours else "Spark"
        number = _number(key)
        yield f"{whose}: {key}\n  {scalars[number] if number is not None else ''}"


def _relation(scalars: Sequence[Scalar]) -> Relation:
    mapped = Map(
        Get(SAMPLES, COLUMN_TYPES), tuple(chosen(i, scalar) for i, scalar in enumerate(scalars))
    )
    width = len(COLUMN_TYPES)
    return Project(mapped, (0, 1, *range(width, width + len(scalars))))


def _number(key: object) -> int | None:
    """Which expression a row belongs to; an error does not say it."""
    if isinstance(key, tuple) and key[0] == "row" and isinstance(key[1], tuple):
        return key[1][0] if isinstance(key[1][0], int) else None
    return None
