"""What load generators give: the names and columns of their tables."""

from collections.abc import Mapping
from typing import Final

from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import INT4, INT8, TEXT, TIMESTAMPTZ, SqlType


def _never_null(*columns: tuple[str, SqlType]) -> RelationDesc:
    return RelationDesc(tuple(ColumnDesc(name, kind, nullable=False) for name, kind in columns))


COUNTER: Final = _never_null(("counter", INT8))

AUCTION: Final[Mapping[str, RelationDesc]] = {
    "organizations": _never_null(("id", INT8), ("name", TEXT)),
    "users": _never_null(("id", INT8), ("org_id", INT8), ("name", TEXT)),
    "accounts": _never_null(("id", INT8), ("org_id", INT8), ("balance", INT8)),
    "auctions": _never_null(
        ("id", INT8), ("seller", INT8), ("item", TEXT), ("end_time", TIMESTAMPTZ)
    ),
    "bids": _never_null(
        ("id", INT8),
        ("buyer", INT8),
        ("auction_id", INT8),
        ("amount", INT4),
        ("bid_time", TIMESTAMPTZ),
    ),
}
