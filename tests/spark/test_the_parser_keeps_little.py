"""Goal: what Spark's parser learns from texts never fills the heap, however many shapes they have.

Method: texts whose shapes differ, so that each teaches it something.
"""

import random
from itertools import pairwise

import pytest
from pyspark.sql import SparkSession

from evertide.spark.conf import PARSER_SHARE

pytestmark = pytest.mark.spark

TEXTS = 400
DEPTH = 6


def _text(rng: random.Random, depth: int) -> str:
    if depth == 0:
        return rng.choice(("a", "1", "'x'", "NULL", "DATE '2020-01-01'", "1.5D"))
    one, two, three = (_text(rng, depth - rng.randint(1, depth)) for _ in range(3))
    return rng.choice(
        (
            f"({one} + {two})", f"CASE WHEN {one} THEN {two} ELSE {three} END", f"f({one}, {two})",
            f"CAST({one} AS STRING)", f"({one} BETWEEN {two} AND {three})", f"{one}[{two}]",
            f"({one} IN ({two}, {three}))", f"(NOT {one} IS NULL)", f"array({one})",
            f"(SELECT {one} FROM t WHERE {two})", f"transform({one}, x -> {two})",
        )
    )  # fmt: skip


def test_what_was_learnt_is_forgotten_in_time(spark_session: SparkSession) -> None:
    jvm = spark_session.sparkContext._jvm
    assert jvm is not None
    keeper = getattr(jvm, "org.apache.spark.sql.catalyst.parser.AbstractParser$").__getattr__(
        "MODULE$"
    )
    heap = jvm.java.lang.Runtime.getRuntime().maxMemory()
    allowed = heap * PARSER_SHARE // 100 // keeper.BYTES_PER_DFA_STATE()
    parser = spark_session._jsparkSession.sessionState().sqlParser()
    rng = random.Random(11)
    seen = []
    for _ in range(TEXTS):
        parser.parsePlan(f"SELECT {_text(rng, DEPTH)} AS a FROM t")
        seen.append(keeper.getDFACacheNumStates())
    assert max(seen) <= allowed
    assert any(later < earlier for earlier, later in pairwise(seen))
