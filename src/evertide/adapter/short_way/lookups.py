"""A session's statements that go the short way, for as long as nothing changes for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from evertide.adapter.client import Prepared
from evertide.adapter.environment import Environment
from evertide.adapter.planning import Parsed, Planner
from evertide.adapter.reading.isolation import STRICT
from evertide.adapter.session import Session
from evertide.adapter.short_way.asked import Answer, Asked
from evertide.adapter.short_way.recipe import Recipe, recipe_of
from evertide.adapter.variables import VARIABLES
from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import SqlError
from evertide.vocab.timestamp import Timestamp

# A shorter timeout than this is watched to the moment, on the ordinary way.
LEAST_TIMEOUT_MS: Final = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """What a statement is, as long as these are what they were."""

    prepared: Prepared
    snapshot: Snapshot
    settings: int
    recipe: Recipe | None


class SessionLookups:
    """Implements adapter/client.py's Lookups."""

    def __init__(self, session: Session, env: Environment, planner: Planner) -> None:
        self._session = session
        self._env = env
        self._planner = planner
        # By the id of the statement, which is kept here and so is no other's.
        self._known: dict[int, _Known] = {}

    def recognise(self, prepared: Prepared) -> Recipe | None:
        """How its rows are found, if it may go the short way now."""
        session, snapshot = self._session, self._env.catalog.newest
        if session.transaction is not None or session.notices:
            return None
        if session.temporary.over(snapshot) is not snapshot:
            return None
        known = self._known.get(id(prepared))
        settings = session.variables.changes
        if known is None or known.snapshot is not snapshot or known.settings != settings:
            if len(self._known) > len(session.prepared):
                self._known.clear()  # some are of statements that are gone
            recipe = self._recipe(prepared, snapshot)
            known = self._known[id(prepared)] = _Known(prepared, snapshot, settings, recipe)
        return known.recipe

    def ask(self, recipe: object, parameters: Sequence[Datum], answer: Answer) -> Asked:
        """Look the rows up; `answer` is called soon, with None if the way was not short."""
        assert isinstance(recipe, Recipe), "what recognise gave"

        def told(rows: Sequence[Row] | None, as_of: Timestamp) -> None:
            if rows is not None:
                self._session.own.note_read(as_of)
            answer(rows, as_of)

        asked = Asked(recipe, parameters, told)
        self._env.lookups.ask(asked)
        return asked

    def _recipe(self, prepared: Prepared, snapshot: Snapshot) -> Recipe | None:
        parsed, session = prepared.statement, self._session
        cluster = snapshot.cluster_named(session.cluster)
        if not isinstance(parsed, Parsed) or cluster is None or not self._is_plain():
            return None
        try:
            planned = self._planner.allowed(parsed, prepared.parameter_types, session, snapshot)
        except SqlError:
            return None  # told by the ordinary way
        plan = planned.plan
        if planned.needs_values or not isinstance(plan, SelectPlan):
            return None
        if prepared.result is None or plan.desc.types != prepared.result.types:
            return None
        read = self._env.read_plans.plan(plan.relation, snapshot, cluster.cluster_id)
        if read.asks_catalog or read.has_session_calls:
            return None
        return recipe_of(plan, read.relation, snapshot, cluster.cluster_id)

    def _is_plain(self) -> bool:
        """Whether the session's settings ask for nothing but the usual."""
        variables = self._session.variables
        size = "max_query_result_size"
        timeout_ms = self._session.statement_timeout_ms
        return (
            variables.get("transaction_isolation") == STRICT
            and variables.get(size) == VARIABLES[size].default
            and (timeout_ms == 0 or timeout_ms >= LEAST_TIMEOUT_MS)
        )
