"""Types and secrets that users define."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from evertide.sql.syntax.expression import UNPLACED, DataType, Expression, ListType, MapType, Name


@dataclass(frozen=True, slots=True)
class TypeField:
    """One field of a record type."""

    name: str
    type_: DataType
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class RecordFields:
    """`(a int, b text)`."""

    fields: tuple[TypeField, ...]
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CreateTypeStatement:
    """`CREATE TYPE name AS LIST (ELEMENT TYPE = t)`, `AS MAP (...)`, or `AS (fields)`."""

    name: Name
    form: ListType | MapType | RecordFields
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class CreateSecretStatement:
    """`CREATE SECRET name AS value`."""

    name: Name
    value: Expression
    if_not_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class AlterSecretStatement:
    """`ALTER SECRET name AS value`."""

    name: Name
    value: Expression
    if_exists: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)


NamedStatement: TypeAlias = CreateTypeStatement | CreateSecretStatement | AlterSecretStatement
