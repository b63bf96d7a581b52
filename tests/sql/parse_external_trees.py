"""Random trees of CREATE SOURCE and CREATE SINK."""

from collections.abc import Callable
from random import Random

from evertide.sql.syntax import expression as e
from evertide.sql.syntax import option as o
from evertide.sql.syntax.external import (
    CreateSinkStatement,
    CreateSourceStatement,
    CreateSubsourceStatement,
    LoadTable,
)
from evertide.sql.syntax.statement import Statement
from tests.sql.parse_trees import flag, identifier, maybe, name, number, some, string, text


def external(rng: Random) -> Statement:
    """A source, a subsource or a sink."""
    makers: list[Callable[[], Statement]] = [
        lambda: _source(rng),
        lambda: CreateSubsourceStatement(name(rng), name(rng), identifier(rng)),
        lambda: _sink(rng),
    ]
    return rng.choice(makers)()


def _source(rng: Random) -> CreateSourceStatement:
    names = ("TICK INTERVAL", "AS OF", "UP TO", "MAX CARDINALITY", "SEED")
    return CreateSourceStatement(
        name(rng),
        rng.choice(["COUNTER", "AUCTION"]),
        some(rng, lambda: o.Option(rng.choice(names), _value(rng)), 0, 3),
        maybe(rng, lambda: some(rng, lambda: _table(rng), 0, 3)),
        maybe(rng, lambda: identifier(rng)),
        some(rng, lambda: o.Option("RETAIN HISTORY", string(rng)), 0, 1),
        flag(rng),
        flag(rng),
    )


def _value(rng: Random) -> o.OptionValue:
    return string(rng) if flag(rng) else number(rng)


def _table(rng: Random) -> LoadTable:
    return LoadTable(identifier(rng), maybe(rng, lambda: name(rng)))


def _sink(rng: Random) -> CreateSinkStatement:
    return CreateSinkStatement(
        name(rng),
        name(rng),
        text(rng),
        "JSON",
        maybe(rng, lambda: identifier(rng)),
        some(rng, lambda: o.Option("SNAPSHOT", e.BooleanLiteral(flag(rng))), 0, 1),
        flag(rng),
    )
