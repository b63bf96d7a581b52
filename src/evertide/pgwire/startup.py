"""What a client's first message must say."""

from dataclasses import dataclass

from evertide.pgwire.messages import Encryption, StartupMessage
from evertide.vocab.errors import FeatureNotSupported, InvalidAuthorization, SqlError

# Names with this prefix ask for protocol extensions; all others are the session's business.
_EXTENSION_PREFIX = "_pq_."
_NO_REPLICATION = {"false", "off", "no", "0", ""}


class TooManyConnections(SqlError):
    sqlstate = "53300"


@dataclass(slots=True)
class Gate:
    """What one address asks of those who come in by it."""

    offers_tls: bool = False
    demands_tls: bool = False
    demands_password: bool = False
    encrypted: bool = False

    def answer(self, wanted: Encryption) -> bool:
        """Whether to go on encrypted; once is enough."""
        accepted = self.offers_tls and not self.encrypted and wanted is Encryption.TLS
        self.encrypted = self.encrypted or accepted
        return accepted

    def check_encrypted(self) -> None:
        """Refuse what others on the way could read and change."""
        if self.demands_tls and not self.encrypted:
            raise InvalidAuthorization(
                "connections to this address must be encrypted",
                hint="Connect with sslmode=require, or better verify-full.",
            )


def check_startup(message: StartupMessage) -> None:
    """Refuse who speaks another protocol, wants another service, or does not say who it is."""
    if message.major != 3:
        raise FeatureNotSupported(
            f"unsupported frontend protocol {message.major}.{message.minor}: server supports 3.0"
        )
    if message.parameters.get("replication", "").lower() not in _NO_REPLICATION:
        raise FeatureNotSupported("replication connections are not supported")
    if not message.parameters.get("user"):
        raise InvalidAuthorization("no PostgreSQL user name specified in startup packet")


def unknown_extensions(message: StartupMessage) -> list[str]:
    """The protocol extensions asked for: this server has none."""
    return [name for name in message.parameters if name.startswith(_EXTENSION_PREFIX)]


def session_parameters(message: StartupMessage) -> dict[str, str]:
    """What the session is opened with: all but what was said to this protocol itself."""
    return {
        name: value
        for name, value in message.parameters.items()
        if not name.startswith(_EXTENSION_PREFIX) and name != "replication"
    }
