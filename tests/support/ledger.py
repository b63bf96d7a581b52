"""What clients were told of their rows, and whether a table agrees."""

import secrets
from dataclasses import dataclass, field

import psycopg

# Told by the server: nothing was done, so the row must not be there.
REFUSED = {"53100"}
# Told by the server: the row may be there or not.
IN_DOUBT = {"58030"}

SMALL, LARGE = 10, 1_000_000


@dataclass
class Ledger:
    """Rows (id, pad) of one table, each with an id of its own."""

    table: str
    acknowledged: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    in_doubt: list[int] = field(default_factory=list)
    _next: int = 1

    def create(self, connection: "psycopg.Connection[tuple]") -> None:
        connection.execute(f"CREATE TABLE {self.table} (id int, pad text)")

    def insert(self, connection: "psycopg.Connection[tuple]", size: int = SMALL) -> str:
        """Insert one row with so much text that does not compress; returns what came of it."""
        number, self._next = self._next, self._next + 1
        pad = secrets.token_hex(size // 2)
        try:
            connection.execute(f"INSERT INTO {self.table} VALUES (%s, %s)", (number, pad))
        except psycopg.Error as error:
            if error.sqlstate not in REFUSED | IN_DOUBT:
                raise
            (self.refused if error.sqlstate in REFUSED else self.in_doubt).append(number)
            return str(error.sqlstate)
        self.acknowledged.append(number)
        return "acknowledged"

    def check(self, connection: "psycopg.Connection[tuple]") -> None:
        """Every acknowledged row is there once, none that was refused, those in doubt once at most.

        From then on what is there counts as acknowledged: it must not go again.
        """
        rows = connection.execute(f"SELECT id FROM {self.table} ORDER BY id").fetchall()
        found = [row[0] for row in rows]
        assert len(found) == len(set(found)), "a row is there twice"
        assert set(self.acknowledged) <= set(found)
        assert set(found) <= set(self.acknowledged) | set(self.in_doubt)
        self.acknowledged = found
        self.in_doubt = []
