"""Rows for a join of three tables: customers, their orders, and what was ordered."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Row: TypeAlias = tuple[int, ...]

SEGMENTS = 5
DAYS = 100

COLUMNS = {
    "customer": ("id", "segment"),
    "orders": ("id", "customer", "day"),
    "lineitem": ("order_id", "price", "quantity"),
}

QUERY = """
SELECT o.day AS day, count(*) AS items, sum(l.price * l.quantity) AS total
FROM lineitem l JOIN orders o ON l.order_id = o.id JOIN customer c ON o.customer = c.id
WHERE c.segment = 1
GROUP BY o.day"""


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows by table, and the orders whose items the view counts."""

    tables: dict[str, list[Row]]
    counted: frozenset[int]

    @classmethod
    def generate(cls, items: int) -> "Rows":
        """Items, orders and customers as 50 to 10 to 1; the same rows every time."""
        draw = random.Random(7)
        orders, customers = items // 5, items // 50
        customer: list[Row] = [(n, draw.randrange(SEGMENTS)) for n in range(customers)]
        order: list[Row] = [
            (n, draw.randrange(customers), draw.randrange(DAYS)) for n in range(orders)
        ]
        counted = frozenset(n for n, owner, _ in order if customer[owner][1] == 1)
        lines = [_item(draw, orders) for _ in range(items)]
        return cls({"customer": customer, "orders": order, "lineitem": lines}, counted)

    def more_items(self, count: int, seed: int) -> list[Row]:
        """New items of orders that exist."""
        draw = random.Random(1_000 + seed)
        return [_item(draw, len(self.tables["orders"])) for _ in range(count)]

    def count_in_view(self, items: Sequence[Row]) -> int:
        """How many of them the view counts."""
        return sum(order in self.counted for order, _, _ in items)


def _item(draw: random.Random, orders: int) -> Row:
    return draw.randrange(orders), draw.randrange(1, 10_000), draw.randrange(1, 50)


def create_table(table: str) -> str:
    """The same text for Evertide and for PostgreSQL."""
    columns = ", ".join(f"{column} int NOT NULL" for column in COLUMNS[table])
    return f"CREATE TABLE {table} ({columns})"


def insert(table: str, rows: Sequence[Row]) -> str:
    """One statement of literals."""
    return f"INSERT INTO {table} VALUES " + ", ".join(map(str, rows))


def batches(rows: Sequence[Row], size: int) -> Iterator[Sequence[Row]]:
    """The rows, `size` at a time."""
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
