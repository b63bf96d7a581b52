"""Statement text to Request: parse and plan, each once for as long as it stays true."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from evertide.adapter.dispatch import Request
from evertide.adapter.environment import Environment
from evertide.adapter.rights.check import authorize
from evertide.adapter.session import Session
from evertide.adapter.shapes import Shapes
from evertide.adapter.templates import Templates
from evertide.adapter.transaction import Untouched
from evertide.catalog.snapshot import Snapshot
from evertide.expr.scalar import Literal
from evertide.sql.parser.entry import parse_statements
from evertide.sql.parser.pieces import Piece, pieces_of
from evertide.sql.parser.template import Template
from evertide.sql.plan.context import PlanContext
from evertide.sql.plan.entry import Planned, plan_statement
from evertide.sql.plan.plans import ExecutePlan, Plan
from evertide.sql.plan.refill import DeleteShape, InsertShape, shape_begun, shape_of
from evertide.sql.syntax.command import (
    BeginStatement,
    CommitStatement,
    RollbackStatement,
    TransactionModes,
)
from evertide.sql.syntax.literal_values import LiteralValues
from evertide.sql.syntax.statement import Statement
from evertide.vocab.datum import Datum
from evertide.vocab.errors import UndefinedParameter
from evertide.vocab.ids import RoleId
from evertide.vocab.sql_type import SqlType

# Texts longer than this are parsed each time: keeping them would keep their rows.
CACHED_TEXT_CHARS = 4_096
CACHED_PLANS = 1_024


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """A statement and the text that its positions count in. Compared by identity: parse results
    are shared through the cache, so the same text gives the same one."""

    statement: Statement
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Unparsed:
    """One statement which its template may spare from being parsed."""

    text: str
    template: Template


class Listed:
    """One statement of a text that is a beginning and a list, which its shape may spare from being
    parsed. All of the text's statements share what they are parsed to."""

    __slots__ = ("_number", "_parsed", "shape", "text", "values")

    def __init__(
        self,
        text: str,
        number: int,
        shape: InsertShape | DeleteShape,
        values: LiteralValues,
        parsed: list[Parsed],
    ) -> None:
        self.text = text
        self.shape = shape
        self.values = values
        self._number = number
        # Empty until one of the statements has to be parsed.
        self._parsed = parsed

    def parsed(self) -> Parsed:
        """The statement as the grammar reads it, which knows the place of every word."""
        if not self._parsed:
            self._parsed.extend(parse(self.text))
        return self._parsed[self._number]


def statements_of(text: str) -> Sequence[Parsed | Listed]:
    """All statements of a text, not all of them parsed; raises SqlSyntaxError for any of them."""
    pieces = pieces_of(text) if "(" in text else None
    return (pieces and _known_pieces(text, pieces)) or parse(text)


def _known_pieces(text: str, pieces: Sequence[Piece]) -> list[Parsed | Listed] | None:
    """None where one of them may be something else."""
    statements: list[Parsed | Listed] = []
    parsed: list[Parsed] = []
    for number, (beginning, values) in enumerate(pieces):
        if values is None:
            end = _BLOCK_WORDS.get(beginning.upper())
            if end is None:
                return None
            statements.append(end)
            continue
        shape = shape_begun(beginning, values.width, listed=values.listed)
        if shape is None:
            return None
        statements.append(Listed(text, number, shape, values, parsed))
    return statements


def parse(text: str) -> tuple[Parsed, ...]:
    """All statements of a text; the same objects for the same short text.

    A text that may hold a password is not kept.
    """
    if len(text) > CACHED_TEXT_CHARS or "password" in text.lower():
        return _parse(text)
    return _parse_cached(text)


def _parse(text: str) -> tuple[Parsed, ...]:
    return tuple(_parsed(statement, text) for statement in parse_statements(text))


def _parsed(statement: Statement, text: str) -> Parsed:
    """A block's ends mean the same in every text: they are shared, so as to be planned once."""
    if isinstance(statement, BeginStatement | CommitStatement | RollbackStatement):
        return _BLOCK_ENDS.get(statement) or Parsed(statement, text)
    return Parsed(statement, text)


_BLOCK_ENDS: Final = {
    statement: Parsed(statement, text)
    for statement, text in (
        (BeginStatement(TransactionModes()), "BEGIN"),
        (CommitStatement(), "COMMIT"),
        (RollbackStatement(), "ROLLBACK"),
    )
}

_BLOCK_WORDS: Final = {parsed.text: parsed for parsed in _BLOCK_ENDS.values()}

_parse_cached = lru_cache(maxsize=CACHED_PLANS)(_parse)


class _PlanKey(NamedTuple):
    """All that a plan depends on; a tuple, which is hashed and compared without a call."""

    parsed: Parsed
    catalog: tuple[int, int]
    database: str
    search_path: tuple[str, ...]
    cluster: str
    user: str
    role_id: RoleId | None
    parameter_types: tuple[SqlType | None, ...]


@dataclass(slots=True)
class _Known:
    """A plan, and whether it was found to be allowed, which one snapshot does not take back."""

    planned: Planned
    allowed: bool = False
    allowed_back: bool = False  # also at a time that was chosen earlier


