"""`x op ANY (array)` and ALL, for arrays that are known only when they are looked at."""

from functools import cache

from evertide.expr.functions.row import ScalarFunction
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import BOOL, array_of

_WORDS = {False: " any", True: " all"}


@cache
def each_element(test: ScalarFunction, every: bool) -> ScalarFunction:
    """The operator asked of every element: NULL where only a NULL stands between it and false."""
    body, strict = test.body, test.strict

    def ask(operand: Datum, elements: tuple[Datum, ...] | None) -> bool | None:
        if elements is None:
            return None
        unknown = False
        for element in elements:
            found = None if strict and None in (operand, element) else body(operand, element)
            if found is not None and found is not every:
                return not every
            unknown = unknown or found is None
        return None if unknown else every

    operand, element = test.arguments
    return ScalarFunction(
        f"{test.name}{_WORDS[every]}",
        (operand, array_of(element)),
        BOOL,
        ask,
        strict=False,
        fallible=test.fallible,
    )


def asked_of_each(signature: str) -> tuple[str, bool] | None:
    """The signature of the operator that such a function asks, and whether of ALL."""
    name, _, types = signature.partition("(")
    for every, word in _WORDS.items():
        if name.endswith(word) and types.endswith("[])"):
            return f"{name.removesuffix(word)}({types.removesuffix('[])')})", every
    return None
