"""A session begins with the cluster that somebody named, or with the first there is."""

from evertide.adapter.active_cluster import with_cluster
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.objects import VirtualCluster
from evertide.catalog.ops import CreateClusterOp, DropClusterOp
from evertide.catalog.snapshot import Snapshot
from tests.catalog.samples import DEFAULT, after, new_snapshot


def without_default(*clusters: str) -> Snapshot:
    created = [
        CreateClusterOp(name=name, owner=DEFAULT_ROLE_ID, variant=VirtualCluster())
        for name in clusters
    ]
    return after(new_snapshot(), *created, DropClusterOp(DEFAULT))


def test_the_first_cluster_is_chosen_while_it_is_there() -> None:
    assert with_cluster({}, new_snapshot()) == {}


def test_what_somebody_names_is_taken_even_if_it_is_not_there() -> None:
    named = {"cluster": "mine"}
    assert with_cluster(named, new_snapshot()) == named
    assert with_cluster(named, without_default("quickstart")) == named


def test_where_the_first_was_dropped_the_peers_first_is_taken() -> None:
    assert with_cluster({}, without_default("other", "quickstart")) == {"cluster": "quickstart"}
    assert with_cluster({}, without_default("other")) == {}
