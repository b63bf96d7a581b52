"""Goal: what runs for a view that changes hands follows from the catalog: the staged dataflow, both
while it is handing over, and afterwards the new one; none of them is ever another than before."""

from dataclasses import replace

from evertide.controller.follow import Follower, running
from evertide.controller.storage import collection_of
from evertide.dataflow.description import DataflowDescription, Import, ShardExport, Takeover
from evertide.vocab.ids import ClusterId, GlobalId
from tests.controller.replaced import apply, finish, item, stage, two_clusters
from tests.sql.database import Database

DEFAULT, OTHER = ClusterId("u1"), ClusterId("u2")
READS_U = "SELECT a, b FROM u WHERE a > 3"


def dataflows(
    database: Database, *cluster_ids: ClusterId, follower: Follower | None = None
) -> dict[GlobalId, DataflowDescription]:
    return (follower or Follower()).dataflows(database.snapshot, cluster_ids)


def takeover(description: DataflowDescription) -> Takeover | None:
    assert isinstance(description.export, ShardExport)
    return description.export.takeover


def bare(description: DataflowDescription) -> DataflowDescription:
    """Without what may change while it runs."""
    export, imports = description.export, tuple(map(without_origin, description.imports))
    if isinstance(export, ShardExport):
        export = replace(export, takeover=None)
    return replace(description, export=export, imports=imports)


def without_origin(given: Import) -> Import:
    return replace(given, derived=None)


def collection(database: Database, name: str) -> Import:
    found = collection_of(item(database, name), database.snapshot)
    assert found is not None
    return found


def writers(given: Import) -> tuple[GlobalId, tuple[GlobalId, ...]]:
    """Under which version a view follows from what."""
    assert given.derived is not None
    return given.derived.writer, tuple(below.global_id for below in given.derived.inputs)


def test_a_staged_one_runs_where_it_was_staged_and_may_not_write() -> None:
    database = two_clusters()
    before = dataflows(database, DEFAULT)
    r = stage(database, "r", "m", READS_U, "other")
    m = item(database, "m")
    (found,) = dataflows(database, OTHER).values()
    assert (found.global_id, found.cluster_id) == (r.global_id, OTHER)
    assert isinstance(found.export, ShardExport)
    assert found.export.shard_id == m.shard_id
    assert takeover(found) == Takeover(collection(database, "m"), may_write=False)
    assert [i.global_id for i in found.imports] == [item(database, "u").global_id]
    assert dataflows(database, DEFAULT) == before
    assert all(takeover(d) is None for d in before.values() if isinstance(d.export, ShardExport))


def test_while_handing_over_both_run_each_in_its_cluster() -> None:
    database = two_clusters()
    first = dataflows(database, DEFAULT)[item(database, "m").global_id]
    r = stage(database, "r", "m", READS_U, "other")
    staged = dataflows(database, OTHER)[r.global_id]
    old_collection = collection(database, "m")
    apply(database, "m", "r", forward_time=True)
    old = dataflows(database, DEFAULT)
    assert old[first.global_id] == first
    assert r.global_id not in old
    (new,) = dataflows(database, OTHER).values()
    assert bare(new) == bare(staged)
    assert takeover(new) == Takeover(old_collection, may_write=True, forward_time=True)
    both = dataflows(database, DEFAULT, OTHER)
    assert {first.global_id, r.global_id} <= set(both)


def test_afterwards_only_the_new_one_runs_and_the_shard_is_its_own() -> None:
    database = two_clusters()
    first = item(database, "m").global_id
    r = stage(database, "r", "m", READS_U, "other")
    staged = dataflows(database, OTHER)[r.global_id]
    apply(database, "m", "r")
    finish(database, "m")
    found = dataflows(database, DEFAULT, OTHER)
    assert first not in found
    assert bare(found[r.global_id]) == bare(staged)
    assert takeover(found[r.global_id]) is None


