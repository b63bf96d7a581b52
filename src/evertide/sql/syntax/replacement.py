"""Statements about replacements: staged new definitions of materialized views."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from evertide.sql.syntax.expression import UNPLACED, Name


@dataclass(frozen=True, slots=True)
class ApplyReplacementStatement:
    """`ALTER MATERIALIZED VIEW name APPLY REPLACEMENT r [WITH (FORWARD TIME)] [WHEN READY]`."""

    name: Name
    replacement: Name
    forward_time: bool = False
    when_ready: bool = False
    if_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class RestoreVersionStatement:
    """`ALTER MATERIALIZED VIEW name RESTORE VERSION n`; versions count from 1."""

    name: Name
    version: int
    if_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


ReplacementStatement: TypeAlias = ApplyReplacementStatement | RestoreVersionStatement


@dataclass(frozen=True, slots=True)
class ExplainReplacementStatement:
    """`EXPLAIN REPLACEMENT r`."""

    name: Name
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ShowReplacementChangesStatement:
    """`SHOW REPLACEMENT CHANGES FOR r [LIMIT n]`."""

    name: Name
    limit: int | None = None  # None: all
    at: int = field(default=UNPLACED, compare=False, kw_only=True)
