"""What is kept of a password: enough to check one, not enough to be one (RFC 5802 and 7677).

The text of a verifier is PostgreSQL's, so that one made elsewhere may be given instead of a
password. Its representation shows nothing of it: a verifier must not reach a log by accident.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import stringprep
import unicodedata
from dataclasses import dataclass, field
from typing import Final

MECHANISM: Final = "SCRAM-SHA-256"
ITERATIONS: Final = 4_096
KEY_BYTES: Final = 32
_SALT_BYTES: Final = 16
# A client has to do the iterations of a verifier that somebody else made.
_MOST_ITERATIONS: Final = 10_000_000
_MOST_SALT_BYTES: Final = 1_024
_TEXT: Final = re.compile(
    rf"{MECHANISM}\$(\d{{1,8}}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)"
)
# What may stand in no password, by RFC 4013.
_PROHIBITED: Final = (
    stringprep.in_table_c12, stringprep.in_table_c21_c22, stringprep.in_table_c3,
    stringprep.in_table_c4, stringprep.in_table_c5, stringprep.in_table_c6,
    stringprep.in_table_c7, stringprep.in_table_c8, stringprep.in_table_c9,
    stringprep.in_table_a1,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verifier:
    """What the server keeps. Who steals it cannot log in with it, only try passwords on it."""

    iterations: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @property
    def text(self) -> str:
        """As it is stored."""
        salt, stored, server = map(to_base64, (self.salt, self.stored_key, self.server_key))
        return f"{MECHANISM}${self.iterations}:{salt}${stored}:{server}"


def make_verifier(password: str, *, salt: bytes | None = None) -> Verifier:
    """A verifier of this password, by a salt that nobody else has."""
    salt = secrets.token_bytes(_SALT_BYTES) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", prepared(password), salt, ITERATIONS)
    client_key = keyed(salted, b"Client Key")
    return Verifier(
        ITERATIONS, salt, hashlib.sha256(client_key).digest(), keyed(salted, b"Server Key")
    )


def decoy_verifier(secret: bytes, user: str) -> Verifier:
    """For a user without a password: always the same, as if there were one, and never met.

    Its keys are not made from a password, so no password leads to them.
    """
    named = user.encode("utf-8", "replace")
    salt = keyed(secret, b"salt " + named)[:_SALT_BYTES]
    stored, server = (keyed(secret, what + named) for what in (b"stored ", b"server "))
    return Verifier(ITERATIONS, salt, stored, server)


def read_verifier(text: str) -> Verifier | None:
    """The verifier that a text is; None if it is none.

    >>> read_verifier("open sesame") is None
    True
    """
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    iterations = int(found[1])
    salt, stored, server = (from_base64(found[group]) for group in (2, 3, 4))
    if salt is None or stored is None or server is None:
        return None
    sound = (
        ITERATIONS <= iterations <= _MOST_ITERATIONS
        and len(salt) <= _MOST_SALT_BYTES
        and len(stored) == len(server) == KEY_BYTES
    )
    return Verifier(iterations, salt, stored, server) if sound else None


def prepared(password: str) -> bytes:
    """A password's bytes: different ways to type the same text are one.

    What RFC 4013 prohibits is taken as it is; so do PostgreSQL and its clients.
    """
    mapped = "".join(
        " " if stringprep.in_table_c12(one) else one
        for one in password
        if not stringprep.in_table_b1(one)
    )
    normal = unicodedata.normalize("NFKC", mapped)
    if not normal or any(refused(one) for one in normal for refused in _PROHIBITED):
        return password.encode("utf-8")
    right_to_left = [stringprep.in_table_d1(one) for one in normal]
    if any(right_to_left):
        ends = right_to_left[0] and right_to_left[-1]
        if not ends or any(stringprep.in_table_d2(one) for one in normal):
            return password.encode("utf-8")
    return normal.encode("utf-8")


def keyed(key: bytes, message: bytes) -> bytes:
    """HMAC-SHA-256."""
    return hmac.digest(key, message, "sha256")


def to_base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def from_base64(text: str) -> bytes | None:
    """None: it is not base64, or not the one spelling of these bytes."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if to_base64(raw) == text else None
