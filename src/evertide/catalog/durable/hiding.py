"""Stored texts as people may see them: without passwords, and without what those are checked by."""

import re
from typing import Final

from evertide.vocab.scram import MECHANISM

# What is shown instead.
HIDDEN: Final = "…"
HIDDEN_VERIFIER: Final = f"{MECHANISM}${HIDDEN}"

_VERIFIER: Final = re.compile(rf"{MECHANISM}\$\d+:[^\s\"]*")


def hidden_verifiers(text: str) -> str:
    """The text without verifiers.

    >>> hidden_verifiers('{"verifier":"SCRAM-SHA-256$4096:c2FsdA==$a2V5:a2V5"}')
    '{"verifier":"SCRAM-SHA-256$…"}'
    """
    return _VERIFIER.sub(HIDDEN_VERIFIER, text)
