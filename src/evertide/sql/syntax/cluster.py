"""Statements about cluster profiles, and about replicas in them."""

from __future__ import annotations

from dataclasses import dataclass, field

from evertide.sql.syntax.expression import UNPLACED
from evertide.sql.syntax.option import Option


@dataclass(frozen=True, slots=True)
class CreateClusterProfileStatement:
    """`CREATE CLUSTER PROFILE cluster.name options`."""

    cluster: str
    name: str
    options: tuple[Option, ...] = ()
    if_not_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class AlterClusterProfileSetStatement:
    """`ALTER CLUSTER PROFILE cluster.name SET (options)`."""

    cluster: str
    name: str
    options: tuple[Option, ...]
    if_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class AlterClusterProfileResetStatement:
    """`ALTER CLUSTER PROFILE cluster.name RESET (names)`; names as in Option."""

    cluster: str
    name: str
    option_names: tuple[str, ...]
    if_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class MoveReplicaStatement:
    """`ALTER CLUSTER REPLICA cluster.name IN PROFILE profile`."""

    cluster: str
    name: str
    profile: str
    if_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)
