"""An auction house: who is there from the beginning, and what each tick brings.

Every tick stands for itself: what it brings follows from the seed, its number and its time. Ten
ticks make an auction, which begins with the first of them; the others are bids for it.
"""

import random
from collections.abc import Iterator
from typing import Final

from evertide.catalog.objects import AuctionLoad
from evertide.vocab.datum import Row
from evertide.vocab.timestamp import Timestamp

ORGANIZATIONS: Final = 10
USERS: Final = 40
TICKS_PER_AUCTION: Final = 10
_HIGHEST_BID: Final = 500

_FIRST: Final = ("ada", "ben", "cleo", "dov", "eve", "finn", "gia", "hal", "ivy", "jon")
_TRADES: Final = ("Clockworks", "Violins", "Lanterns", "Globes", "Atlases", "Kettles", "Prisms",
                  "Chairs", "Almanacs", "Sundials")  # fmt: skip
_THINGS: Final = ("brass clock", "old violin", "ship's lantern", "star globe", "road atlas",
                  "copper kettle", "glass prism", "garden chair")  # fmt: skip

# A change of one of the tables: its name, the row, its diff.
Change = tuple[str, Row, int]


def opening_changes(load: AuctionLoad) -> Iterator[Change]:
    """Organizations, their users and their accounts: they stay as they are."""
    for number in range(1, ORGANIZATIONS + 1):
        chance = _chance(load, "organization", number)
        yield "organizations", (number, f"{_TRADES[number - 1]} Inc."), 1
        yield "accounts", (number, number, chance.randint(1_000, 99_999)), 1
    for number in range(1, USERS + 1):
        chance = _chance(load, "user", number)
        name = f"{_FIRST[(number - 1) % len(_FIRST)]} {number}"
        yield "users", (number, chance.randint(1, ORGANIZATIONS), name), 1


def auction_changes(load: AuctionLoad, tick: int, at: Timestamp) -> Iterator[Change]:
    """An auction that begins, or a bid for the one that is on."""
    auction, step = divmod(tick, TICKS_PER_AUCTION)
    chance = _chance(load, "tick", tick)
    at_us = at * 1_000
    if step == 0:
        end_us = at_us + TICKS_PER_AUCTION * load.tick_ms * 1_000
        seller, item = chance.randint(1, USERS), chance.choice(_THINGS)
        yield "auctions", (auction + 1, seller, item, end_us), 1
        return
    bid = auction * (TICKS_PER_AUCTION - 1) + step
    buyer, amount = chance.randint(1, USERS), chance.randint(1, _HIGHEST_BID)
    yield "bids", (bid, buyer, auction + 1, amount, at_us), 1


def _chance(load: AuctionLoad, what: str, number: int) -> random.Random:
    """Text as a seed gives the same numbers in every process and every version of Python 3."""
    return random.Random(f"{load.seed}/{what}/{number}")
