"""Results that Spark writes as files hold the interpreter's rows, in the same order."""

import random
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from threading import Event

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.expr.codec import encode_relation
from evertide.expr.group_rows import Counted
from evertide.expr.interpret import evaluate, in_finishing_order
from evertide.expr.relation import Filter, Get, OrderKey, Project, Relation, Types
from evertide.expr.row_key import in_order
from evertide.expr.scalar import Literal
from evertide.expr.temporal import MZ_NOW
from evertide.expr.transform.substitute import Bindings, substitute
from evertide.persist.coding.batch import from_payload
from evertide.persist.faults import Corrupt
from evertide.persist.spark_input import PartFiles
from evertide.spark.building.result_files import BATCH_BYTES, FrameWriter, read_frames
from evertide.spark.bulk.first_rows import net_first
from evertide.spark.bulk.jobs import FIRST_FILE, run_select, write_inputs
from evertide.spark.bulk.protocol import DoneEvent, SelectJob
from evertide.spark.jobs import SparkJobs
from evertide.spark.tables import desc_of, updates_to_table, write_parquet
from evertide.vocab.errors import SqlError, decode_error
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import BOOL, FLOAT8, INT8, MZ_TIMESTAMP, TEXT
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.spark.random_plans import RandomCase, random_case

AS_OF = Timestamp(6)
TABLE = GlobalId("u1")


def select(
    jobs: SparkJobs,
    directory: Path,
    case: RandomCase,
    order: tuple[OrderKey, ...] = (),
    most: int | None = None,
) -> DoneEvent:
    """Half of each collection's updates lie in a part, half inline."""
    imports = {}
    for global_id, (types, updates) in case.collections.items():
        middle = len(updates) // 2
        path = directory / f"{global_id}.parquet"
        write_parquet(updates_to_table(types, updates[:middle]), path)
        imports[global_id] = PartFiles((path,), tuple(updates[middle:]))
    results = directory / "results"
    results.mkdir()
    job = SelectJob(
        1,
        str(results),
        encode_relation(case.relation),
        write_inputs(delta_plan(case.relation), imports),
        AS_OF,
        tuple((key.column, key.descending, key.nulls_first) for key in order),
        most,
    )
    return run_select(jobs, job, Event())


def rows_of(done: DoneEvent, directory: Path, types: Types) -> list[Counted]:
    """In the order in which they are handed out."""
    rows: list[Counted] = []
    for file in done.files:
        payloads = list(read_frames(directory / "results" / file.name))
        updates = [u for payload in payloads for u in from_payload(desc_of(types), payload)]
        assert (file.batches, file.rows) == (len(payloads), len(updates))
        assert all(u.error is None and u.ts == AS_OF and u.diff > 0 for u in updates)
        rows += [(u.row, u.diff) for u in updates]
    return rows


def expanded(rows: Sequence[Counted]) -> list[str]:
    return [repr(row) for row, count in rows for _ in range(count)]


def agrees(jobs: SparkJobs, directory: Path, case: RandomCase, seed: int) -> None:
    types, choose = case.relation.types, random.Random(seed)
    count = choose.randrange(min(len(types), 3) + 1)
    order = tuple(
        OrderKey(column, choose.random() < 0.5, choose.random() < 0.5)
        for column in choose.sample(range(len(types)), count)
    )
    most = choose.choice([None, 1, 3, 10])
    found = evaluate(case.relation, lambda g: case.contents(g, AS_OF))
    done = select(jobs, directory, case, order, most)
    if done.error is not None:
        assert not done.files
        with pytest.raises(SqlError) as told_error:
            in_finishing_order(found.rows, found.errors, order, types)
        assert str(told_error.value) == str(decode_error(done.error))
        return
    expected = expanded(in_finishing_order(found.rows, found.errors, order, types))
    told = expanded(rows_of(done, directory, types))
    if order:
        assert told[: len(expected) if most is None else most] == expected[:most]
    elif most is None:
        assert sorted(told) == sorted(expected)
    else:
        assert len(told) >= min(most, len(expected))
        left = sorted(expected)
        for row in told:
            left.remove(row)


@pytest.mark.parametrize("seed", range(14))
def test_random_relations(bulk_jobs: SparkJobs, tmp_path: Path, seed: int) -> None:
    agrees(bulk_jobs, tmp_path, random_case(seed), seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(14, 300))
def test_many_random_relations(bulk_jobs: SparkJobs, tmp_path: Path, seed: int) -> None:
    case = random_case(seed, flat=seed % 3 == 0)
    now: Bindings = {MZ_NOW: Literal(AS_OF, MZ_TIMESTAMP)}
    agrees(bulk_jobs, tmp_path, RandomCase(case.collections, substitute(case.relation, now)), seed)