class Planner:
    """One adapter's plans, shared by its sessions; the least recently used go first."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._plans: dict[_PlanKey, _Known] = {}
        self._templates = Templates()
        self._shapes = Shapes()

    def plan(
        self,
        parsed: Parsed,
        parameter_types: Sequence[SqlType | None],
        session: Session,
        snapshot: Snapshot,
    ) -> Planned:
        """Plan for this session against this snapshot; whether it may run is not looked at."""
        return self._known(parsed, parameter_types, session, snapshot).planned

    def allowed(
        self,
        parsed: Parsed,
        parameter_types: Sequence[SqlType | None],
        session: Session,
        snapshot: Snapshot,
    ) -> Planned:
        """The plan, if this session may run it against this snapshot."""
        known = self._known(parsed, parameter_types, session, snapshot)
        back = _reads_back(session)
        if not (known.allowed_back if back else known.allowed):
            if session.role_id is not None:
                role_id, cluster = session.role_id, session.cluster
                authorize(known.planned, role_id, cluster, snapshot, back=back)
            known.allowed = True
            known.allowed_back = known.allowed_back or back
        return known.planned

    def _known(
        self,
        parsed: Parsed,
        parameter_types: Sequence[SqlType | None],
        session: Session,
        snapshot: Snapshot,
    ) -> _Known:
        key = _PlanKey(
            parsed,
            snapshot.version,
            session.database,
            session.search_path,
            session.cluster,
            session.user,
            session.role_id,
            tuple(parameter_types),
        )
        known = self._plans.pop(key, None)
        if known is None:
            context = self._context(session, snapshot)
            known = _Known(plan_statement(parsed.statement, context, parameter_types))
        # EXECUTE also depends on what the session has prepared under the name.
        kept = not isinstance(known.planned.plan, ExecutePlan)
        if kept and len(parsed.text) <= CACHED_TEXT_CHARS:
            self._plans[key] = known
            if len(self._plans) > CACHED_PLANS:
                del self._plans[next(iter(self._plans))]
        return known

    def request_by_template(
        self, unparsed: Unparsed, session: Session, snapshot: Snapshot
    ) -> Request:
        """A statement that was not parsed yet, ready to be dispatched.

        A template is learned from a statement that was allowed to this role on this snapshot.
        """
        template = unparsed.template
        key = (template.text, template.kinds, *_where(session, snapshot))
        found = self._templates.find(key, template)
        if found is not None:
            return Request(found.plan, snapshot, found.literals, _no_other_plan)
        (parsed,) = parse(unparsed.text)
        request = self.request(parsed, (), (), session, snapshot)
        context = self._context(session, snapshot)
        self._templates.learn(key, template, request.plan, context)
        return request

    def _context(self, session: Session, snapshot: Snapshot) -> PlanContext:
        return PlanContext(
            snapshot=snapshot,
            database=session.database,
            search_path=session.search_path,
            cluster=session.cluster,
            user=session.user,
            role_id=session.role_id,
            experimental=self._env.experimental,
            sink_directory=self._env.sink_directory,
            prepared={n: p.parameter_types for n, p in session.prepared.items()},
            require_incremental=session.variables.get("require_incremental") == "on",
        )

    def request(
        self,
        parsed: Parsed,
        parameter_types: Sequence[SqlType],
        parameters: Sequence[Datum],
        session: Session,
        snapshot: Snapshot,
    ) -> Request:
        """A statement ready to be dispatched, with its parameters as literals.

        The plan of a shape is kept of a statement that was allowed to this role on this snapshot.
        """
        found = None if parameters else shape_of(parsed.statement)
        if found is None:
            return self._request(parsed, parameter_types, parameters, session, snapshot)
        return self._by_shape(*found, lambda: parsed, session, snapshot)

    def request_by_shape(self, listed: Listed, session: Session, snapshot: Snapshot) -> Request:
        """The same of a statement that is parsed only if its shape is not known."""
        return self._by_shape(listed.shape, listed.values, listed.parsed, session, snapshot)

    def _by_shape(
        self,
        shape: InsertShape | DeleteShape,
        values: LiteralValues,
        parsed: Callable[[], Parsed],
        session: Session,
        snapshot: Snapshot,
    ) -> Request:
        where = _where(session, snapshot)
        plan = self._shapes.find(shape, where, values)
        if plan is not None:
            return Request(plan, snapshot, (), _no_other_plan)
        request = self._request(parsed(), (), (), session, snapshot)
        self._shapes.learn(shape, where, values, snapshot, request.plan)
        return request

    def _request(
        self,
        parsed: Parsed,
        parameter_types: Sequence[SqlType],
        parameters: Sequence[Datum],
        session: Session,
        snapshot: Snapshot,
    ) -> Request:

        def plan_again(newer: Snapshot) -> Plan:
            return self.allowed(parsed, parameter_types, session, newer).plan

        planned = self.allowed(parsed, parameter_types, session, snapshot)
        if len(parameters) < len(planned.parameter_types):
            raise UndefinedParameter(f"there is no parameter ${len(parameters) + 1}")
        if planned.needs_values:
            # LIMIT $1: the plan itself depends on the value, so it is made anew and not kept.
            planned = plan_statement(
                parsed.statement,
                self._context(session, snapshot),
                planned.parameter_types,
                parameter_values=parameters,
            )
        literals = tuple(
            Literal(datum, sql_type)
            for datum, sql_type in zip(parameters, planned.parameter_types, strict=True)
        )
        return Request(planned.plan, snapshot, literals, plan_again)


def _where(session: Session, snapshot: Snapshot) -> tuple[Hashable, ...]:
    """All that the plan of a statement which changes rows depends on beside its text."""
    return (
        snapshot.version,
        session.database,
        session.search_path,
        session.cluster,
        session.user,
        session.role_id,
        _reads_back(session),
    )


def _reads_back(session: Session) -> bool:
    """Whether its transaction has begun to read or write: it may go on at the time it did so."""
    transaction = session.transaction
    return transaction is not None and not isinstance(transaction.work, Untouched)


def _no_other_plan(_: Snapshot) -> Plan:
    raise AssertionError("only DDL is planned again, and that has no template")
