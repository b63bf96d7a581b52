"""Spark SQL gives what the interpreter gives, for every relation, errors included."""

from pathlib import Path

from evertide.expr.interpret import evaluate
from evertide.expr.scalar import Literal
from evertide.expr.temporal import MZ_NOW
from evertide.expr.transform.substitute import Bindings, substitute
from evertide.persist.spark_input import PartFiles
from evertide.spark.building.hydrate import recompute
from evertide.spark.jobs import SparkJobs
from evertide.spark.tables import updates_to_table, write_parquet
from evertide.vocab.sql_type import MZ_TIMESTAMP
from evertide.vocab.timestamp import Timestamp
from tests.spark.random_plans import RandomCase, added_up, random_case
from tests.support.seeds import seeds

AS_OF = Timestamp(6)
# Spark's optimiser took wrong columns of a shared query for these; see session.py.
SEEDS_THAT_MISLED_SPARK = (5046, 5051)


@seeds([*range(10), *SEEDS_THAT_MISLED_SPARK], deep=range(10, 200), fresh=50)
def test_random_relations(spark_jobs: SparkJobs, tmp_path: Path, seed: int) -> None:
    """Method: half of each collection's updates lie in a part, half inline."""
    agree(random_case(seed), spark_jobs, tmp_path)


@seeds(range(100, 106), deep=range(106, 160), fresh=20)
def test_table_functions_and_times(spark_jobs: SparkJobs, tmp_path: Path, seed: int) -> None:
    case = random_case(seed, flat=seed % 3 < 2, temporal=seed % 3 > 0)
    agree(case, spark_jobs, tmp_path)


def agree(case: RandomCase, spark_jobs: SparkJobs, tmp_path: Path) -> None:
    imports = {}
    for global_id, (types, updates) in case.collections.items():
        middle = len(updates) // 2
        path = tmp_path / f"{global_id}.parquet"
        write_parquet(updates_to_table(types, updates[:middle]), path)
        imports[global_id] = PartFiles((path,), tuple(updates[middle:]))
    now: Bindings = {MZ_NOW: Literal(AS_OF, MZ_TIMESTAMP)}
    bound = substitute(case.relation, now)
    expected = evaluate(bound, lambda g: case.contents(g, AS_OF))
    found = recompute(spark_jobs, case.relation, imports, AS_OF)
    types = case.relation.types
    assert added_up(types, found.rows, found.errors) == added_up(
        types, expected.rows, expected.errors
    )
