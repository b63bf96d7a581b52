"""Session variables: names, defaults, who may set them, and which values they take.

SET, ALTER ROLE and ALTER SYSTEM ask the same question here, so that what one of them would refuse
cannot come to a session by another.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from evertide.catalog.grace import GRACE_PERIOD, period_text
from evertide.expr.interval_text import parse_interval
from evertide.vocab.errors import (
    CannotChangeParameter,
    InvalidParameterValue,
    SqlError,
    UndefinedObject,
)

VERSION = "v0.130.0"
VERSION_NUMBER = 13_000
# The PostgreSQL whose catalog columns pg_catalog has: clients choose their queries by it.
SERVER_VERSION = "16.2"


class Scope(Enum):
    """For whom a variable can be set."""

    SESSION = "session"  # by SET for a session, by ALTER ROLE and ALTER SYSTEM for those to come
    SYSTEM = "system"  # by ALTER SYSTEM, for everyone at once
    FIXED = "fixed"  # for nobody


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable. `check` returns the value in its canonical spelling, or None to refuse it."""

    name: str
    default: str
    description: str
    check: Callable[[str], str | None] = lambda value: value
    # Clients are told of every change.
    reported: bool = False
    scope: Scope = Scope.SESSION
    # What a refusal adds.
    hint: str | None = None

    @property
    def key(self) -> str:
        """The name under which values are kept."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Assignment:
    """A value that a variable takes, in its canonical spelling; None: its default."""

    variable: Variable
    value: str | None


_TRUE = ("on", "true", "t", "yes", "y", "1")
_FALSE = ("off", "false", "f", "no", "n", "0")
ISOLATION_LEVELS = (
    "read uncommitted",
    "read committed",
    "repeatable read",
    "serializable",
    "strong session serializable",
    "strict serializable",
)


def _boolean(value: str) -> str | None:
    lowered = value.lower()
    if lowered in _TRUE:
        return "on"
    return "off" if lowered in _FALSE else None


# Digits are those that int() is sure to read: str.isdigit() takes more, and there may be too many.
_FLOAT_DIGITS: Final = re.compile(r"[+-]?[0-9]{1,3}")
_AMOUNT: Final = re.compile(r"([0-9]{1,19}) *([a-z]*)")
# Beyond every time and every memory, and what arithmetic with floats still takes.
_MOST: Final = 2**63 - 1


def _float_digits(value: str) -> str | None:
    """From 1 on floats have as many digits as tell them from all others."""
    digits = int(value) if _FLOAT_DIGITS.fullmatch(value) else None
    return None if digits is None or not -15 <= digits <= 3 else str(digits)


def _amount(value: str, units: Mapping[str, int]) -> int | None:
    """A number with a unit, in the least of them."""
    found = _AMOUNT.fullmatch(value)
    if found is None or found[2] not in units:
        return None
    amount = int(found[1]) * units[found[2]]
    return amount if amount <= _MOST else None


_UNITS_MS = {"": 1, "ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration_ms(value: str) -> int | None:
    """Milliseconds in `500`, `5s`, `1 min`; None if it is no duration.

    >>> duration_ms("5 s"), duration_ms("250"), duration_ms("soon")
    (5000, 250, None)
    """
    return _amount(value.strip(), _UNITS_MS)


_SIZES = {"": 1, "b": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3, "tb": 1024**4}


def size_bytes(value: str) -> int | None:
    """Bytes in `8B`, `1MB`, `500 kb`; None if it is no size.

    >>> size_bytes("1MB"), size_bytes("8"), size_bytes("much")
    (1048576, 8, None)
    """
    return _amount(value.strip().lower(), _SIZES)


def _size(value: str) -> str | None:
    return None if size_bytes(value) is None else value.strip()


def _duration(value: str) -> str | None:
    return None if duration_ms(value) is None else value.strip()


# Followed by a duration.
BOUNDED_STALENESS = "bounded staleness "


def _isolation(value: str) -> str | None:
    level = " ".join(value.lower().split())
    if level in ISOLATION_LEVELS:
        return level
    staleness = level.removeprefix(BOUNDED_STALENESS)
    return level if staleness != level and duration_ms(staleness) else None


def _one_of(*choices: str) -> Callable[[str], str | None]:
    return lambda value: value.lower() if value.lower() in choices else None


def _exactly(only: str) -> Callable[[str], str | None]:
    """The one value, in any case and spelling: asyncpg sends 'utf-8' with its quotes."""
    wanted = only.lower()
    return lambda value: only if value.strip("'").lower().replace("-", "") == wanted else None


def _date_style(value: str) -> str | None:
    """Output is always ISO; the order of input's parts is MDY."""
    words = {word.strip().lower() for word in value.strip("'").split(",")}
    return "ISO, MDY" if words <= {"iso", "mdy", "us", ""} else None


