"""The views that are measured, and what of them is looked at after a change.

The text of a query is the same for Evertide, PostgreSQL and DuckDB. Spark has no DISTINCT ON, so it
is given another text for that.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """`focus` finds a row that shows in the view: its id, the id of the row that it refers to in
    the second changed table, and the view's key. `{ids}` in it is a list of ids to start from.
    """

    name: str
    query: str
    key: tuple[str, ...]
    focus: str
    reads: tuple[str, ...]
    # The tables that change, the larger share first.
    changed: tuple[str, ...]
    spark_query: str | None = None

    @property
    def narrow(self) -> str:
        """One key of the view, with parameters."""
        return f"SELECT * FROM {self.name} WHERE {self._condition('%s')}"

    @property
    def narrow_query(self) -> str:
        """The same key of its query, for DuckDB."""
        return f"SELECT * FROM ({self.query}) q WHERE {self._condition('?')}"

    def _condition(self, mark: str) -> str:
        return " AND ".join(f"{column} = {mark}" for column in self.key)


# Four fifths of the changes are to the first table, one fifth to the second.
SECOND_SHARE = 0.2

_ITEMS = "lineitem l JOIN orders o ON l.order_id = o.id JOIN customer c ON o.customer = c.id"
_NATIONS = f"{_ITEMS} JOIN nation n ON c.nation = n.id JOIN region r ON n.region = r.id"
_BIDS = "bids b JOIN auctions a ON b.auction = a.id"
_TOP_FOCUS = """
SELECT id, NULL, auction FROM bids
WHERE auction IN (SELECT auction FROM bids WHERE id IN ({ids}))
QUALIFY row_number() OVER (PARTITION BY auction ORDER BY amount DESC, id) = 1
ORDER BY hash(auction) LIMIT 1"""

VIEWS: Mapping[str, View] = {
    view.name: view
    for view in (
        View(
            name="q1",
            query="SELECT flag, status, count(*) AS items, sum(quantity) AS quantity,"
            " sum(price) AS price, sum(price * (100 - discount)) AS charged, sum(tax) AS tax,"
            " avg(price) AS mean, avg(quantity) AS mean_quantity FROM lineitem"
            " WHERE shipped <= DATE '1998-05-01' GROUP BY flag, status",
            key=("flag", "status"),
            focus="SELECT id, NULL, flag, status FROM lineitem"
            " WHERE shipped <= DATE '1998-05-01' AND id IN ({ids}) LIMIT 1",
            reads=("lineitem",),
            changed=("lineitem",),
        ),
        View(
            name="join3",
            query="SELECT o.placed AS placed, count(*) AS items,"
            f" sum(l.price * (100 - l.discount)) AS charged FROM {_ITEMS}"
            " WHERE c.segment = 'building' GROUP BY o.placed",
            key=("placed",),
            focus=f"SELECT l.id, o.id, o.placed FROM {_ITEMS}"
            " WHERE c.segment = 'building' AND l.id IN ({ids}) LIMIT 1",
            reads=("lineitem", "orders", "customer"),
            changed=("lineitem", "orders"),
        ),
        View(
            name="join5",
            query="SELECT n.name AS nation, o.priority AS priority, count(*) AS items,"
            f" sum(l.price * (100 - l.discount)) AS charged, sum(l.tax) AS tax FROM {_NATIONS}"
            " WHERE r.name = 'asia' GROUP BY n.name, o.priority",
            key=("nation", "priority"),
            focus=f"SELECT l.id, o.id, n.name, o.priority FROM {_NATIONS}"
            " WHERE r.name = 'asia' AND l.id IN ({ids}) LIMIT 1",
            reads=("lineitem", "orders", "customer", "nation", "region"),
            changed=("lineitem", "orders"),
        ),
        View(
            name="minmax",
            query="SELECT auction, min(amount) AS lowest, max(amount) AS highest FROM bids"
            " GROUP BY auction",
            key=("auction",),
            focus=_TOP_FOCUS,
            reads=("bids",),
            changed=("bids",),
        ),
        View(
            name="top1",
            query="SELECT DISTINCT ON (auction) auction, id AS bid, bidder, amount FROM bids"
            " ORDER BY auction, amount DESC, id",
            spark_query="SELECT auction, bid, bidder, amount FROM (SELECT auction, id AS bid,"
            " bidder, amount, row_number() OVER (PARTITION BY auction ORDER BY amount DESC, id)"
            " AS place FROM bids) WHERE place = 1",
            key=("auction",),
            focus=_TOP_FOCUS,
            reads=("bids",),
            changed=("bids",),
        ),
        View(
            name="distinct_bidders",
            query="SELECT a.category AS category, count(DISTINCT b.bidder) AS bidders,"
            f" count(*) AS bids, sum(b.amount) AS total FROM {_BIDS} GROUP BY a.category",
            key=("category",),
            focus=f"SELECT b.id, a.id, a.category FROM {_BIDS} WHERE b.id IN ({{ids}}) LIMIT 1",
            reads=("bids", "auctions"),
            changed=("bids", "auctions"),
        ),
        View(
            name="left_join",
            query="SELECT o.id AS order_id, o.placed AS placed, l.id AS item, l.price AS price"
            " FROM orders o LEFT JOIN lineitem l ON l.order_id = o.id AND l.flag = 'R'",
            key=("order_id",),
            focus="SELECT l.id, o.id, o.id FROM orders o JOIN lineitem l ON l.order_id = o.id"
            " WHERE l.flag = 'R' AND l.id IN ({ids}) LIMIT 1",
            reads=("orders", "lineitem"),
            changed=("lineitem", "orders"),
        ),
    )
}