def test_a_follower_that_saw_it_all_knows_what_a_new_one_knows() -> None:
    """Goal: a restart changes nothing. And what runs is only ever told what may change."""
    database, follower = two_clusters(), Follower()
    known: dict[GlobalId, DataflowDescription] = {}

    def look() -> None:
        found = dataflows(database, DEFAULT, OTHER, follower=follower)
        assert found == dataflows(database, DEFAULT, OTHER)
        assert list(found) == list(dataflows(database, DEFAULT, OTHER))
        for global_id in found.keys() & known.keys():
            assert bare(found[global_id]) == bare(known[global_id])
        known.update(found)

    look()
    for query in (READS_U, "SELECT a, b, a + b AS c FROM t"):
        stage(database, "r", "m", query, "other")
        look()
        apply(database, "m", "r")
        look()
        finish(database, "m")
        look()


def test_dependants_keep_the_version_that_they_were_planned_against() -> None:
    database = two_clusters()
    m = item(database, "m")
    r = stage(database, "r", "m", "SELECT a, b, a + b AS c FROM t")
    apply(database, "m", "r")
    finish(database, "m")
    found = dataflows(database, DEFAULT)
    for reader in ("n", "m_a"):
        description = found[item(database, reader).global_id]
        (read,) = description.imports
        assert (read.global_id, read.desc.names) == (m.global_id, ("a", "b"))
        assert read.shard_id == m.shard_id
        assert description.export.desc.names == ("a", "b")
        assert writers(read) == (r.global_id, (item(database, "t").global_id,))
    database.run("CREATE MATERIALIZED VIEW late AS SELECT * FROM m; CREATE INDEX m_c ON m (c)")
    found = dataflows(database, DEFAULT)
    for reader in ("late", "m_c"):
        (read,) = found[item(database, reader).global_id].imports
        assert (read.global_id, read.desc.names) == (r.global_id, ("a", "b", "c"))


def test_a_view_follows_from_what_the_version_with_its_shard_reads() -> None:
    database = two_clusters()
    m, t, u = (item(database, name) for name in ("m", "t", "u"))
    assert writers(collection(database, "m")) == (m.global_id, (t.global_id,))
    r = stage(database, "r", "m", READS_U)
    assert writers(collection(database, "m")) == (m.global_id, (t.global_id,))
    apply(database, "m", "r")
    assert collection(database, "m").global_id == r.global_id
    assert writers(collection(database, "m")) == (m.global_id, (t.global_id,))
    below = collection(database, "n").derived
    assert below is not None
    assert writers(below.inputs[0]) == (m.global_id, (t.global_id,))
    finish(database, "m")
    assert writers(collection(database, "m")) == (r.global_id, (u.global_id,))


def test_a_view_by_time_is_one_as_long_as_that_version_has_its_shard() -> None:
    database = two_clusters()
    stage(database, "r", "m", "SELECT a, b FROM t WHERE a > mz_now()")
    seen = []
    for step in (None, apply, finish):
        if step is apply:
            apply(database, "m", "r")
        elif step is finish:
            finish(database, "m")
        derived = collection(database, "m").derived
        assert derived is not None
        seen.append(derived.by_time)
    assert seen == [False, False, True]


def test_inputs_come_before_users_though_they_are_younger() -> None:
    database = two_clusters()
    database.run("CREATE MATERIALIZED VIEW young AS SELECT a, b FROM u")
    r = stage(database, "r", "m", "SELECT a, b FROM young")
    apply(database, "m", "r")
    names = ["young", "m", "n", "m_a"]
    order = [item(database, name).global_id for name in names]
    found = [g for g in dataflows(database, DEFAULT) if g in order]
    assert found == order
    assert item(database, "m").global_id == r.global_id


def test_what_a_cluster_runs_is_told_with_the_version_that_it_runs() -> None:
    """Whoever waits for a cluster's new replicas waits for these, and no others."""
    database = two_clusters()
    old = item(database, "m")
    r = stage(database, "r", "m", READS_U, "other")
    apply(database, "m", "r")
    for cluster_id, version in ((DEFAULT, old.global_id), (OTHER, r.global_id)):
        found = {each.global_id for each in running(database.snapshot, cluster_id)}
        assert found == set(dataflows(database, cluster_id))
        assert found & {old.global_id, r.global_id} == {version}


def test_a_replacement_is_read_as_a_plain_view() -> None:
    database = two_clusters()
    r = stage(database, "r", "m", READS_U)
    assert collection_of(r, database.snapshot) is None
    database.run("INSERT INTO u VALUES (1, 1), (5, 6)")
    assert database.query("SELECT * FROM r") == [(5, 6)]
