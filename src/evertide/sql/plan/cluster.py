"""CREATE CLUSTER: managed by size and factor, unmanaged by named replicas, or virtual."""

from collections.abc import Mapping, Sequence
from typing import Final

from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.plans import CreateClusterPlan
from evertide.sql.resolve import position_of
from evertide.sql.syntax.definition import CreateClusterStatement
from evertide.sql.syntax.expression import BooleanLiteral, Name, NumberLiteral, StringLiteral
from evertide.sql.syntax.option import Option, OptionGroup, ReplicaDefinition, ReplicaDefinitions
from evertide.vocab.errors import (
    DuplicateObject,
    FeatureNotSupported,
    InvalidParameterValue,
    SqlSyntaxError,
)

_SHAPE: Final = ("VIRTUAL", "SIZE", "REPLICATION FACTOR", "MANAGED", "REPLICAS")
# How closely a replica watches itself changes no answer; it always does.
_WITHOUT_EFFECT: Final = ("INTROSPECTION INTERVAL", "INTROSPECTION DEBUGGING")
MOST_REPLICAS: Final = 64


def plan_create_cluster(
    statement: CreateClusterStatement, query: QueryContext
) -> CreateClusterPlan:
    """A new cluster; whether its size exists is known to whoever starts replicas."""
    options = _by_name(statement.options, _SHAPE)
    known = query.plan.snapshot.cluster_named(statement.name)
    if known is not None and not statement.if_not_exists:
        raise DuplicateObject(
            f"cluster '{statement.name}' already exists", position=position_of(statement.at)
        )
    if "VIRTUAL" in options:
        return _virtual(statement, options, query)
    if "REPLICAS" in options or not _flag(options.get("MANAGED")):
        return _unmanaged(statement, options)
    if "SIZE" not in options:
        raise SqlSyntaxError(
            "SIZE must be specified for managed clusters", position=position_of(statement.at)
        )
    return CreateClusterPlan(
        name=statement.name,
        size=_text(options["SIZE"]),
        virtual=False,
        replication_factor=_factor(options.get("REPLICATION FACTOR")),
        replicas=None,
        if_not_exists=statement.if_not_exists,
    )


def _by_name(options: Sequence[Option], accepted: Sequence[str]) -> dict[str, Option]:
    found: dict[str, Option] = {}
    for option in options:
        if option.name in found:
            raise SqlSyntaxError(
                f"{option.name} specified more than once", position=position_of(option.at)
            )
        if option.name not in (*accepted, *_WITHOUT_EFFECT) and not _is_manual(option):
            raise FeatureNotSupported(
                f"cluster option {option.name} is not supported", position=position_of(option.at)
            )
        found[option.name] = option
    return found


def _is_manual(option: Option) -> bool:
    """SCHEDULE = MANUAL is what happens anyway."""
    return isinstance(option.value, OptionGroup) and option.value.words == "MANUAL"


def _virtual(
    statement: CreateClusterStatement, options: Mapping[str, Option], query: QueryContext
) -> CreateClusterPlan:
    others = [name for name in options if name in _SHAPE and name != "VIRTUAL"]
    if others:
        raise SqlSyntaxError(
            f"cannot specify both VIRTUAL and {others[0]}",
            position=position_of(options[others[0]].at),
        )
    if not query.plan.experimental:
        raise FeatureNotSupported(
            "virtual clusters are available in experimental mode only",
            hint="Start the server with --experimental, or give the cluster a SIZE.",
            position=position_of(options["VIRTUAL"].at),
        )
    return CreateClusterPlan(
        name=statement.name,
        size=None,
        virtual=True,
        replication_factor=1,
        replicas=None,
        if_not_exists=statement.if_not_exists,
    )


def _unmanaged(
    statement: CreateClusterStatement, options: Mapping[str, Option]
) -> CreateClusterPlan:
    for name in ("SIZE", "REPLICATION FACTOR"):
        if name in options:
            raise FeatureNotSupported(
                f"{name} not supported for unmanaged clusters",
                position=position_of(options[name].at),
            )
    if "REPLICAS" in options and "MANAGED" in options and _flag(options["MANAGED"]):
        raise FeatureNotSupported(
            "REPLICAS not supported for managed clusters",
            position=position_of(options["REPLICAS"].at),
        )
    value = options["REPLICAS"].value if "REPLICAS" in options else None
    definitions = value.replicas if isinstance(value, ReplicaDefinitions) else ()
    return CreateClusterPlan(
        name=statement.name,
        size=None,
        virtual=False,
        replication_factor=0,
        replicas=_replicas(statement.name, definitions),
        if_not_exists=statement.if_not_exists,
    )


def _replicas(
    cluster: str, definitions: Sequence[ReplicaDefinition]
) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for definition in definitions:
        if definition.name in found:
            raise DuplicateObject(
                f"cannot create multiple replicas named '{definition.name}' on cluster '{cluster}'",
                position=position_of(definition.at),
            )
        options = _by_name(definition.options, ("SIZE",))
        if "SIZE" not in options:
            raise SqlSyntaxError(
                f"SIZE must be specified for replica '{definition.name}'",
                position=position_of(definition.at),
            )
        found[definition.name] = _text(options["SIZE"])
    return tuple(found.items())


def _text(option: Option) -> str:
    match option.value:
        case StringLiteral(value=text) | NumberLiteral(text=text) | Name(parts=(text,)):
            return text
        case _:
            raise _bad_value(option, "a string")


def _flag(option: Option | None) -> bool:
    """MANAGED, which is also what a cluster is when nothing is said."""
    match None if option is None else option.value:
        case None:
            return True
        case BooleanLiteral(value=value):
            return value
        case _:
            assert option is not None
            raise _bad_value(option, "a boolean")


def _factor(option: Option | None) -> int:
    match None if option is None else option.value:
        case None:
            return 1
        case NumberLiteral(text=text) if text.isdecimal() and int(text) <= MOST_REPLICAS:
            return int(text)
        case _:
            assert option is not None
            raise _bad_value(option, f"an integer between 0 and {MOST_REPLICAS}")


def _bad_value(option: Option, wanted: str) -> InvalidParameterValue:
    return InvalidParameterValue(
        f"invalid {option.name}: expected {wanted}", position=position_of(option.at)
    )
