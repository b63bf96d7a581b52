"""Flags into one frozen Config, and Config into what a child process reads."""

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from evertide.cli.security import Security
from evertide.cli.sizes import Size

EXIT_OK = 0
EXIT_USAGE = 2
EXIT_FENCED = 3
EXIT_STORE = 4
# What is stored as the catalog contradicts itself.
EXIT_CATALOG = 5

CATALOGS = ("persist", "stash", "shadow")

# Adapter i listens on each base port plus this times i.
PORT_STRIDE = 10


class UsageError(Exception):
    """Bad flags or configuration: exit code 2."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. Port 0 picks a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def shifted(self, index: int) -> "Address":
        """The address of adapter `index`."""
        return Address(self.host, self.port + PORT_STRIDE * index if self.port else 0)


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """What every process of one environment must know. Travels as JSON over a pipe, not argv."""

    # None: everything durable is in the stores below.
    data: str | None
    consensus: str
    blob: str
    oracle: str
    # None: whichever the environment has.
    catalog: str | None = None
    sizes: dict[str, Size] = {}
    experimental: bool = False
    tick_engine: str = "auto"
    # Below this directory files of sinks may be; None: nowhere.
    sink_dir: str | None = None
    security: Security = Security()
    adapters: int = 1
    sql_addr: str = "127.0.0.1:6875"
    internal_sql_addr: str = "127.0.0.1:6877"
    http_addr: str = "127.0.0.1:6876"


_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def parse_address(text: str, *, remote: bool = False) -> Address:
    """HOST:PORT on the loopback interface.

    Others are refused unless `remote`: without authentication and TLS they would hand the data to
    the network.
    """
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdigit() or not 0 <= int(port) <= 65535:
        raise UsageError(f"not an address HOST:PORT: {text}")
    host = host.strip("[]") or "127.0.0.1"
    if host not in _LOOPBACK and not remote:
        raise UsageError(
            f"cannot listen on {host}: only loopback addresses are allowed; only --sql-addr may be"
            " another one, given --auth scram-sha-256, --tls-cert and --tls-key"
        )
    return Address(host, int(port))


def is_postgres(url: str) -> bool:
    """Whether a store's location is a PostgreSQL database."""
    return url.startswith(("postgresql://", "postgres://"))


def is_s3(url: str) -> bool:
    """Whether a blob store's location is a bucket."""
    return url.startswith("s3://")


def check(config: Config) -> Config:
    """Refuse values that are wrong, or whose part does not exist yet."""
    for flag, url in (("consensus", config.consensus), ("oracle", config.oracle)):
        if not is_postgres(url):
            _check_location(flag, url, "sqlite", "postgresql://…")
    if not is_s3(config.blob):
        _check_location("blob", config.blob, "file", "s3://BUCKET/PREFIX")
    if config.catalog is not None:
        _check_choice("catalog", config.catalog, CATALOGS)
    _check_choice("tick-engine", config.tick_engine, ("auto", "spark"))
    for name, size in config.sizes.items():
        if size.secret_file is not None and not Path(size.secret_file).is_file():
            raise UsageError(f"--sizes: secret_file of {name} is not a file: {size.secret_file}")
    if not 1 <= config.adapters <= 64:
        raise UsageError("--adapters must be between 1 and 64")
    parse_address(config.sql_addr, remote=config.security.may_be_remote)
    for address in (config.internal_sql_addr, config.http_addr):
        parse_address(address)
    return config


def _check_location(flag: str, url: str, scheme: str, other: str) -> None:
    if not url.startswith(f"{scheme}:") or url == f"{scheme}:":
        raise UsageError(f"--{flag} must be {scheme}:PATH or {other}, not {without_password(url)}")


def without_password(url: str) -> str:
    """A location as it may be shown."""
    return re.sub(r"(//[^:/@]*):[^@]*@", r"\1:…@", url)


def _check_choice(flag: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(f"--{flag} must be one of {', '.join(choices)}, not {value}")


def store_path(url: str, scheme: str) -> Path:
    """The local path behind `sqlite:PATH` or `file:PATH`."""
    prefix = f"{scheme}:"
    if not url.startswith(prefix) or len(url) == len(prefix):
        raise UsageError(f"not a {scheme} location: {url} (expected {prefix}PATH)")
    return Path(url[len(prefix) :]).absolute()


class ReadyLine(msgspec.Struct, frozen=True):
    """What an adapter tells the supervisor once it answers clients."""

    sql: str
    http: str
    internal: str


class Boot(msgspec.Struct, frozen=True, kw_only=True):
    """What the supervisor tells a child once the generation is open."""

    config: Config
    epoch: int
    # That of a separate oracle store; without one, the same.
    oracle_epoch: int
    environment_id: str
    # The private directory of this generation: the hub's and the replicas' sockets.
    runtime: str
    # adapter: its number; replica: the name of its process.
    index: int = 0
    process: str = ""
    # replica: what the catalog calls its size; None: it has none.
    size: str | None = None
    # Where an adapter that is started again must listen: clients know these addresses.
    listen: ReadyLine | None = None
