"""Rows of ordinary values: what tables are full of, and what no kernel may give up on."""

from collections.abc import Sequence
from decimal import Decimal
from random import Random

from evertide.expr.functions.row import ScalarFunction
from evertide.expr.range_text import make_range
from evertide.expr.relation import Types
from evertide.persist.coding.keys import key_encoder
from evertide.vocab.datum import Datum, Interval, Row, reduce_numeric
from evertide.vocab.sql_type import RANGE_BASES, Kind, SqlType
from tests.expr.special_arguments import SPECIAL

_WORDS = ("", "a", "abc", "Hello World", " padded ", "50%_off", "naïve", "日本語", "x\ny", "😀b")
_DAY = 86_400_000_000


def ordinary(rng: Random, sql_type: SqlType) -> Datum:
    """One value, NULL now and then."""
    if rng.random() < 0.1:
        return None
    if sql_type.element is not None:
        return tuple(ordinary(rng, sql_type.element) for _ in range(rng.randrange(4)))
    return _ordinary(rng, sql_type.kind)


def _ordinary(rng: Random, kind: Kind) -> Datum:
    match kind:
        case Kind.BOOL:
            return rng.random() < 0.5
        case Kind.INT2 | Kind.INT4 | Kind.INT8:
            return rng.randrange(-20, 100)
        case Kind.FLOAT4:
            return rng.randrange(-100, 100) / 8
        case Kind.FLOAT8:
            return rng.choice((0.0, -0.0, rng.uniform(-1e6, 1e6)))
        case Kind.NUMERIC:
            digits = rng.randrange(-(10 ** rng.randrange(1, 9)), 10**8)
            return reduce_numeric(Decimal(digits).scaleb(-rng.randrange(5)))
        case Kind.TEXT | Kind.VARCHAR | Kind.BPCHAR | Kind.NAME:
            return rng.choice(_WORDS)
        case Kind.CHAR:
            return rng.choice("abc")
        case Kind.BYTEA:
            return rng.randbytes(rng.randrange(3))
        case Kind.UUID:
            return bytes([rng.randrange(3)]) * 16
        case Kind.DATE:
            return rng.randrange(-30_000, 30_000)
        case Kind.TIME:
            return rng.randrange(_DAY)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return rng.randrange(-30_000 * _DAY, 30_000 * _DAY)
        case Kind.INTERVAL:
            return Interval(rng.randrange(-3, 3), rng.randrange(-90, 90), rng.randrange(-9, 9))
        case Kind.JSONB:
            return rng.choice(('{"a":1}', "[]", "1.5"))
        case _ if kind in RANGE_BASES:
            base = RANGE_BASES[kind]
            pair = [_ordinary(rng, base.kind) for _ in range(2)]
            low, high = sorted(pair, key=key_encoder(base))
            return make_range(base, low, high, "[)")
        case _:  # what has no sign
            return rng.randrange(100)


def argument_types(function: ScalarFunction) -> Types:
    """Its types, the last of them thrice if it may be given so."""
    types = function.arguments
    return types + types[-1:] * 2 if function.variadic else types


def ordinary_rows(rng: Random, function: ScalarFunction, count: int) -> list[Row]:
    """Arguments of a function; units and patterns are such."""
    types = argument_types(function)
    special: dict[int, Sequence[Datum]] = {
        place: values for (name, place), values in SPECIAL.items() if name == function.name
    }
    if function.name in ("varchar", "numeric"):  # modifiers
        special = {1: (5, 12), 2: (True, False) if function.name == "varchar" else (2, 0)}
    return [
        tuple(
            rng.choice(special[place]) if place in special else ordinary(rng, sql_type)
            for place, sql_type in enumerate(types)
        )
        for _ in range(count)
    ]