def updated_table(rows: int, seed: int) -> list[Update]:
    """Rows of which a fifth was changed, some twice, some back to what they were, some removed."""
    choose = random.Random(seed)
    updates = []
    for n in range(rows):
        row = (n, choose.choice([None, 0.0, -0.0, float("nan"), 1.5]), f"t{n % 7}")
        updates.append(Update(row, Timestamp(1), choose.choice([1, 1, 1, 2])))
        if choose.random() < 0.2:
            count = updates[-1].diff
            updates.append(Update(row, Timestamp(2), -count))
            if choose.random() < 0.7:
                changed = (n, row[1], "changed")
                updates.append(Update(changed, Timestamp(2), count))
                if choose.random() < 0.4:
                    updates.append(Update(changed, Timestamp(4), -count))
                    updates.append(Update(row, Timestamp(4), count))
    updates.append(Update((1, 1.0, "later"), Timestamp(9), 1))
    choose.shuffle(updates)
    return updates


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", ["all", "some columns", "no column"])
def test_rows_that_were_taken_back_are_not_told(
    bulk_jobs: SparkJobs, tmp_path: Path, seed: int, shape: str
) -> None:
    types = (INT8, FLOAT8, TEXT)
    whole: Relation = Get(TABLE, types)
    columns = {"all": (0, 1, 2), "some columns": (2, 1), "no column": ()}[shape]
    case = RandomCase({TABLE: (types, updated_table(400, seed))}, Project(whole, columns))
    found = evaluate(case.relation, lambda g: case.contents(g, AS_OF))
    expected = in_finishing_order(found.rows, found.errors, (), case.relation.types)
    done = select(bulk_jobs, tmp_path, case)
    told = rows_of(done, tmp_path, case.relation.types)
    assert sorted(expanded(told)) == sorted(expanded(expected))


@pytest.mark.parametrize("seed", range(3))
def test_the_first_rows_are_found_among_those_taken_back(
    bulk_jobs: SparkJobs, tmp_path: Path, seed: int
) -> None:
    """By looking at the first updates, and where these do not tell by adding up all."""
    types, order = (INT8, FLOAT8, TEXT), (OrderKey(2), OrderKey(1, descending=True))
    case = RandomCase({TABLE: (types, updated_table(1_500, seed))}, Get(TABLE, types))
    found = evaluate(case.relation, lambda g: case.contents(g, AS_OF))
    expected = expanded(in_finishing_order(found.rows, found.errors, order, types))
    for most in (0, 7, 1_200):
        directory = tmp_path / str(most)
        directory.mkdir()
        done = select(bulk_jobs, directory, case, order, most)
        told = expanded(rows_of(done, directory, types))
        assert told[:most] == expected[:most]
        assert [file.name == FIRST_FILE for file in done.files] == [True]


@pytest.mark.parametrize("seed", range(300))
def test_first_updates_tell_first_rows_or_nothing(seed: int) -> None:
    choose = random.Random(seed)
    order, types = (OrderKey(0, choose.random() < 0.5),), (INT8, TEXT)
    updates = []
    for n in range(choose.randrange(60)):
        row = (n // choose.choice([1, 3]), choose.choice("ab"))
        updates.append(Update(row, AS_OF, choose.choice([1, 2])))
        if choose.random() < choose.choice([0.1, 0.9]):
            updates.append(updates[-1]._replace(diff=-updates[-1].diff))
    expected = in_finishing_order([(u.row, u.diff) for u in updates], (), order, types)
    ranked = in_order([(u.row, u) for u in updates], itemgetter(0), types, order)
    looked_at, most = choose.randrange(1, 40), choose.randrange(12)
    first = [update for _, update in ranked][:looked_at]
    told = net_first(first, looked_at, most, order, types)
    if told is not None:
        assert expanded(told)[:most] == expanded(expected)[:most]
    else:
        assert len(updates) >= looked_at, "whoever has seen all knows"


def test_nothing_is_a_result_too(bulk_jobs: SparkJobs, tmp_path: Path) -> None:
    none = Filter(Get(TABLE, (INT8,)), (Literal(False, BOOL),))
    done = select(bulk_jobs, tmp_path, RandomCase({TABLE: ((INT8,), [])}, none))
    assert done.files == ()


def test_large_rows_are_batches_of_their_own(tmp_path: Path) -> None:
    rows = [Update((n, "x" * (BATCH_BYTES // 2 + n)), AS_OF, 1) for n in range(5)]
    with FrameWriter(tmp_path, "large") as writer:
        writer.write(updates_to_table((INT8, TEXT), rows))
    payloads = list(read_frames(tmp_path / "large"))
    assert writer.written.batches == len(payloads) == 5
    assert max(map(len, payloads)) < BATCH_BYTES
    read = [u for p in payloads for u in from_payload(desc_of((INT8, TEXT)), p)]
    assert sorted(read) == rows


@pytest.mark.parametrize("damage", ["cut", "flipped", "header"])
def test_a_damaged_file_is_never_a_shorter_result(tmp_path: Path, damage: str) -> None:
    with FrameWriter(tmp_path, "file") as writer:
        for n in range(3):
            writer.write(updates_to_table((INT8,), [Update((n,), AS_OF, 1)]))
    path = tmp_path / "file"
    sound = path.read_bytes()
    match damage:
        case "cut":
            path.write_bytes(sound[:-1])
        case "flipped":
            path.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
        case _:
            path.write_bytes(sound + sound[:5])
    with pytest.raises(Corrupt):
        list(read_frames(path))
