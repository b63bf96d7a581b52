"""The `evertide` command: reads arguments, runs one program, returns its exit code."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from evertide.cli.config import CATALOGS, EXIT_USAGE, Config, UsageError, check, is_postgres
from evertide.cli.security import BadSecurity, Security, add_flags, security_of
from evertide.cli.sizes import BadSizes, Size, read_sizes

# Flags and their help; in brackets what holds without them.
_STORES: Final = (
    ("--consensus", "states and timelines: sqlite:PATH or postgresql://… (under --data)"),
    ("--blob", "contents: file:PATH or s3://bucket/prefix (under --data)"),
    ("--oracle", "a store of its own for the clock (the consensus store)"),
)
_ADDRESSES: Final = (
    ("--sql-addr", 6875, "where PostgreSQL clients connect"),
    ("--internal-sql-addr", 6877, "where system users connect"),
    ("--http-addr", 6876, "health and metrics"),
)
# What catalog-debug does: the word, its arguments, and the help that it is shown with.
_DEBUG_ACTIONS = (
    ("dump", (), "print every object as one line of JSON, or write that to a file"),
    (
        "edit",
        ("OBJECT-TYPE", "KEY", "VALUE"),
        "give one object a value, both as a dump shows them; a running server is fenced",
    ),
    (
        "delete",
        ("OBJECT-TYPE", "KEY"),
        "remove one object that nothing refers to; a running server is fenced",
    ),
    ("epoch", (), "print the epoch: how often the environment was opened"),
    (
        "upgrade-check",
        (),
        "tell whether this program could open the catalog; may run beside a server",
    ),
    ("move", (), "keep the catalog elsewhere from now on; a running server is fenced"),
)


def build_parser() -> argparse.ArgumentParser:
    """Every command and flag of the contract."""
    parser = argparse.ArgumentParser(prog="evertide", description="SQL views kept fresh on Spark.")
    commands = parser.add_subparsers(dest="command", required=True)
    _add_serve(commands.add_parser("serve", help="supervisor, adapters and replicas in one"))
    _add_adapter(commands.add_parser("adapter", help="one more adapter for a running environment"))
    sql = commands.add_parser("sql", help="a prompt")
    sql.add_argument("dsn", nargs="?", default=None)
    _add_debug(commands.add_parser("catalog-debug", help="look into the durable catalog"))
    demo = commands.add_parser("demo", help="auctions, bids, and views changing")
    demo.add_argument("--seconds", type=float, default=None, help="end after this long")
    demo.add_argument("--data", type=Path, default=None, help="keep the environment here")
    demo.add_argument("--plain", action="store_true", help="lines instead of a live picture")
    return parser


def _add_stores(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    parser.add_argument(
        "--data", type=Path, default=default, metavar="DIR", help="everything durable lives here"
    )
    for flag, text in _STORES:
        parser.add_argument(flag, default=default, metavar="URL", help=text)
    parser.add_argument(
        "--catalog",
        default=default,
        metavar="|".join(CATALOGS),
        help="how the catalog is kept; left out: as the environment has it, persist if it is new",
    )


def _add_addresses(parser: argparse.ArgumentParser) -> None:
    for flag, port, text in _ADDRESSES:
        parser.add_argument(
            flag,
            default=f"127.0.0.1:{port}",
            metavar="HOST:PORT",
            help=f"{text} (%(default)s); port 0 picks a free one",
        )


def _add_sink_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sink-dir",
        type=Path,
        default=None,
        metavar="DIR",
        help="files of sinks are written below this directory only (DATA/sinks)",
    )


def _add_serve(parser: argparse.ArgumentParser) -> None:
    _add_stores(parser)
    _add_addresses(parser)
    add_flags(parser)
    parser.add_argument(
        "--adapters",
        type=int,
        default=1,
        metavar="N",
        help="how many processes answer clients; each listens 10 ports further on",
    )
    parser.add_argument(
        "--sizes",
        type=Path,
        default=None,
        metavar="FILE",
        help="a JSON table of replica sizes: Spark master, cores, memory_mb, partitions",
    )
    parser.add_argument(
        "--experimental", action="store_true", help="allow virtual clusters to be created"
    )
    _add_sink_dir(parser)
    parser.add_argument(
        "--tick-engine",
        default="auto",
        metavar="auto|spark",
        help="spark: every tick of every view is a Spark SQL job (slow, for comparison)",
    )


def _add_adapter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--join", action="store_true", required=True, help="belong to the server that runs"
    )
    _add_stores(parser)
    _add_sink_dir(parser)
    _add_addresses(parser)
    add_flags(parser)


def _add_debug(parser: argparse.ArgumentParser) -> None:
    parser.description = "Look into the durable catalog of an environment, or change it by hand."
    _add_stores(parser)
    actions = parser.add_subparsers(dest="action", required=True)
    for name, arguments, text in _DEBUG_ACTIONS:
        action = actions.add_parser(name, help=text, description=text)
        for argument in arguments:
            action.add_argument(argument.lower().replace("-", "_"), metavar=argument)
        # The same flags may come before the action: then these must not undo them.
        _add_stores(action, default=argparse.SUPPRESS)
        if name == "dump":
            action.add_argument("--target", type=Path, default=None, metavar="FILE")
        if name == "upgrade-check":
            action.add_argument("--cluster-replica-sizes", type=Path, default=None, metavar="FILE")
        if name == "move":
            action.add_argument("--to", required=True, metavar="|".join(CATALOGS))


def config_of(arguments: argparse.Namespace) -> Config:
    """The Config that these arguments ask for; locations default to places under --data."""
    data: Path | None = arguments.data
    if data is None and (arguments.consensus is None or arguments.blob is None):
        raise UsageError("--data DIR is required (or both --consensus and --blob)")
    root = None if data is None else data.absolute()
    consensus = arguments.consensus or f"sqlite:{root}/consensus.db"
    return _checked(
        Config(
            data=None if root is None else str(root),
            consensus=consensus,
            blob=arguments.blob or f"file:{root}/blob",
            oracle=arguments.oracle or consensus,
            catalog=arguments.catalog,
            sizes=_sizes(getattr(arguments, "sizes", None)),
            experimental=getattr(arguments, "experimental", False),
            tick_engine=getattr(arguments, "tick_engine", "auto"),
            sink_dir=_sink_dir(getattr(arguments, "sink_dir", None), root),
            security=_security(arguments),
            adapters=getattr(arguments, "adapters", 1),
            sql_addr=getattr(arguments, "sql_addr", Config.__struct_defaults__[-3]),
            internal_sql_addr=getattr(
                arguments, "internal_sql_addr", Config.__struct_defaults__[-2]
            ),
            http_addr=getattr(arguments, "http_addr", Config.__struct_defaults__[-1]),
        )
    )


def _sink_dir(asked: Path | None, root: Path | None) -> str | None:
    """Where files of sinks may be: as asked, or under --data. Links are followed once, here."""
    found = asked if asked is not None or root is None else root / "sinks"
    return None if found is None else str(found.resolve())


def _security(arguments: argparse.Namespace) -> Security:
    try:
        return security_of(arguments)
    except BadSecurity as error:
        raise UsageError(str(error)) from error


def _sizes(path: Path | None) -> dict[str, Size]:
    if path is None:
        return {}
    try:
        return read_sizes(path)
    except BadSizes as error:
        raise UsageError(f"--sizes {error}") from error


def _checked(config: Config) -> Config:
    """Locations of PostgreSQL are checked by its own client, which is loaded only then."""
    for flag, url in (("consensus", config.consensus), ("oracle", config.oracle)):
        if is_postgres(url):
            import_module("evertide.cli.remote").check_url(flag, url)
    return check(config)


def run(arguments: argparse.Namespace) -> int:
    """Run the program named by the arguments.

    Programs are looked up by module name, so that `evertide sql` does not load Spark.
    """
    match arguments.command:
        case "serve":
            program = import_module("evertide.cli.serve")
            return int(program.run(config_of(arguments)))
        case "adapter":
            program = import_module("evertide.cli.adapter")
            return int(program.join(config_of(arguments)))
        case "sql":
            return int(import_module("evertide.cli.sql").run(arguments.dsn))
        case "demo":
            program = import_module("evertide.cli.demo")
            return int(program.run(arguments.seconds, arguments.data, plain=arguments.plain))
        case "catalog-debug":
            program = import_module("evertide.cli.catalog_debug")
            return int(program.run(arguments, config_of(arguments)))
        case _:
            raise AssertionError(f"unknown command {arguments.command}")


def main(argv: Sequence[str] | None = None) -> int:
    """The entry point. Returns the exit code, as config.py lists them."""
    arguments = build_parser().parse_args(argv)
    try:
        return run(arguments)
    except UsageError as error:
        print(f"evertide: {error}", file=sys.stderr)
        return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(main())
