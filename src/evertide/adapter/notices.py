"""Which notices a client wants to hear."""

from collections.abc import Sequence
from typing import Final

from evertide.vocab.errors import Notice

# In order of their weight. What the client asked for itself (INFO) is always told.
_SEVERITIES: Final = (
    "DEBUG5", "DEBUG4", "DEBUG3", "DEBUG2", "DEBUG1", "DEBUG", "LOG", "NOTICE", "WARNING", "ERROR",
)  # fmt: skip


def wanted_notices(notices: Sequence[Notice], least: str) -> list[Notice]:
    """Those of at least this severity, which is a value of client_min_messages."""
    if not notices:
        return []
    weight = _SEVERITIES.index(least.upper()) if least.upper() in _SEVERITIES else 0
    return [one for one in notices if _weight(one.severity) >= weight]


def _weight(severity: str) -> int:
    return _SEVERITIES.index(severity) if severity in _SEVERITIES else len(_SEVERITIES)
