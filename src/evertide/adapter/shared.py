"""What a session's statements and the messages of its connection both name and change."""

from evertide.adapter.client import Portal, Prepared
from evertide.adapter.ddl.block import known_as_seen
from evertide.adapter.describe import result_desc
from evertide.adapter.environment import Environment
from evertide.adapter.planning import Parsed, Planner
from evertide.adapter.session import Session
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.errors import FeatureNotSupported
from evertide.vocab.relation_desc import RelationDesc

# More digits than tell a float from all others are none.
_ALL_DIGITS = 1


class Shared:
    """Implements adapter/client.py's SharedNames, and keeps what one query leaves to the next."""

    def __init__(self, session: Session, env: Environment, planner: Planner) -> None:
        self._session = session
        self._env = env
        self._planner = planner
        # The version of the newest snapshot that a statement's rows were compared at, by statement.
        self._compared: dict[int, tuple[int, int]] = {}
        # What runs is one of several statements that were sent as one text.
        self.is_string = False
        # What the statements of such a text have seen of the catalog since the text came.
        self.seen: Snapshot | None = None
        # More messages stand before the Sync that ends what runs.
        self.pipelined = False
        # The rows of a query that has begun to run and has not ended.
        self.unfinished: RelationDesc | None = None

    @property
    def statements(self) -> dict[str, Prepared]:
        return self._session.prepared

    @property
    def portals(self) -> dict[str, Portal]:
        return self._session.cursors

    @property
    def float_digits(self) -> int:
        return min(_ALL_DIGITS, int(self._session.variables.get("extra_float_digits")))

    @property
    def idle_limit_s(self) -> float | None:
        """An open transaction holds back what others could forget."""
        transaction = self._session.transaction
        if transaction is None or not transaction.explicit:
            return None
        return self._session.idle_in_transaction_ms / 1_000 or None

    def begin(self, *, is_string: bool) -> None:
        """A message came, or has ended: what was seen of the catalog before is too old for it."""
        self.is_string = is_string
        self.seen = None

    def check_described(self, prepared: Prepared) -> None:
        """Against the newest snapshot that is known. One that is newer still is met by whoever runs
        the statement, which compares once more."""
        if prepared.result is None or not isinstance(prepared.statement, Parsed):
            return
        snapshot = known_as_seen(self._env.catalog.newest, self._session)
        if snapshot is None:
            return  # in a block that changes objects, and reads none
        if self._compared.get(id(prepared)) == snapshot.version:
            return
        types = prepared.parameter_types
        planned = self._planner.plan(prepared.statement, types, self._session, snapshot)
        found = result_desc(planned.plan, self._session)
        if found is None or found.types != prepared.result.types:
            raise FeatureNotSupported("cached plan must not change result type")
        if len(self._compared) > len(self.statements):
            self._compared.clear()
        self._compared[id(prepared)] = snapshot.version

    def take_unfinished(self) -> RelationDesc | None:
        """The rows that a failed query would have had, once."""
        unfinished, self.unfinished = self.unfinished, None
        return unfinished
