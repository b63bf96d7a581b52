"""The demo's auctions: tables, views, and a generator of bids that a seed replays."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

TABLES = (
    "CREATE TABLE IF NOT EXISTS sellers (id int NOT NULL, name text, region text)",
    "CREATE TABLE IF NOT EXISTS auctions (id int NOT NULL, seller int NOT NULL, item text)",
    "CREATE TABLE IF NOT EXISTS bids (id int NOT NULL, auction int NOT NULL, amount int)",
)
VIEWS = (
    """CREATE MATERIALIZED VIEW IF NOT EXISTS winning_bids AS
       SELECT a.item, max(b.amount) AS highest, count(*) AS bids
       FROM auctions a JOIN bids b ON b.auction = a.id GROUP BY a.item""",
    """CREATE MATERIALIZED VIEW IF NOT EXISTS region_totals AS
       SELECT s.region, count(*) AS bids, sum(b.amount) AS total, avg(b.amount) AS average
       FROM sellers s JOIN auctions a ON a.seller = s.id JOIN bids b ON b.auction = a.id
       GROUP BY s.region""",
    """CREATE MATERIALIZED VIEW IF NOT EXISTS quiet_sellers AS
       SELECT s.name, count(b.id) AS bids
       FROM sellers s LEFT JOIN auctions a ON a.seller = s.id LEFT JOIN bids b ON b.auction = a.id
       GROUP BY s.name HAVING count(b.id) < 5""",
)
VIEW_NAMES = ("winning_bids", "region_totals", "quiet_sellers")

_REGIONS = ("north", "south", "east", "west")
_NAMES = ("ada", "ben", "cleo", "dov", "eve", "finn", "gia", "hal", "ivy", "jon")
_THINGS = ("clock", "violin", "lamp", "globe", "atlas", "kettle", "prism", "chair")


@dataclass(frozen=True, slots=True)
class Step:
    """One statement of the generator, with its parameters."""

    sql: str
    parameters: tuple[object, ...]


def opening_steps() -> Iterator[Step]:
    """Sellers and the first auctions."""
    for number, name in enumerate(_NAMES, start=1):
        region = _REGIONS[number % len(_REGIONS)]
        yield Step("INSERT INTO sellers VALUES (%s, %s, %s)", (number, name, region))
    for number, thing in enumerate(_THINGS, start=1):
        seller = 1 + number % (len(_NAMES) - 2)
        yield Step("INSERT INTO auctions VALUES (%s, %s, %s)", (number, seller, thing))


def bid_steps(seed: int) -> Iterator[Step]:
    """Bids for ever; now and then one is withdrawn or raised, so that views also shrink."""
    chance = random.Random(seed)
    bid = 0
    while True:
        bid += 1
        auction = chance.randint(1, len(_THINGS))
        yield Step("INSERT INTO bids VALUES (%s, %s, %s)", (bid, auction, chance.randint(1, 500)))
        if bid % 7 == 0:
            yield Step("DELETE FROM bids WHERE id = %s", (chance.randint(1, bid),))
        if bid % 5 == 0:
            raised = (chance.randint(10, 90), chance.randint(1, bid))
            yield Step("UPDATE bids SET amount = amount + %s WHERE id = %s", raised)
