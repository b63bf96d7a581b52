"""What planning one statement knows and collects."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.deferred import Deferred
from evertide.sql.plan.known_rows import KnownRows
from evertide.sql.plan.origin import Origins
from evertide.sql.plan.parameters import Parameters
from evertide.sql.plan.planned import NamedQuery, PlannedQuery
from evertide.sql.plan.scope import Scope
from evertide.sql.resolve import NameContext, Recall
from evertide.sql.syntax.query import Query
from evertide.vocab.ids import ItemId, RoleId
from evertide.vocab.sql_type import SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanContext:
    """The session's view when the statement arrived.

    `prepared` gives the parameter types of the session's prepared statements, so that EXECUTE can
    cast its arguments; None leaves them as they are.
    """

    snapshot: Snapshot
    database: str
    search_path: tuple[str, ...]
    cluster: str
    user: str
    # Whose rights the statement has; None: nobody's, as where stored text is planned again.
    role_id: RoleId | None = None
    experimental: bool = False
    # Where files of sinks may be; None: nowhere.
    sink_directory: str | None = None
    prepared: Mapping[str, Sequence[SqlType]] | None = None
    # What is kept up to date must be so by following changes alone.
    require_incremental: bool = False
    # How a text that is planned again was meant; None: it is new.
    recall: Recall | None = None

    @property
    def names(self) -> NameContext:
        """What decides which object a name means."""
        return NameContext(self.snapshot, self.database, self.search_path, self.recall)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The row around a subquery, and what its expressions wait for: where columns are named from
    further in is told there, for errors about grouping."""

    scope: Scope
    deferred: Deferred


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryContext:
    """What a query sees around itself; a subquery gets one with more in it.

    `plan_query` is how an expression plans a subquery: queries hold expressions and expressions
    hold queries, and only one of the two may import the other.
    """

    plan: PlanContext
    parameters: Parameters
    plan_query: Callable[[Query, "QueryContext"], PlannedQuery]
    # Direct dependencies in order of first sight; shared by all parts of a statement.
    dependencies: dict[ItemId, None] = field(default_factory=dict)
    origins: Origins = field(default_factory=Origins)
    known_rows: KnownRows = field(default_factory=KnownRows)
    named_queries: Mapping[str, NamedQuery | None] = field(default_factory=dict)
    # What the queries around this one see, innermost first.
    outer: tuple[Surroundings, ...] = ()
    # The query is stored as text, so it must mean the same in every session.
    stored: bool = False
    # It is kept up to date, so it must also mean the same at every time.
    maintained: bool = False

    @property
    def names(self) -> NameContext:
        """What decides which object a name in a constant means; names of relations are stored in
        full, but a constant stays as it is written."""
        return NameContext(self.plan.snapshot, "", ()) if self.stored else self.plan.names

    def within(self, scope: Scope, deferred: Deferred | None = None) -> "QueryContext":
        """The context of a subquery that stands in an expression over `scope`."""
        around = Surroundings(scope, Deferred() if deferred is None else deferred)
        return replace(self, outer=(around, *self.outer))
