"""How tightly operators bind, as in PostgreSQL; the parser and the printer both obey it."""

from typing import Final

OR: Final = 10
AND: Final = 20
NOT: Final = 30
IS: Final = 40
COMPARISON: Final = 50
MATCH: Final = 60  # LIKE, BETWEEN, IN
OTHER: Final = 70  # every operator without a level of its own
ADDITIVE: Final = 80
MULTIPLICATIVE: Final = 90
POWER: Final = 100
AT_TIME_ZONE: Final = 110
COLLATE: Final = 120
SIGN: Final = 130
POSTFIX: Final = 140  # subscripts, fields, casts

OPERATORS: Final = {
    **dict.fromkeys(("<", ">", "=", "<=", ">=", "<>"), COMPARISON),
    **dict.fromkeys(("+", "-"), ADDITIVE),
    **dict.fromkeys(("*", "/", "%"), MULTIPLICATIVE),
    "^": POWER,
}


def binary_precedence(operator: str, schema: tuple[str, ...]) -> int:
    """OPERATOR(schema.x) always binds like an operator without a level of its own."""
    return OTHER if schema else OPERATORS.get(operator, OTHER)
