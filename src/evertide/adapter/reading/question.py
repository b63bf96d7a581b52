"""What is asked of a read, and the choices that are made for it."""

from collections.abc import Mapping
from dataclasses import dataclass

from evertide.adapter.reading.ahead import Early
from evertide.adapter.reading.leaves import BuiltinLeaf, Leaf, ShardLeaf
from evertide.catalog.snapshot import Snapshot
from evertide.expr.relation import Finishing, Relation
from evertide.expr.scalar import Literal, Parameter, Scalar, SessionCall
from evertide.vocab.ids import ClusterId, GlobalId


@dataclass(frozen=True, slots=True)
class Read:
    """A query with every choice made but its timestamp."""

    relation: Relation
    finishing: Finishing
    snapshot: Snapshot
    cluster_id: ClusterId | None
    leaves: Mapping[GlobalId, Leaf]
    # How long its statement waits first, in seconds.
    pause_s: float = 0.0
    # There are values in it that take long to work with.
    heavy: bool = False
    # What was found out before, where a view is all that is read.
    early: Early | None = None

    @property
    def shard_leaves(self) -> list[ShardLeaf]:
        return [leaf for leaf in self.leaves.values() if isinstance(leaf, ShardLeaf)]

    @property
    def needs_timestamp(self) -> bool:
        """Constants and system relations are the same at every time."""
        return any(not isinstance(leaf, BuiltinLeaf) for leaf in self.leaves.values())


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, before any choice."""

    relation: Relation
    finishing: Finishing
    parameters: tuple[Literal, ...] = ()

    @property
    def bindings(self) -> dict[Parameter | SessionCall, Scalar]:
        """What stands for each parameter."""
        return {Parameter(i, literal.type): literal for i, literal in enumerate(self.parameters)}
