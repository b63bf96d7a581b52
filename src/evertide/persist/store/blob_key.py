"""What a blob may be called, in every store: names that are harmless as paths and as URLs."""

import re
from typing import Final

_KEY: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*")


def is_key(name: str) -> bool:
    """Whether a blob may be called so."""
    return _KEY.fullmatch(name) is not None


def check_key(name: str) -> str:
    """The name itself; raises ValueError if it is none."""
    if not is_key(name):
        raise ValueError(f"not a blob key: {name!r}")
    return name
