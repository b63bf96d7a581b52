"""Options of clusters, replicas and profiles: their values, and who may use them."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from evertide.catalog.objects import UNBILLED, USUAL_INTROSPECTION, Introspection
from evertide.catalog.ops import NewReplica
from evertide.expr.interval_text import parse_interval
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.new_name import check_new_name
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import (
    BooleanLiteral,
    Name,
    NullLiteral,
    NumberLiteral,
    StringLiteral,
    TypedLiteral,
)
from evertide.sql.syntax.option import (
    Option,
    OptionItems,
    ReplicaDefinition,
    ReplicaDefinitions,
)
from evertide.vocab.errors import (
    DuplicateObject,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidParameterValue,
    SqlError,
    SqlSyntaxError,
)

Options = Mapping[str, Option]

MOST_REPLICAS: Final = 64
_INTROSPECTION: Final = ("INTROSPECTION INTERVAL", "INTROSPECTION DEBUGGING")
# Accepted as the peer has them, where they say no more than what is the case anyhow.
_IDLE: Final = ("DISK", "AVAILABILITY ZONE", "AVAILABILITY ZONES")
CLUSTER: Final = (
    "VIRTUAL",
    "SIZE",
    "REPLICATION FACTOR",
    "MANAGED",
    "REPLICAS",
    "SCHEDULE",
    "WORKLOAD CLASS",
    "EXPERIMENTAL ARRANGEMENT COMPRESSION",
    *_INTROSPECTION,
    *_IDLE,
)
REPLICA: Final = ("SIZE", "INTERNAL", "BILLED AS", *_INTROSPECTION, *_IDLE)
PROFILE: Final = (
    "SIZE",
    "REPLICATION FACTOR",
    "MANAGED",
    "REPLICAS",
    "BILLED",
    "BILLED AS",
    "EXPIRES AFTER",
    *_INTROSPECTION,
)


def by_name(options: Sequence[Option], accepted: Sequence[str]) -> dict[str, Option]:
    """Each option at most once, and none that nothing here would act on."""
    found: dict[str, Option] = {}
    for option in options:
        if option.name in found:
            raise SqlSyntaxError(
                f"{option.name} specified more than once", position=position_of(option.at)
            )
        if option.name not in accepted:
            raise FeatureNotSupported(
                f"cluster option {option.name} is not supported", position=position_of(option.at)
            )
        found[option.name] = option
    _check_idle(found)
    return found


def _check_idle(options: Options) -> None:
    """There is one place to run replicas, with a disk, and state is not compressed."""
    for name in ("AVAILABILITY ZONE", "AVAILABILITY ZONES"):
        for zone in zones(options.get(name)):
            raise InvalidParameterValue(
                f"unknown cluster replica availability zone {zone}",
                position=position_of(options[name].at),
            )
    if flag(options.get("EXPERIMENTAL ARRANGEMENT COMPRESSION"), default=False):
        raise FeatureNotSupported("EXPERIMENTAL ARRANGEMENT COMPRESSION is not supported")


def zones(option: Option | None) -> tuple[str, ...]:
    """The names in AVAILABILITY ZONE 'a' or AVAILABILITY ZONES ('a', 'b')."""
    match None if option is None else option.value:
        case None | NullLiteral():
            return ()
        case StringLiteral(value=text) | Name(parts=(text,)):
            return (text,)
        case OptionItems(items=items):
            assert option is not None
            return tuple(text_of(Option(option.name, item, at=option.at)) for item in items)
        case _:
            assert option is not None
            raise bad_value(option, "must provide a list of names")


def is_internal(query: QueryContext) -> bool:
    """System users connect where only operators can."""
    return query.plan.user.startswith("mz_")


def refuse_users(options: Options, names: Sequence[str], message: str, query: QueryContext) -> None:
    """Some options are for the system's own users."""
    for name in names:
        if name in options and not is_internal(query):
            raise InsufficientPrivilege(message, position=position_of(options[name].at))


def text_of(option: Option) -> str:
    match option.value:
        case StringLiteral(value=text) | Name(parts=(text,)):
            return text
        case _:
            raise bad_value(option, "must provide a string value")


def flag(option: Option | None, *, default: bool) -> bool:
    """A switch: its name alone turns it on."""
    if option is None:
        return default
    match option.value:
        case None:
            return True
        case BooleanLiteral(value=value):
            return value
        case _:
            raise bad_value(option, "must provide a boolean value")


