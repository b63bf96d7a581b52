"""The server's half of a SCRAM-SHA-256 exchange: what a client must say, and what it is told.

No sockets and no waiting. Whether the user exists makes no difference before the very end: one
without a password gets a decoy to work on, and fails where a wrong password fails.
"""

import hashlib
import re
import secrets
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final

from evertide.adapter.client import Credentials
from evertide.vocab.errors import FeatureNotSupported, InvalidPassword, ProtocolViolation
from evertide.vocab.scram import KEY_BYTES, MECHANISM, from_base64, keyed, to_base64

_NONCE_BYTES: Final = 18
# gs2 header, then the user's name (which the startup message has said already), then the nonce.
_FIRST: Final = re.compile(r"([nyp])(=[^,]*)?,(a=[^,]*)?,(m=[^,]*,)?n=([^,]*),r=([^,]+)((?:,.*)?)")
_FINAL: Final = re.compile(r"c=([^,]*),r=([^,]*)((?:,[^,]+)*),p=([A-Za-z0-9+/=]+)")
_PRINTABLE: Final = re.compile(r"[!-+\--~]+")


@dataclass(frozen=True, slots=True)
class Begun:
    """An exchange whose first half is said: what the second half must fit."""

    user: str
    credentials: Credentials
    header: str  # what the client said of channel binding
    nonce: str  # the client's, then the server's
    said: str  # both first messages, as the proof covers them
    challenge: str  # the server's first message


def begin(user: str, credentials: Credentials, mechanism: str, response: str) -> Begun:
    """Answer the client's first message."""
    if mechanism != MECHANISM:
        raise ProtocolViolation("client selected an invalid SASL authentication mechanism")
    found = _FIRST.fullmatch(response)
    if found is None:
        raise _malformed("The first message is not as RFC 5802 has it")
    binding, name, authorized, mandatory, _, client_nonce, _ = found.groups(default="")
    if binding == "p" or name:
        raise ProtocolViolation("client selected SCRAM-SHA-256 without channel binding, but binds")
    if authorized:
        raise FeatureNotSupported("client uses authorization identity, but it is not supported")
    if mandatory:
        raise FeatureNotSupported("client requires an unsupported SCRAM extension")
    if _PRINTABLE.fullmatch(client_nonce) is None:
        raise _malformed("The nonce is not printable")
    nonce = client_nonce + to_base64(secrets.token_bytes(_NONCE_BYTES))
    verifier = credentials.verifier
    challenge = f"r={nonce},s={to_base64(verifier.salt)},i={verifier.iterations}"
    header = f"{binding},,"
    bare = response.removeprefix(header)
    return Begun(user, credentials, header, nonce, f"{bare},{challenge}", challenge)


def finish(begun: Begun, response: str) -> str:
    """Check the client's proof; gives the server's own, or raises InvalidPassword."""
    found = _FINAL.fullmatch(response)
    if found is None:
        raise _malformed("The last message is not as RFC 5802 has it")
    binding, nonce, _, proof_text = found.groups(default="")
    if binding != to_base64(begun.header.encode()):
        raise ProtocolViolation("unexpected SCRAM channel-binding attribute in the last message")
    if not compare_digest(nonce.encode("utf-8", "replace"), begun.nonce.encode()):
        raise _malformed("The nonce does not match")
    proof = from_base64(proof_text)
    if proof is None or len(proof) != KEY_BYTES:
        raise _malformed("The proof is malformed")
    verifier = begun.credentials.verifier
    said = f"{begun.said},{response.rpartition(',p=')[0]}".encode()
    signature = keyed(verifier.stored_key, said)
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    meets = compare_digest(hashlib.sha256(client_key).digest(), verifier.stored_key)
    # Both are looked at in any case: what is missing must not show in the time it takes.
    if not (begun.credentials.genuine & meets):
        raise InvalidPassword(f'password authentication failed for user "{begun.user}"')
    return f"v={to_base64(keyed(verifier.server_key, said))}"


def _malformed(detail: str) -> ProtocolViolation:
    return ProtocolViolation("malformed SCRAM message", detail=f"{detail}.")
