"""Timestamps, timelines and frontiers.

A timestamp is a 64-bit point in a timeline. All timelines here are totally ordered, so a frontier
is one timestamp: those at or beyond it may still come. The empty frontier, "nothing will come any
more", is the greatest timestamp, which keeps comparisons plain.
"""

from enum import StrEnum
from typing import NewType

Timestamp = NewType("Timestamp", int)

MIN_TS = Timestamp(0)
# The empty frontier: a collection with this upper is sealed for ever.
EMPTY_FRONTIER = Timestamp(2**63 - 1)


class Timeline(StrEnum):
    """A set of comparable timestamps with its own oracle state."""

    EPOCH_MS = "epoch_ms"
    CATALOG = "catalog"


def step_forward(ts: Timestamp) -> Timestamp:
    """The next timestamp: the upper of a collection whose last update is at `ts`.

    >>> step_forward(Timestamp(4))
    5
    """
    return Timestamp(ts + 1)


def step_back(ts: Timestamp) -> Timestamp:
    """The last timestamp that is complete when `ts` is the upper; never below the first.

    >>> step_back(MIN_TS)
    0
    """
    return Timestamp(max(ts - 1, MIN_TS))
