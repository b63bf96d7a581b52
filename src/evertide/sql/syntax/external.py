"""CREATE SOURCE and CREATE SINK."""

from __future__ import annotations

from dataclasses import dataclass, field

from evertide.sql.syntax.expression import UNPLACED, Name
from evertide.sql.syntax.option import Option


@dataclass(frozen=True, slots=True)
class LoadTable:
    """One of a generator's tables, and what it is to be called; None: as the generator has it."""

    table: str
    name: Name | None = None
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CreateSourceStatement:
    """`FROM LOAD GENERATOR generator (load_options) FOR ...`.

    `tables` is None without FOR, and empty for FOR ALL TABLES.
    """

    name: Name
    generator: str  # in upper case
    load_options: tuple[Option, ...] = ()
    tables: tuple[LoadTable, ...] | None = None
    cluster: str | None = None  # None: the session's, written in before the text is stored
    options: tuple[Option, ...] = ()
    materialized: bool = False  # with a default index
    if_not_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CreateSubsourceStatement:
    """What is stored for a table of a source; users cannot create one by itself."""

    name: Name
    source: Name
    table: str
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CreateSinkStatement:
    """`FROM from_ INTO FILE path FORMAT format`."""

    name: Name
    from_: Name
    path: str
    format: str  # in upper case
    cluster: str | None = None  # None: the session's
    options: tuple[Option, ...] = ()
    if_not_exists: bool = False
    path_at: int = field(default=UNPLACED, compare=False, kw_only=True)
    at: int = field(default=UNPLACED, compare=False, kw_only=True)
