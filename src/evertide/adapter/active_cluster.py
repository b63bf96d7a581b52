"""Which cluster a session begins with, and what it is told where there is none of that name."""

from collections.abc import Mapping
from typing import Final

from evertide.adapter.session import Session
from evertide.catalog.durable.bootstrap import DEFAULT_CLUSTER
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.errors import Notice

# What the peer calls the first cluster: clients made for it rely on its being chosen.
PEERS_FIRST: Final = "quickstart"


def with_cluster(defaults: Mapping[str, str], snapshot: Snapshot) -> dict[str, str]:
    """The defaults of a session, with the first cluster that it finds where nobody names one."""
    found = dict(defaults)
    if "cluster" in found or snapshot.cluster_named(DEFAULT_CLUSTER) is not None:
        return found
    if snapshot.cluster_named(PEERS_FIRST) is not None:
        found["cluster"] = PEERS_FIRST
    return found


def note_missing(session: Session, snapshot: Snapshot) -> None:
    """A session may begin without a cluster: system relations need none."""
    if snapshot.cluster_named(session.cluster) is None:
        message = f'default cluster "{session.cluster}" does not exist'
        hint = "Set the default cluster for the role, or choose one by SET CLUSTER = <name>."
        session.notices.append(Notice("NOTICE", "MZ005", message, hint=hint))
