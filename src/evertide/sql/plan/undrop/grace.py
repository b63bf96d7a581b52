"""ALTER SYSTEM SET drop_grace_period."""

from typing import Final

from evertide.catalog.grace import GRACE_PERIOD, period_text
from evertide.expr.interval_text import parse_interval
from evertide.vocab.errors import InvalidParameterValue, SqlError

_MOST_MS: Final = 3_650 * 86_400_000


def checked_grace(name: str, values: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The values that a system variable is set to; a grace period as the catalog keeps it."""
    if name.lower() != GRACE_PERIOD or values is None:
        return values
    text = ", ".join(values)
    try:
        period_ms = parse_interval(text).span_micros() // 1_000
    except SqlError as error:
        raise _invalid(text) from error
    if not 0 <= period_ms <= _MOST_MS:
        raise _invalid(text)
    return (period_text(period_ms),)


def _invalid(text: str) -> InvalidParameterValue:
    return InvalidParameterValue(
        f'invalid value for parameter "{GRACE_PERIOD}": "{text}"',
        hint="It is an interval of at most ten years; 0 drops things for good at once.",
    )
