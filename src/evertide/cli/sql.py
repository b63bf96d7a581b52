"""`evertide sql`: psql where it is installed, a plain prompt otherwise."""

import os
import shutil
import sys
from collections.abc import Sequence

import psycopg

from evertide.cli.config import EXIT_OK, UsageError

DEFAULT_DSN = "postgresql://materialize@127.0.0.1:6875/materialize"


def run(dsn: str | None) -> int:
    """Hand over to psql, or read statements line by line until EOF."""
    target = dsn or DEFAULT_DSN
    psql = shutil.which("psql")
    if psql is not None:
        os.execv(psql, [psql, target])
    return prompt(target)


def prompt(dsn: str) -> int:
    """A statement ends with a semicolon at the end of a line; `\\q` or EOF ends the prompt."""
    try:
        connection = psycopg.connect(dsn, autocommit=True)
    except psycopg.OperationalError as error:
        raise UsageError(f"cannot connect to {dsn}: {error}") from error
    with connection:
        connection.add_notice_handler(
            lambda notice: print(f"{notice.severity}: {notice.message_primary}")
        )
        statement = ""
        while (line := _read_line(continued=bool(statement))) is not None:
            if line.strip() in ("\\q", "quit", "exit") and not statement:
                break
            statement += line
            if statement.rstrip().endswith(";"):
                run_statement(connection, statement)
                statement = ""
    return EXIT_OK


def _read_line(*, continued: bool) -> str | None:
    if sys.stdin.isatty():
        print("...> " if continued else "evertide=> ", end="", flush=True)
    return sys.stdin.readline() or None


def run_statement(connection: "psycopg.Connection[tuple[object, ...]]", statement: str) -> None:
    """Run one statement and print its rows or its tag; errors are printed, not raised."""
    try:
        cursor = connection.execute(statement.encode())
        if cursor.description is None:
            print(cursor.statusmessage)
        else:
            print_rows([column.name for column in cursor.description], cursor.fetchall())
    except psycopg.Error as error:
        print(f"ERROR: {error.diag.message_primary or error}")
        for label, text in (("DETAIL", error.diag.message_detail),
                            ("HINT", error.diag.message_hint)):  # fmt: skip
            if text:
                print(f"{label}: {text}")


def print_rows(names: Sequence[str], rows: Sequence[tuple[object, ...]]) -> None:
    """Columns side by side, as wide as their widest value."""
    texts = [["" if value is None else str(value) for value in row] for row in rows]
    widths = [max([len(name), *(len(row[i]) for row in texts)]) for i, name in enumerate(names)]
    print(" | ".join(name.ljust(width) for name, width in zip(names, widths, strict=True)))
    print("-+-".join("-" * width for width in widths))
    for row in texts:
        print(" | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)))
    print(f"({len(rows)} row{'' if len(rows) == 1 else 's'})")
