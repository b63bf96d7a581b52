"""Who may come in by the SQL address, and how what they say is protected."""

import argparse
import ssl
import stat
from pathlib import Path
from typing import Final

import msgspec

TRUST: Final = "trust"
SCRAM: Final = "scram-sha-256"
AUTH_KINDS: Final = (TRUST, SCRAM)


class BadSecurity(Exception):
    """Flags that do not go together, or files that cannot be used."""


class Security(msgspec.Struct, frozen=True, kw_only=True):
    """What clients of the SQL address have to show. The internal one trusts whoever reaches it."""

    auth: str = TRUST
    tls_cert: str | None = None
    tls_key: str | None = None

    @property
    def passwords(self) -> bool:
        return self.auth == SCRAM

    @property
    def may_be_remote(self) -> bool:
        """Whether clients of other machines may be let in: as themselves, and unheard by others."""
        return self.passwords and self.tls_cert is not None


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--auth",
        default=TRUST,
        metavar="|".join(AUTH_KINDS),
        help="whether users of the SQL address must know their password (%(default)s)",
    )
    for flag, what in (("--tls-cert", "certificate chain"), ("--tls-key", "private key")):
        parser.add_argument(
            flag,
            type=Path,
            default=None,
            metavar="FILE",
            help=f"the server's {what}, as PEM: clients may then encrypt",
        )


def security_of(arguments: argparse.Namespace) -> Security:
    """As the flags ask for it; programs without such flags get what holds without them."""
    cert: Path | None = getattr(arguments, "tls_cert", None)
    key: Path | None = getattr(arguments, "tls_key", None)
    found = Security(
        auth=getattr(arguments, "auth", TRUST),
        tls_cert=None if cert is None else str(cert.absolute()),
        tls_key=None if key is None else str(key.absolute()),
    )
    if found.auth not in AUTH_KINDS:
        raise BadSecurity(f"--auth must be one of {', '.join(AUTH_KINDS)}, not {found.auth}")
    if (found.tls_cert is None) != (found.tls_key is None):
        raise BadSecurity("--tls-cert and --tls-key belong together")
    tls_context(found)
    return found


def tls_context(security: Security) -> ssl.SSLContext | None:
    """None: clients who ask for encryption are told that there is none."""
    if security.tls_cert is None or security.tls_key is None:
        return None
    _check_private(Path(security.tls_key))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # A key that wants a passphrase is refused: there is nobody to ask.
        context.load_cert_chain(security.tls_cert, security.tls_key, password=lambda: "")
    except (OSError, ValueError) as error:  # also ssl.SSLError
        raise BadSecurity(f"--tls-cert and --tls-key cannot be used: {error}") from error
    return context


def _check_private(key: Path) -> None:
    """A key that others can read protects nothing."""
    try:
        mode = key.stat().st_mode
    except OSError as error:
        raise BadSecurity(f"--tls-key {key}: {error.strerror}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise BadSecurity(f"--tls-key {key} can be used by others: chmod 600 it")
