"""The catalog by itself, without a store: what a statement and an opening cost in a large one."""

from bench.figure import Figure, alternating
from bench.place import Place
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID, bootstrap_updates
from evertide.catalog.durable.codec import decode_object, encode_object
from evertide.catalog.objects import CatalogUpdate, stored_columns
from evertide.catalog.ops import CreateItemOp, NewTable
from evertide.catalog.snapshot import Snapshot, all_objects
from evertide.catalog.transact import transact
from evertide.vocab.datum import Row
from evertide.vocab.ids import EnvironmentId, SchemaId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8, TEXT
from evertide.vocab.timestamp import Timestamp, step_forward

FEW, MANY = 10, 10_000
AT_ONCE = 500
REPETITIONS = 200
LOADS = 5
# CREATE TABLE among many objects may cost this many times what it costs among few.
STATEMENT_RATIO = 2.0
LOAD_MS = 500.0

DESC = relation_desc(("id", INT8), ("name", TEXT), ("amount", INT8))


def measure(place: Place) -> list[Figure]:
    few, many = _filled(FEW), _filled(place.scaled(MANY))
    return [_statement(place, few, many), _load(place, many)]


def _statement(place: Place, few: Snapshot, many: Snapshot) -> Figure:
    among_many, among_few = alternating(
        place.scaled(REPETITIONS), lambda: _created(many, "new"), lambda: _created(few, "new")
    )
    return Figure(
        name=f"decide CREATE TABLE, {place.scaled(MANY):,} objects",
        unit="ms",
        runs=among_many,
        target=STATEMENT_RATIO * among_few.median,
        baseline_name=f"{FEW} objects",
        baseline=among_few,
    )


def _load(place: Place, many: Snapshot) -> Figure:
    rows: list[Row] = [encode_object(found) for found in all_objects(many)]
    (loaded,) = alternating(LOADS, lambda: _loaded(rows))
    return Figure(
        name=f"decode and load {place.scaled(MANY):,} objects",
        unit="ms",
        runs=loaded,
        target=LOAD_MS,
    )


def _loaded(rows: list[Row]) -> Snapshot:
    updates = [CatalogUpdate(decode_object(row), 1) for row in rows]
    return Snapshot().apply(updates, Timestamp(1))


def _created(snapshot: Snapshot, *names: str) -> Snapshot:
    """Decided and applied, as a statement does."""
    ops = [
        CreateItemOp(
            schema_id=SchemaId("u1"),
            name=name,
            owner=DEFAULT_ROLE_ID,
            create_sql=f'CREATE TABLE "materialize"."public"."{name}" (id int8, name text)',
            columns=stored_columns(DESC),
            definition=NewTable(),
        )
        for name in names
    ]
    result = transact(snapshot, ops, now_ms=1, user="bench")
    return snapshot.apply(result.updates, step_forward(snapshot.upper))


def _filled(count: int) -> Snapshot:
    snapshot = Snapshot().apply(bootstrap_updates(EnvironmentId("bench"), 1), Timestamp(1))
    for first in range(0, count, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, count))
        snapshot = _created(snapshot, *(f"t{number}" for number in numbers))
    return snapshot
