"""EXPLAIN TIMESTAMP: which timestamp a query would read at, and what decides that."""

import json
from dataclasses import asdict, dataclass

from evertide.adapter.client import RowsResponse
from evertide.adapter.environment import Environment
from evertide.adapter.explain.names import Names
from evertide.adapter.introspection import reports
from evertide.adapter.reading.isolation import freshness_of
from evertide.adapter.reading.leaves import IndexLeaf
from evertide.adapter.reading.question import Question, Read
from evertide.adapter.reading.read import choose_as_of, plan_read
from evertide.adapter.session import Session
from evertide.catalog.snapshot import Snapshot
from evertide.expr.scalar import Literal
from evertide.sql.plan.plans import ExplainTimestampPlan
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import TEXT
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timeline, Timestamp


@dataclass(frozen=True, slots=True)
class SourceFrontiers:
    """One source; None: nobody tells of it now."""

    id: str
    name: str
    read: str
    read_frontier: int | None
    write_frontier: int | None


@dataclass(frozen=True, slots=True)
class Determination:
    """What was decided, and from what. Frontiers over all sources are None without sources."""

    query_timestamp: int
    oracle_read_timestamp: int
    sources: tuple[SourceFrontiers, ...]

    @property
    def upper(self) -> int | None:
        """The first timestamp that is not complete in all sources."""
        return min((s.write_frontier for s in self.sources if s.write_frontier is not None),
                   default=None)  # fmt: skip

    @property
    def since(self) -> int | None:
        """The earliest timestamp that is readable in all sources."""
        return max((s.read_frontier for s in self.sources if s.read_frontier is not None),
                   default=None)  # fmt: skip

    @property
    def largest_not_in_advance_of_upper(self) -> int | None:
        return None if self.upper is None else max(self.upper - 1, 0)

    @property
    def can_respond_immediately(self) -> bool:
        """Whether all sources are complete there, and the oracle is there too.

        Rows of a timestamp beyond the oracle's are told only once it has got there.
        """
        if self.query_timestamp > self.oracle_read_timestamp and self.sources:
            return False
        return all(
            s.read_frontier is not None
            and s.write_frontier is not None
            and s.read_frontier <= self.query_timestamp < s.write_frontier
            for s in self.sources
        )

    def facts(self) -> dict[str, object]:
        """For JSON."""
        return {
            "query_timestamp": self.query_timestamp,
            "oracle_read_timestamp": self.oracle_read_timestamp,
            "largest_not_in_advance_of_upper": self.largest_not_in_advance_of_upper,
            "upper": self.upper,
            "since": self.since,
            "can_respond_immediately": self.can_respond_immediately,
            "timeline": "epoch_ms",
            "sources": [asdict(source) for source in self.sources],
        }

    def text(self) -> str:
        can = str(self.can_respond_immediately).lower()
        lines = [
            f"                query timestamp: {self.query_timestamp:>13}",
            f"          oracle read timestamp: {self.oracle_read_timestamp:>13}",
        ]
        if self.sources:
            largest = _shown(self.largest_not_in_advance_of_upper)
            lines += [
                f"largest not in advance of upper: {largest}",
                f"                          upper: [{_shown(self.upper)}]",
                f"                          since: [{_shown(self.since)}]",
            ]
        lines += [
            f"        can respond immediately: {can}",
            "                       timeline: epoch_ms",
        ]
        for source in self.sources:
            lines += [
                "",
                f"source {source.name} ({source.read}):",
                f"                  read frontier: [{_shown(source.read_frontier)}]",
                f"                 write frontier: [{_shown(source.write_frontier)}]",
            ]
        return "\n".join(lines)


async def run_explain_timestamp(
    plan: ExplainTimestampPlan,
    parameters: tuple[Literal, ...],
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> RowsResponse:
    """One row with the whole text, or JSON."""
    question = Question(plan.select.relation, plan.select.finishing, parameters)
    read_ts = await env.oracle.read_ts(Timeline.EPOCH_MS)
    read = plan_read(question, session, env, snapshot, as_of=read_ts)
    fixed = session.transaction.reading_as_of() if session.transaction is not None else None
    wanted = None if plan.select.at_least else plan.select.as_of
    freshness = freshness_of(session, read_ts, plan.select.as_of if plan.select.at_least else None)
    as_of = await choose_as_of(read, env, freshness, fixed=fixed, wanted=wanted)
    sources = await _sources(read, env, Names(snapshot, session))
    found = Determination(as_of, read_ts, tuple(sources))
    text = json.dumps(found.facts(), indent=2) if plan.as_json else found.text()
    return RowsResponse(relation_desc(("Timestamp", TEXT)), [(text,)], tag="EXPLAIN")


async def _sources(read: Read, env: Environment, names: Names) -> list[SourceFrontiers]:
    found = []
    for leaf in read.shard_leaves:
        collection = leaf.collection
        since = await env.storage.since(collection)
        upper = await env.storage.upper(collection)
        name = names(collection.global_id)
        found.append(SourceFrontiers(collection.global_id, name, "shard", since, upper))
    indexes = [leaf for leaf in read.leaves.values() if isinstance(leaf, IndexLeaf)]
    if indexes:
        rows = await reports.replica_frontiers(env, read.snapshot)
        told = {object_id: (since, upper) for object_id, since, upper in rows}
        for index in indexes:
            readable, complete = _timestamps(told.get(index.index_id))
            name = names(index.index_id)
            found.append(SourceFrontiers(index.index_id, name, "index", readable, complete))
    return found


def _timestamps(told: tuple[object, object] | None) -> tuple[Timestamp | None, Timestamp | None]:
    """(since, upper) of what a replica told; an upper that it left out is beyond everything."""
    if told is None:
        return None, None
    since, upper = told
    return (
        Timestamp(since) if isinstance(since, int) else None,
        Timestamp(upper) if isinstance(upper, int) else EMPTY_FRONTIER,
    )


def _shown(frontier: int | None) -> str:
    if frontier is None:
        return "unknown".rjust(13)
    return "empty".rjust(13) if frontier == EMPTY_FRONTIER else f"{frontier:>13}"
