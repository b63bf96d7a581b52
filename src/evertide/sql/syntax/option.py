"""Option lists: `SIZE = 'small', REPLICATION FACTOR 2`.

One shape serves every statement that takes options. The parser knows which names each statement
accepts and refuses others; whether a value makes sense is the planner's question.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from evertide.sql.syntax.expression import UNPLACED, Expression, Name, Scalar, TypedLiteral


@dataclass(frozen=True, slots=True)
class OptionItems:
    """A list of values in parentheses: `AVAILABILITY ZONES ('a', 'b')`, `PARTITION BY (x)`."""

    items: tuple[OptionValue, ...]
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """Words that may carry options of their own: `MANUAL`, `ON REFRESH (...)`."""

    words: str
    options: tuple[Option, ...] = ()
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ReplicaDefinition:
    name: str
    options: tuple[Option, ...]
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ReplicaDefinitions:
    """`REPLICAS (r1 (SIZE '1'), r2 (SIZE '1'))`; may be empty."""

    replicas: tuple[ReplicaDefinition, ...]
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Refresh:
    """When a materialized view is brought up to date."""

    kind: Literal["ON COMMIT", "AT CREATION", "AT", "EVERY"]
    moment: Expression | None = None  # of AT: a time; of EVERY: an interval, as a string
    aligned_to: Expression | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


OptionValue: TypeAlias = (
    Scalar | TypedLiteral | Name | OptionItems | OptionGroup | ReplicaDefinitions | Refresh
)


@dataclass(frozen=True, slots=True)
class Option:
    """`name` is in upper case, its words parted by one blank. `value` None: only the name stood."""

    name: str
    value: OptionValue | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)
