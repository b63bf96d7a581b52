"""Comments by the oids of what they are on."""

from functools import cached_property
from typing import cast

from evertide.adapter.session import Session
from evertide.catalog.builtin.pg_catalog import descriptions, shared_descriptions
from evertide.catalog.builtin.registry import BUILTINS, find_builtin
from evertide.catalog.builtin.relation import Viewpoint
from evertide.catalog.snapshot import Snapshot


class CommentLookup:
    """One session's view of the comments, read when first asked for."""

    def __init__(self, snapshot: Snapshot, session: Session) -> None:
        self._at = Viewpoint(snapshot, session.database, BUILTINS)

    def comment(self, oid: int, catalog: str | None = None) -> str | None:
        """The comment on an object, of the catalog it is listed in or of whichever has one."""
        wanted = None if catalog is None else find_builtin("pg_catalog", catalog)
        if catalog is not None and wanted is None:
            return None
        found = self._comments.get((oid, 0))
        if found is None or (wanted is not None and wanted.oid != found[0]):
            return None
        return found[1]

    def column_comment(self, oid: int, number: int) -> str | None:
        """Of a relation's column; fields of types have theirs in pg_description alone."""
        found = self._comments.get((oid, number)) if number else None
        relations = find_builtin("pg_catalog", "pg_class")
        if found is None or relations is None or found[0] != relations.oid:
            return None
        return found[1]

    @cached_property
    def _comments(self) -> dict[tuple[int, int], tuple[int, str]]:
        """Catalog and text by the object's oid and the column's number; 0: the object itself."""
        own = {
            (oid, number): (catalog, text) for oid, catalog, number, text in descriptions(self._at)
        }
        shared = {(oid, 0): (catalog, text) for oid, catalog, text in shared_descriptions(self._at)}
        return cast("dict[tuple[int, int], tuple[int, str]]", {**own, **shared})