def factor(option: Option) -> int:
    match option.value:
        case NumberLiteral(text=text) if text.isdecimal() and int(text) <= MOST_REPLICAS:
            return int(text)
        case _:
            raise bad_value(option, f"must provide an integer between 0 and {MOST_REPLICAS}")


def span_ms(option: Option) -> int:
    """An interval, zero included."""
    match option.value:
        case StringLiteral(value=text) | TypedLiteral(value=text) | NumberLiteral(text=text):
            pass
        case _:
            raise bad_value(option, "must provide an interval value")
    try:
        milliseconds = parse_interval(text).span_micros() // 1_000
    except SqlError as error:
        raise bad_value(option, error.message) from error
    if milliseconds < 0:
        raise bad_value(option, "must not be negative")
    return milliseconds


def introspection(options: Options, before: Introspection = USUAL_INTROSPECTION) -> Introspection:
    """An interval of zero turns reports off."""
    found = before
    if "INTROSPECTION INTERVAL" in options:
        option = options["INTROSPECTION INTERVAL"]
        off = isinstance(option.value, NullLiteral)
        found = msgspec.structs.replace(found, interval_ms=None if off else span_ms(option) or None)
    if "INTROSPECTION DEBUGGING" in options:
        debugging = flag(options["INTROSPECTION DEBUGGING"], default=False)
        found = msgspec.structs.replace(found, debugging=debugging)
    return found


def workload_class(options: Options, before: str | None, query: QueryContext) -> str | None:
    if "WORKLOAD CLASS" not in options:
        return before
    refuse_users(
        options, ("WORKLOAD CLASS",), "WORKLOAD CLASS not supported for non-system users", query
    )
    option = options["WORKLOAD CLASS"]
    return None if isinstance(option.value, NullLiteral) else text_of(option)


def billed_as(options: Options, before: str | None = None) -> str | None:
    """`BILLED AS 'x'`, or `BILLED = false` for nobody; None: the customer."""
    if "BILLED" in options and "BILLED AS" in options:
        raise SqlSyntaxError(
            "cannot specify both BILLED and BILLED AS", position=position_of(options["BILLED"].at)
        )
    if "BILLED" in options:
        return None if flag(options["BILLED"], default=True) else UNBILLED
    if "BILLED AS" not in options:
        return before
    option = options["BILLED AS"]
    return None if isinstance(option.value, NullLiteral) else text_of(option)


def new_replicas(
    cluster: str, option: Option | None, query: QueryContext
) -> tuple[NewReplica, ...]:
    """`REPLICAS (r1 (SIZE '1'), ...)`, each name once."""
    value = None if option is None else option.value
    definitions = value.replicas if isinstance(value, ReplicaDefinitions) else ()
    found: dict[str, NewReplica] = {}
    for definition in definitions:
        if definition.name in found:
            raise DuplicateObject(
                f"cannot create multiple replicas named '{definition.name}' on cluster '{cluster}'",
                position=position_of(definition.at),
            )
        found[definition.name] = _new_replica(definition, query)
    return tuple(found.values())


def _new_replica(definition: ReplicaDefinition, query: QueryContext) -> NewReplica:
    options = by_name(definition.options, REPLICA)
    return new_replica(definition.name, options, query, at=definition.at)


def new_replica(name: str, options: Options, query: QueryContext, *, at: int) -> NewReplica:
    """One replica by its options."""
    check_new_name(name, at)
    refuse_users(
        options,
        ("INTERNAL", "BILLED AS"),
        "cannot specify INTERNAL or BILLED AS as non-internal user",
        query,
    )
    if "SIZE" not in options:
        raise SqlSyntaxError(
            f"SIZE must be specified for replica '{name}'", position=position_of(at)
        )
    internal = flag(options.get("INTERNAL"), default=False)
    if "BILLED AS" in options and not internal:
        raise InvalidParameterValue(
            "must specify INTERNAL when specifying BILLED AS",
            position=position_of(options["BILLED AS"].at),
        )
    return NewReplica(
        name=name,
        size=text_of(options["SIZE"]),
        internal=internal,
        billed_as=billed_as(options),
        introspection=introspection(options),
    )


def bad_value(option: Option, wanted: str) -> InvalidParameterValue:
    return InvalidParameterValue(
        f"invalid {option.name}: {wanted}", position=position_of(option.at)
    )
