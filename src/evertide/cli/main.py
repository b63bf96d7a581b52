"""The `evertide` command: reads arguments, runs one program, returns its exit code."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from evertide.cli.config import EXIT_USAGE, Config, UsageError, check


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


def _add_stores(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, default=None, metavar="DIR")
    parser.add_argument("--consensus", default=None, metavar="URL")
    parser.add_argument("--blob", default=None, metavar="URL")
    parser.add_argument("--oracle", default=None, metavar="URL")
    parser.add_argument("--catalog", default="persist")


def _add_addresses(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sql-addr", default="127.0.0.1:6875", metavar="HOST:PORT")
    parser.add_argument("--internal-sql-addr", default="127.0.0.1:6877", metavar="HOST:PORT")
    parser.add_argument("--http-addr", default="127.0.0.1:6876", metavar="HOST:PORT")


def _add_serve(parser: argparse.ArgumentParser) -> None:
    _add_stores(parser)
    _add_addresses(parser)
    parser.add_argument("--adapters", type=int, default=1, metavar="N")
    parser.add_argument("--sizes", default=None, metavar="FILE")
    parser.add_argument("--experimental", action="store_true")
    parser.add_argument("--tick-engine", default="auto", metavar="auto|spark")


def _add_adapter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--join", action="store_true", required=True)
    _add_stores(parser)
    _add_addresses(parser)


def _add_debug(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("dump", "edit", "delete", "epoch", "upgrade-check"))
    parser.add_argument("arguments", nargs="*")
    _add_stores(parser)


def config_of(arguments: argparse.Namespace) -> Config:
    """The Config that these arguments ask for; locations default to places under --data."""
    data: Path | None = arguments.data
    if data is None and (arguments.consensus is None or arguments.blob is None):
        raise UsageError("--data DIR is required (or both --consensus and --blob)")
    root = None if data is None else data.absolute()
    consensus = arguments.consensus or f"sqlite:{root}/consensus.db"
    return check(
        Config(
            data=None if root is None else str(root),
            consensus=consensus,
            blob=arguments.blob or f"file:{root}/blob",
            oracle=arguments.oracle or consensus,
            catalog=arguments.catalog,
            sizes=getattr(arguments, "sizes", None),
            experimental=getattr(arguments, "experimental", False),
            tick_engine=getattr(arguments, "tick_engine", "auto"),
            adapters=getattr(arguments, "adapters", 1),
            sql_addr=getattr(arguments, "sql_addr", Config.__struct_defaults__[-3]),
            internal_sql_addr=getattr(
                arguments, "internal_sql_addr", Config.__struct_defaults__[-2]
            ),
            http_addr=getattr(arguments, "http_addr", Config.__struct_defaults__[-1]),
        )
    )


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
            return int(program.run(arguments.action, arguments.arguments, config_of(arguments)))
        case _:
            raise AssertionError(f"unknown command {arguments.command}")


def main(argv: Sequence[str] | None = None) -> int:
    """The entry point. Exit codes: 0 clean, 2 usage, 3 fenced, 4 store unreachable."""
    arguments = build_parser().parse_args(argv)
    try:
        return run(arguments)
    except UsageError as error:
        print(f"evertide: {error}", file=sys.stderr)
        return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(main())