_MOST_GRACE_MS: Final = 3_650 * 86_400_000


def _grace_period(value: str) -> str | None:
    """An interval, as the catalog keeps it."""
    try:
        period_ms = parse_interval(value).span_micros() // 1_000
    except SqlError:
        return None
    return period_text(period_ms) if 0 <= period_ms <= _MOST_GRACE_MS else None


def _utc(value: str) -> str | None:
    zero = value.lower().removeprefix("etc/")
    return "UTC" if zero in ("utc", "gmt", "z", "zulu", "0", "+0", "+00", "+00:00") else None


VARIABLES: Mapping[str, Variable] = {
    variable.key: variable
    for variable in (
        Variable("application_name", "", "The name the client gave itself.", reported=True),
        Variable(
            "auto_route_catalog_queries", "on", "System catalog queries need no cluster.", _boolean
        ),
        Variable("client_encoding", "UTF8", "Only UTF8.", _exactly("UTF8"), reported=True),
        Variable(
            "client_min_messages",
            "notice",
            "The least severity that is sent.",
            _one_of("debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "notice",
                    "warning", "error", "info"),
            hint="Available values: debug5, debug4, debug3, debug2, debug1, log, notice, warning,"
            " error.",
        ),
        Variable("cluster", "default", "The active cluster."),
        Variable("cluster_replica", "", "The replica that answers; empty: any."),
        Variable(
            "current_object_missing_warnings", "on", "Tell of names that mean nothing.", _boolean
        ),
        Variable("database", "materialize", "The current database."),
        Variable("DateStyle", "ISO, MDY", "Only ISO output.", _date_style, reported=True),
        Variable("default_table_access_method", "heap", "Asked for by clients; no choice.",
                 scope=Scope.FIXED),
        Variable(GRACE_PERIOD, "1 d",
                 "How long what was dropped can be brought back; set by ALTER SYSTEM.",
                 _grace_period, scope=Scope.SYSTEM,
                 hint="It is an interval of at most ten years; 0 drops things for good at once."),
        Variable("emit_timestamp_notice", "off", "Tell each query's timestamp.", _boolean),
        Variable("enable_rbac_checks", "on", "Whether rights are checked; set by ALTER SYSTEM.",
                 _boolean, scope=Scope.SYSTEM),
        Variable("enable_refresh_every_mvs", "on",
                 "Whether views may be refreshed at certain times; set by ALTER SYSTEM.",
                 _boolean, scope=Scope.SYSTEM),
        Variable("extra_float_digits", "1", "Digits of floats beyond those that are always kept.",
                 _float_digits),
        Variable("failpoints", "", "For tests."),
        Variable(
            "idle_in_transaction_session_timeout", "2 min", "Ends idle transactions.", _duration
        ),
        Variable("integer_datetimes", "on", "Always on.", reported=True, scope=Scope.FIXED),
        Variable("IntervalStyle", "postgres", "Only postgres.", _exactly("postgres"),
                 reported=True),
        Variable("is_superuser", "on", "Whether the user may do anything.", reported=True,
                 scope=Scope.FIXED),
        Variable("max_query_result_size", "1GB", "The largest result.", _size),
        Variable("mz_version", f"{VERSION} (evertide)", "The version clients check.",
                 reported=True, scope=Scope.FIXED),
        Variable("real_time_recency", "off", "Not offered.", _boolean),
        Variable("require_incremental", "off",
                 "Refuse views, indexes and subscriptions that recompute.", _boolean),
        Variable("search_path", "public", "Schemas looked through for bare names.",
                 reported=True),
        Variable("server_version", SERVER_VERSION, "The PostgreSQL version spoken.",
                 reported=True, scope=Scope.FIXED),
        Variable("server_version_num", "160002", "The same as a number.", scope=Scope.FIXED),
        Variable("sql_safe_updates", "off", "Accepted, without effect.", _boolean),
        Variable("standard_conforming_strings", "on", "Only on.", _exactly("on"),
                 reported=True),
        Variable("statement_timeout", "60 s", "Ends statements that take longer; 0: never.",
                 _duration),
        Variable("TimeZone", "UTC", "Only UTC.", _utc, reported=True),
        Variable("transaction_isolation", "strict serializable", "How reads are ordered.",
                 _isolation),
        Variable("transaction_read_only", "off", "Accepted, without effect.", _boolean),
        Variable("unsafe_enable_table_keys", "off",
                 "Whether tables may declare keys, unenforced; set by ALTER SYSTEM.",
                 _boolean, scope=Scope.SYSTEM),
        Variable("welcome_message", "on", "Greet at the start of a session.", _boolean),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SavedVariables:
    """What a session had set at some point."""

    session: Mapping[str, str]
    local: Mapping[str, str]


class Variables:
    """One session's values. A transaction's SET LOCAL values go when it ends."""

    def __init__(self, defaults: Mapping[str, str] | None = None) -> None:
        # Values that RESET returns to: system-wide ones and those of the startup message.
        self._defaults = {name: v.default for name, v in VARIABLES.items()}
        self._defaults.update({name.lower(): value for name, value in (defaults or {}).items()})
        self._session: dict[str, str] = {}
        self._local: dict[str, str] = {}
        self._before: dict[str, str] = {}
        self._changed: dict[str, str] = {}
        # Grows whenever a value may have become another.
        self.changes = 0

    def get(self, name: str) -> str:
        """The value in force; 42704 if there is no such variable."""
        # Mostly it is spelled so already; what else it may be is looked up.
        key = name if name in self._defaults else lookup(name).key
        if key in self._local:
            return self._local[key]
        return self._session.get(key, self._defaults[key])

    def set(self, name: str, value: str | None, *, local: bool = False) -> None:
        """Set it, or with None go back to the default; reported variables are noted."""
        found = check_assignment(name, value)
        key = found.variable.key
        target = self._local if local else self._session
        if found.value is None:
            target.pop(key, None)
            self._local.pop(key, None)
        else:
            target[key] = found.value
            if not local:
                self._local.pop(key, None)
        self.changes += 1
        self._note(found.variable)

    def reset_all(self) -> None:
        """Every variable to its default."""
        for key in [*self._session, *self._local]:
            self.set(key, None)

    def begin_transaction(self) -> None:
        """Remember the values, in case the transaction is rolled back."""
        self._before = dict(self._session)

    def saved(self) -> SavedVariables:
        """The values of now, to come back to."""
        return SavedVariables(dict(self._session), dict(self._local))

    def roll_back(self, saved: SavedVariables | None = None) -> None:
        """SETs since then never happened; None: since the transaction began."""
        before = saved or SavedVariables(self._before, {})
        changed = {*self._session, *self._local, *before.session, *before.local}
        self._session, self._local = dict(before.session), dict(before.local)
        self.changes += 1
        for key in changed:
            self._note(VARIABLES[key])

    def end_transaction(self) -> None:
        """SET LOCAL values end here."""
        gone, self._local = list(self._local), {}
        self.changes += bool(gone)
        for key in gone:
            self._note(VARIABLES[key])

    def _note(self, variable: Variable) -> None:
        if variable.reported:
            self._changed[variable.name] = self.get(variable.name)

    def take_changed(self) -> dict[str, str]:
        """Reported variables that changed since the last call."""
        changed, self._changed = self._changed, {}
        return changed

    def reported(self) -> dict[str, str]:
        """All reported variables."""
        return {v.name: self.get(v.name) for v in VARIABLES.values() if v.reported}

    def all(self) -> list[tuple[str, str, str]]:
        """(name, value, description) of every variable, by name."""
        return [(v.name, self.get(v.name), v.description) for _, v in sorted(VARIABLES.items())]


def lookup(name: str) -> Variable:
    """The variable of this name, in any spelling of case."""
    variable = VARIABLES.get(name.lower())
    if variable is None:
        raise UndefinedObject(f'unrecognized configuration parameter "{name}"')
    return variable


def check_assignment(name: str, value: str | None, *, systemwide: bool = False) -> Assignment:
    """What a session may set for itself, or `systemwide` an operator for everyone.

    42704 for what is no variable, 55P02 for one that cannot be set so, 22023 for a bad value.
    """
    variable = lookup(name)
    if variable.scope is Scope.FIXED or (variable.scope is Scope.SYSTEM and not systemwide):
        raise CannotChangeParameter(
            f'parameter "{variable.name}" cannot be changed',
            hint=None if variable.scope is Scope.FIXED else "ALTER SYSTEM sets it for everyone.",
        )
    if value is None:
        return Assignment(variable, None)
    accepted = variable.check(value)
    if accepted is None:
        raise InvalidParameterValue(
            f'invalid value for parameter "{variable.name}": "{value}"', hint=variable.hint
        )
    return Assignment(variable, accepted)
