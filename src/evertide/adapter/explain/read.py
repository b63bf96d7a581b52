"""How a SELECT is read: where each source comes from, who computes the rest, and why."""

from dataclasses import asdict, dataclass
from typing import Final

from evertide.adapter.environment import Environment
from evertide.adapter.explain.names import Names
from evertide.adapter.reading.by_replica import RECURSION_RECORDS, SPARK_RECORDS, large, size_of
from evertide.adapter.reading.leaves import (
    BuiltinLeaf,
    HeldLeaf,
    IndexLeaf,
    Leaf,
    ShardLeaf,
    indexes_of,
)
from evertide.adapter.reading.question import Read
from evertide.expr.locality import interpreted_only
from evertide.expr.recursion import is_recursive
from evertide.expr.relation import Finishing
from evertide.vocab.ids import GlobalId

_WHY_INDEX: Final = {
    "index lookup": "the query binds all key columns to values",
    "index lookup (prefix)": "the query binds the first key columns to values",
    "index range": "the query bounds a key column",
}


@dataclass(frozen=True, slots=True)
class Source:
    """One collection of a query.

    `read`: shard read, system relation, session's memory, index scan, or one of the ways to look
    into an index.
    """

    id: str
    name: str
    read: str
    index: str | None
    spans: int | None  # how many keys, or stretches of keys, are looked up
    why: str

    def line(self) -> str:
        where = self.read
        if self.index is not None:
            where = f"{self.read} in {self.index}"
        if self.spans is not None:
            what = ("key", "keys") if self.read == "index lookup" else ("stretch", "stretches")
            where += f" of {self.spans} {what[self.spans != 1]}"
        return f"Source {self.name}: {where}; {self.why}"

    def short(self) -> str:
        """Beside its name in a plan."""
        return f"{self.name} [{self.read}{'' if self.index is None else f' {self.index}'}]"


@dataclass(frozen=True, slots=True)
class Executor:
    """Who computes the rows from the sources. `kind`: spark, recursion, index, shard,
    system or constant."""

    kind: str
    words: str
    why: str


@dataclass(frozen=True, slots=True)
class ReadChoices:
    """Everything that was chosen for one query, in words."""

    sources: tuple[Source, ...]
    executor: Executor
    finishing: Finishing

    def lines(self) -> list[str]:
        lines = _finishing_lines(self.finishing)
        lines += [source.line() for source in self.sources]
        return [*lines, f"Executor: {self.executor.words}; {self.executor.why}"]

    def facts(self) -> dict[str, object]:
        """The same for JSON."""
        return {
            "finishing": {
                "order_by": _order(self.finishing),
                "limit": self.finishing.limit,
                "offset": self.finishing.offset,
            },
            "sources": [asdict(source) for source in self.sources],
            "executor": asdict(self.executor),
        }


async def choices_of(read: Read, env: Environment, names: Names) -> ReadChoices:
    """The choices that a SELECT with this plan runs with."""
    sources = tuple(_source(g, leaf, read, names) for g, leaf in read.leaves.items())
    return ReadChoices(sources, await _executor(read, env), read.finishing)


def _shown_mb(size: int) -> str:
    """
    >>> _shown_mb(1_500_000), _shown_mb(10)
    ('2 MB', '1 MB')
    """
    return f"{max(round(size / 1_000_000), 1):,} MB"


def _source(global_id: GlobalId, leaf: Leaf, read: Read, names: Names) -> Source:
    match leaf:
        case BuiltinLeaf():
            why = "its rows follow from the catalog, or are told by replicas"
            return Source(global_id, names(global_id), "system relation", None, None, why)
        case HeldLeaf():
            why = "it is a temporary table"
            return Source(global_id, names(global_id), "session's memory", None, None, why)
        case ShardLeaf():
            why = _why_shard(global_id, read, names)
            return Source(global_id, names(global_id), "shard read", None, None, why)
        case IndexLeaf(index_id=index_id, keys=keys):
            if keys is None:
                why = "the rows of the view are stored nowhere else"
                return Source(global_id, names(global_id), "index scan", names(index_id), None, why)
            index, count = names(index_id), len(keys.spans)
            return Source(global_id, names(global_id), keys.how, index, count, _WHY_INDEX[keys.how])


def _why_shard(global_id: GlobalId, read: Read, names: Names) -> str:
    item = read.snapshot.item_of(global_id)
    cluster = None if read.cluster_id is None else read.snapshot.clusters.get(read.cluster_id)
    if item is None or cluster is None:
        return "there is no cluster whose indexes could be used"
    indexes = read.snapshot.indexes_on(item.item_id, cluster.cluster_id)
    if not indexes:
        return f"cluster {cluster.name} has no index on it"
    fitting = indexes_of(item, global_id, read.snapshot, cluster.cluster_id)
    listed = ", ".join(names(index.global_id) for index in fitting or indexes)
    if not fitting:
        return f"made before it got more columns: {listed}"
    return f"the query does not bind the first key column of {listed}"


async def _executor(read: Read, env: Environment) -> Executor:
    if await large(read, env) and not is_recursive(read.relation):
        read_size = await size_of(read, env)
        amount = f"{read_size.records:,} records of about {_shown_mb(read_size.decoded_bytes)}"
        return Executor("spark", "Spark SQL job on a replica", f"it reads {amount}")
    if is_recursive(read.relation):
        words, why = "interpreted in the adapter (no Spark job)", "goes round over few records"
        if await large(read, env):
            words = "delta plans on a replica (no Spark job)"
            why = f"goes round over more than {RECURSION_RECORDS} records"
        return Executor("recursion", words, f"WITH MUTUALLY RECURSIVE {why}")
    leaves = read.leaves.values()
    if any(isinstance(leaf, IndexLeaf) for leaf in leaves):
        words = "index on a replica, finished in the adapter (no Spark job)"
        return Executor("index", words, "the index already holds the rows in memory")
    if read.shard_leaves:
        words = "direct read of shards, interpreted in the adapter (no Spark job)"
        return Executor("shard", words, _why_interpreted(read))
    if any(isinstance(leaf, HeldLeaf) for leaf in leaves):
        words = "interpreted in the adapter (no Spark job)"
        return Executor("system", words, "only temporary tables and system relations are read")
    if leaves:
        words = "interpreted in the adapter (no Spark job)"
        return Executor("system", words, "only system relations are read")
    return Executor("constant", "interpreted in the adapter (constant)", "nothing is read")


def _why_interpreted(read: Read) -> str:
    local = interpreted_only(read.relation)
    if local is not None:
        return f"{local} runs only there"
    if any(isinstance(leaf, HeldLeaf) for leaf in read.leaves.values()):
        return "temporary tables are read, which replicas do not have"
    if len(read.shard_leaves) != len(read.leaves):
        return "system relations are read, which replicas do not have"
    if read.cluster_id is None:
        return "there is no cluster to run it"
    return f"at most {SPARK_RECORDS} records"


def _order(finishing: Finishing) -> list[str]:
    return [f"#{k.column}{' desc' if k.descending else ''}" for k in finishing.order]


def _finishing_lines(finishing: Finishing) -> list[str]:
    lines = []
    if finishing.order:
        lines.append(f"Finish order_by=[{', '.join(_order(finishing))}]")
    if finishing.limit is not None or finishing.offset:
        lines.append(f"Finish limit={finishing.limit} offset={finishing.offset}")
    return lines
