"""One session's state: who, which variables, which transaction, what it prepared."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from evertide.adapter.client import Portal, Prepared
from evertide.adapter.own import Own
from evertide.adapter.rights.identity import DEFAULT_USER
from evertide.adapter.temporary.objects import Temporary
from evertide.adapter.transaction import Transaction
from evertide.adapter.variables import VARIABLES, Scope, Variables, duration_ms
from evertide.sql.schema_list import listed_schemas
from evertide.vocab.errors import Notice
from evertide.vocab.ids import RoleId

# Parameters of the startup message that are not variables.
_NOT_VARIABLES = ("user", "database", "options", "replication")


@dataclass(frozen=True, slots=True)
class Login:
    """As which role a session was let in, and whether by an address that only operators reach."""

    role_id: RoleId | None = None  # None: nobody asked
    superuser: bool = False
    internal: bool = False
    connection_id: int = field(default_factory=lambda: secrets.randbits(31))


@dataclass(slots=True)
class Session:
    """Belongs to one connection; nobody else touches it."""

    user: str
    variables: Variables
    login: Login = field(default_factory=Login)
    transaction: Transaction | None = None
    prepared: dict[str, Prepared] = field(default_factory=dict)
    # Cursors, and whatever else a client may ask rows of by name.
    cursors: dict[str, Portal] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)
    own: Own = field(default_factory=Own)

    @property
    def temporary(self) -> Temporary:
        return self.own.temporary

    @property
    def connection_id(self) -> int:
        return self.login.connection_id

    @property
    def role_id(self) -> RoleId | None:
        """Whose rights it has: those of the role that its user was when it began."""
        return self.login.role_id

    @property
    def internal(self) -> bool:
        return self.login.internal

    @property
    def database(self) -> str:
        return self.variables.get("database")

    @property
    def cluster(self) -> str:
        return self.variables.get("cluster")

    @property
    def search_path(self) -> tuple[str, ...]:
        """Schemas in order, without quotes."""
        return _schemas(self.variables.get("search_path"))

    @property
    def statement_timeout_ms(self) -> int:
        """0: no limit."""
        return _milliseconds(self.variables.get("statement_timeout"))

    @property
    def idle_in_transaction_ms(self) -> int:
        """0: no limit."""
        return _milliseconds(self.variables.get("idle_in_transaction_session_timeout"))

    def end_transaction(self) -> None:
        """Forget the transaction and what lived in it."""
        if self.transaction is not None:
            self.transaction.end()
        self.transaction = None
        self.cursors.clear()
        self.own.savepoints.clear()
        self.variables.end_transaction()
        self.temporary.end_transaction()


# Asked for with every statement, and seldom another text than the last time.


@lru_cache(maxsize=256)
def _schemas(search_path: str) -> tuple[str, ...]:
    return listed_schemas(search_path)


@lru_cache(maxsize=256)
def _milliseconds(duration: str) -> int:
    found = duration_ms(duration)
    assert found is not None, "variables keep what is one"
    return found


def split_options(options: str) -> dict[str, str]:
    """Variables in the startup message's `options`: `-c a=b`, `--a=b`, blanks escaped by `\\`.

    >>> split_options("--welcome_message=off -c search_path=a,\\\\ b")
    {'welcome_message': 'off', 'search_path': 'a, b'}
    """
    words: list[str] = [""]
    escaped = False
    for character in options:
        if escaped:
            words[-1] += character
            escaped = False
        elif character == "\\":
            escaped = True
        elif character.isspace():
            words.append("")
        else:
            words[-1] += character
    settings = {}
    for word in words:
        text = word.removeprefix("-c").removeprefix("--")
        name, equals, value = text.partition("=")
        if equals:
            settings[name.strip().replace("-", "_")] = value
    return settings


def open_session(
    parameters: Mapping[str, str],
    defaults: Mapping[str, str],
    login: Login,
    temporary: Temporary | None = None,
) -> Session:
    """A session as its startup message asks for it; unknown settings are noted, not refused."""
    user = parameters.get("user", DEFAULT_USER)
    variables = Variables({**defaults, "is_superuser": "on" if login.superuser else "off"})
    session = Session(user, variables, login)
    if temporary is not None:
        session.own = Own(temporary)
    wanted = {n: v for n, v in parameters.items() if n not in _NOT_VARIABLES}
    wanted.update(split_options(parameters.get("options", "")))
    if database := parameters.get("database"):
        wanted.setdefault("database", database)
    for name, value in wanted.items():
        variable = VARIABLES.get(name.lower())
        if variable is None:
            message = f'startup setting "{name}" not set: unrecognized configuration parameter'
            session.notices.append(Notice("WARNING", "42704", message))
        elif variable.scope is Scope.SESSION:
            variables.set(name, value)
    variables.take_changed()
    return session
