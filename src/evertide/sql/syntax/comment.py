"""COMMENT ON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evertide.sql.syntax.expression import UNPLACED, Name

if TYPE_CHECKING:
    from evertide.sql.syntax.definition import ObjectKind


@dataclass(frozen=True, slots=True)
class CommentStatement:
    """`COMMENT ON kind name IS 'text'`; of a column the name ends with the column's."""

    kind: ObjectKind | None  # None: COLUMN
    name: Name
    comment: str | None  # None: IS NULL, which takes a comment away
    at: int = field(default=UNPLACED, compare=False, kw_only=True)
