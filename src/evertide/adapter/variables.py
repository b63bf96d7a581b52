"""Session variables: names, defaults, and which values they take."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evertide.vocab.errors import CannotChangeParameter, InvalidParameterValue, UndefinedObject

VERSION = "v0.130.0"
VERSION_NUMBER = 13_000
# The PostgreSQL whose catalog columns pg_catalog has: clients choose their queries by it.
SERVER_VERSION = "16.2"


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable. `check` returns the value in its canonical spelling, or None to refuse it."""

    name: str
    default: str
    description: str
    check: Callable[[str], str | None] = lambda value: value
    # Clients are told of every change.
    reported: bool = False
    read_only: bool = False
    # Values that a hint names; those that only sound better are left out.
    choices: tuple[str, ...] = ()


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


def _number(value: str) -> str | None:
    return value if value.lstrip("+-").isdigit() else None


def _float_digits(value: str) -> str | None:
    """From 1 on floats have as many digits as tell them from all others."""
    short = _number(value) is not None and len(value) <= 4
    return value if short and -15 <= int(value) <= 3 else None


_UNITS_MS = {"": 1, "ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration_ms(value: str) -> int | None:
    """Milliseconds in `500`, `5s`, `1 min`; None if it is no duration.

    >>> duration_ms("5 s"), duration_ms("250"), duration_ms("soon")
    (5000, 250, None)
    """
    digits = value.strip()
    number = digits.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = digits[len(number) :].strip()
    if not number.isdigit() or unit not in _UNITS_MS:
        return None
    return int(number) * _UNITS_MS[unit]


_SIZES = {"": 1, "b": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3, "tb": 1024**4}


def size_bytes(value: str) -> int | None:
    """Bytes in `8B`, `1MB`, `500 kb`; None if it is no size.

    >>> size_bytes("1MB"), size_bytes("8"), size_bytes("much")
    (1048576, 8, None)
    """
    lowered = value.strip().lower()
    number = lowered.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = lowered[len(number) :].strip()
    if not number.isdigit() or unit not in _SIZES:
        return None
    return int(number) * _SIZES[unit]


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


def _utc(value: str) -> str | None:
    zero = value.lower().removeprefix("etc/")
    return "UTC" if zero in ("utc", "gmt", "z", "zulu", "0", "+0", "+00", "+00:00") else None


VARIABLES: Mapping[str, Variable] = {
    variable.name.lower(): variable
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
            choices=("debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning",
                     "error"),
        ),
        Variable("cluster", "default", "The active cluster."),
        Variable("cluster_replica", "", "The replica that answers; empty: any."),
        Variable(
            "current_object_missing_warnings", "on", "Tell of names that mean nothing.", _boolean
        ),
        Variable("database", "materialize", "The current database."),
        Variable("DateStyle", "ISO, MDY", "Only ISO output.", _date_style, reported=True),
        Variable("default_table_access_method", "heap", "Asked for by clients; no choice.",
                 read_only=True),
        Variable("drop_grace_period", "1 d",
                 "How long what was dropped can be brought back; set by ALTER SYSTEM.",
                 read_only=True),
        Variable("emit_timestamp_notice", "off", "Tell each query's timestamp.", _boolean),
        Variable("extra_float_digits", "1", "Digits of floats beyond those that are always kept.",
                 _float_digits),
        Variable("failpoints", "", "For tests."),
        Variable(
            "idle_in_transaction_session_timeout", "2 min", "Ends idle transactions.", _duration
        ),
        Variable("integer_datetimes", "on", "Always on.", reported=True, read_only=True),
        Variable("IntervalStyle", "postgres", "Only postgres.", _exactly("postgres"),
                 reported=True),
        Variable("is_superuser", "on", "Whether the user may do anything.", reported=True,
                 read_only=True),
        Variable("max_query_result_size", "1GB", "The largest result.", _size),
        Variable("mz_version", f"{VERSION} (evertide)", "The version clients check.",
                 reported=True, read_only=True),
        Variable("real_time_recency", "off", "Not offered.", _boolean),
        Variable("require_incremental", "off",
                 "Refuse views, indexes and subscriptions that recompute.", _boolean),
        Variable("search_path", "public", "Schemas looked through for bare names.",
                 reported=True),
        Variable("server_version", SERVER_VERSION, "The PostgreSQL version spoken.",
                 reported=True, read_only=True),
        Variable("server_version_num", "160002", "The same as a number.", read_only=True),
        Variable("sql_safe_updates", "off", "Accepted, without effect.", _boolean),
        Variable("standard_conforming_strings", "on", "Only on.", _exactly("on"),
                 reported=True),
        Variable("statement_timeout", "60 s", "Ends statements that take longer; 0: never.",
                 _duration),
        Variable("TimeZone", "UTC", "Only UTC.", _utc, reported=True),
        Variable("transaction_isolation", "strict serializable", "How reads are ordered.",
                 _isolation),
        Variable("transaction_read_only", "off", "Accepted, without effect.", _boolean),
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
        key = name if name in self._defaults else lookup(name).name.lower()
        if key in self._local:
            return self._local[key]
        return self._session.get(key, self._defaults[key])

    def set(self, name: str, value: str | None, *, local: bool = False) -> None:
        """Set it, or with None go back to the default; reported variables are noted."""
        variable = lookup(name)
        if variable.read_only:
            raise CannotChangeParameter(f'parameter "{variable.name}" cannot be changed')
        key = variable.name.lower()
        target = self._local if local else self._session
        if value is None:
            target.pop(key, None)
            self._local.pop(key, None)
        else:
            target[key] = checked(variable, value)
            if not local:
                self._local.pop(key, None)
        self.changes += 1
        self._note(variable)

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


def checked(variable: Variable, value: str) -> str:
    """The value as it is stored; 22023 if the variable does not take it."""
    accepted = variable.check(value)
    if accepted is None:
        raise InvalidParameterValue(
            f'invalid value for parameter "{variable.name}": "{value}"',
            hint=f"Available values: {', '.join(variable.choices)}." if variable.choices else None,
        )
    return accepted
