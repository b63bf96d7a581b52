"""UNDROP."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evertide.sql.syntax.expression import UNPLACED, Name

if TYPE_CHECKING:
    from evertide.sql.syntax.definition import ObjectKind


@dataclass(frozen=True, slots=True)
class UndropStatement:
    """`UNDROP kind [IF EXISTS] name [AS name] [RESTRICT]`, or `UNDROP [kind] ID 'u5' …`.

    RESTRICT: what was dropped along with it stays dropped, but for its indexes.
    """

    kind: ObjectKind | None  # None: whatever has the id
    name: Name | None  # None: it is named by its id
    item_id: str | None = None
    new_name: str | None = None  # None: the one it had
    if_exists: bool = False
    restrict: bool = False
    at: int = field(default=UNPLACED, compare=False, kw_only=True)
