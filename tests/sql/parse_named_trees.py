"""Random statements about types and secrets."""

from collections.abc import Callable
from random import Random

from evertide.sql.syntax import named as n
from evertide.sql.syntax.expression import ListType, MapType
from evertide.sql.syntax.statement import Statement
from tests.sql.parse_trees import data_type, expression, identifier, name


def named_statement(rng: Random) -> Statement:
    makers: list[Callable[[], Statement]] = [
        lambda: n.CreateTypeStatement(name(rng), ListType(data_type(rng))),
        lambda: n.CreateTypeStatement(name(rng), MapType(data_type(rng), data_type(rng))),
        lambda: n.CreateTypeStatement(name(rng), _fields(rng)),
        lambda: n.CreateSecretStatement(name(rng), expression(rng, 2), rng.random() < 0.5),
        lambda: n.AlterSecretStatement(name(rng), expression(rng, 2), rng.random() < 0.5),
    ]
    return rng.choice(makers)()


def _fields(rng: Random) -> n.RecordFields:
    count = rng.randint(1, 3)
    return n.RecordFields(tuple(n.TypeField(identifier(rng), data_type(rng)) for _ in range(count)))
