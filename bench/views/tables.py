"""Tables of orders and of auctions, and rows for them: the same rows every time.

Money is bigint cents, but for `tax`, a numeric(12,2): sums of both kinds are measured.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Columns: TypeAlias = dict[str, npt.NDArray[np.generic]]
Draw: TypeAlias = np.random.Generator

SEED = 20_261
FIRST_DAY = np.datetime64("1992-01-01")
DAYS = 2_400
FLAGS = ("A", "N", "R")
STATUSES = ("F", "O")
ORDER_STATUSES = ("open", "filled", "pending")
PRIORITIES = ("1-urgent", "2-high", "3-medium", "4-low", "5-none")
SEGMENTS = ("automobile", "building", "furniture", "household", "machinery")
REGIONS = ("africa", "america", "asia", "europe", "middle east")
NATIONS = 25
CATEGORIES = 100


@dataclass(frozen=True, slots=True)
class Table:
    """Columns with their SQL types; a change of a row by UPDATE leaves `kept` as it is."""

    name: str
    columns: Mapping[str, str]
    kept: tuple[str, ...] = ()

    @property
    def create(self) -> str:
        """The same text for every system."""
        columns = ", ".join(f"{name} {kind} NOT NULL" for name, kind in self.columns.items())
        return f"CREATE TABLE {self.name} ({columns})"


TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        Table("region", {"id": "int", "name": "text"}),
        Table("nation", {"id": "int", "region": "int", "name": "text"}),
        Table("customer", {"id": "bigint", "nation": "int", "segment": "text", "name": "text"}),
        Table(
            "orders",
            {"id": "bigint", "customer": "bigint", "placed": "date", "status": "text",
             "priority": "text"},
            kept=("customer",),
        ),
        Table(
            "lineitem",
            {"id": "bigint", "order_id": "bigint", "part": "int", "quantity": "int",
             "price": "bigint", "discount": "int", "tax": "numeric(12,2)", "flag": "text",
             "status": "text", "shipped": "date"},
            kept=("order_id", "part", "flag", "shipped"),
        ),
        Table("users", {"id": "bigint", "name": "text", "city": "text"}),
        Table(
            "auctions",
            {"id": "bigint", "seller": "bigint", "category": "text", "ends": "date"},
            kept=("seller",),
        ),
        Table(
            "bids",
            {"id": "bigint", "auction": "bigint", "bidder": "bigint", "amount": "bigint",
             "placed": "date"},
            kept=("auction", "bidder"),
        ),
    )
}  # fmt: skip


def sizes(scale: float) -> dict[str, int]:
    """Rows by table; scale 1 is S, scale 10 is M."""
    full = {"customer": 20_000, "orders": 100_000, "lineitem": 400_000, "users": 10_000,
            "auctions": 20_000, "bids": 200_000}  # fmt: skip
    grown = {name: max(100, int(count * scale)) for name, count in full.items()}
    return {"region": len(REGIONS), "nation": NATIONS, **grown}


Ids: TypeAlias = npt.NDArray[np.int64]


def draw_rows(table: str, ids: Ids, live: Mapping[str, Ids], draw: Draw) -> Columns:
    """Rows with these ids; what they refer to is drawn from the ids in `live`."""
    return {"id": ids, **_DRAWN[table](ids, live, draw)}


def _text(words: tuple[str, ...], count: int, draw: Draw) -> npt.NDArray[np.object_]:
    return np.array(words, dtype=object)[draw.integers(0, len(words), count)]


def _named(prefix: str, numbers: Ids) -> npt.NDArray[np.object_]:
    return np.array([f"{prefix} {number}" for number in numbers.tolist()], dtype=object)


def _days(count: int, draw: Draw) -> npt.NDArray[np.datetime64]:
    return FIRST_DAY + draw.integers(0, DAYS, count).astype("timedelta64[D]")


def _region(ids: Ids, _live: Mapping[str, Ids], _draw: Draw) -> Columns:
    return {"name": np.array(REGIONS, dtype=object)[ids]}


def _nation(ids: Ids, live: Mapping[str, Ids], _draw: Draw) -> Columns:
    return {"region": ids % len(live["region"]), "name": _named("nation", ids)}


def _customer(ids: Ids, live: Mapping[str, Ids], draw: Draw) -> Columns:
    return {"nation": draw.choice(live["nation"], len(ids)),
            "segment": _text(SEGMENTS, len(ids), draw),
            "name": _named("customer", ids)}  # fmt: skip


def _orders(ids: Ids, live: Mapping[str, Ids], draw: Draw) -> Columns:
    return {"customer": draw.choice(live["customer"], len(ids)),
            "placed": _days(len(ids), draw),
            "status": _text(ORDER_STATUSES, len(ids), draw),
            "priority": _text(PRIORITIES, len(ids), draw)}  # fmt: skip


def _lineitem(ids: Ids, live: Mapping[str, Ids], draw: Draw) -> Columns:
    count = len(ids)
    return {"order_id": draw.choice(live["orders"], count),
            "part": draw.integers(0, 20_000, count),
            "quantity": draw.integers(1, 51, count),
            "price": draw.integers(100, 10_000_000, count),
            "discount": draw.integers(0, 11, count),
            "tax": draw.integers(1, 1_000_000, count),
            "flag": _text(FLAGS, count, draw),
            "status": _text(STATUSES, count, draw),
            "shipped": _days(count, draw)}  # fmt: skip


def _users(ids: Ids, _live: Mapping[str, Ids], draw: Draw) -> Columns:
    return {"name": _named("user", ids), "city": _named("city", draw.integers(0, 50, len(ids)))}


def _auctions(ids: Ids, live: Mapping[str, Ids], draw: Draw) -> Columns:
    return {"seller": draw.choice(live["users"], len(ids)),
            "category": _named("category", draw.integers(0, CATEGORIES, len(ids))),
            "ends": _days(len(ids), draw)}  # fmt: skip


def _bids(ids: Ids, live: Mapping[str, Ids], draw: Draw) -> Columns:
    return {"auction": draw.choice(live["auctions"], len(ids)),
            "bidder": draw.choice(live["users"], len(ids)),
            "amount": draw.integers(100, 1_000_000, len(ids)),
            "placed": _days(len(ids), draw)}  # fmt: skip


_DRAWN: Mapping[str, Callable[[Ids, Mapping[str, Ids], Draw], Columns]] = {
    "region": _region, "nation": _nation, "customer": _customer, "orders": _orders,
    "lineitem": _lineitem, "users": _users, "auctions": _auctions, "bids": _bids,
}  # fmt: skip
