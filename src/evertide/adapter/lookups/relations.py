"""Relations by their oids, and by their names."""

from collections.abc import Iterator
from functools import cached_property
from typing import Final

from evertide.adapter.session import Session
from evertide.catalog.builtin.registry import BUILTINS, builtin_of
from evertide.catalog.builtin.relation import Builtin
from evertide.catalog.builtin.text import query_text
from evertide.catalog.objects import Index, Item, ItemKind
from evertide.catalog.snapshot import Snapshot
from evertide.expr.functions.text import quote_identifier
from evertide.sql.parser.entry import parse_expression
from evertide.sql.resolve import NameContext, find_object
from evertide.sql.syntax.expression import Name
from evertide.vocab.errors import SqlError
from evertide.vocab.ids import ItemId

# Bare names find these too, but lists of what a user has made leave them out.
_LISTED_BY_SCHEMA: Final = ("mz_catalog", "mz_internal")


class RelationLookup:
    """What one snapshot says about relations. The table by oid is made when first asked for."""

    def __init__(self, snapshot: Snapshot, session: Session) -> None:
        self._snapshot = snapshot
        self._names = NameContext(snapshot, session.database, session.search_path)

    @cached_property
    def _relations(self) -> dict[int, Item | Builtin]:
        items = {item.oid: item for item in self._snapshot.items.values()}
        return {**{builtin.oid: builtin for builtin in BUILTINS}, **items}

    def relation(self, oid: int) -> Item | Builtin | None:
        return self._relations.get(oid)

    def text(self, oid: int) -> str:
        """A relation as one would write its name in this session; its number if it is gone."""
        relation = self._relations.get(oid)
        if relation is None:
            return str(oid) if oid else "-"
        name = quote_identifier(relation.name)
        if self._found_by_name(relation):
            return name
        return f"{quote_identifier(self._schema_of(relation))}.{name}"

    def oid(self, text: str) -> int | None:
        """The relation that a text names; None where there is none, or where it is no name."""
        try:
            name = parse_expression(text)
            found = find_object(name, self._names) if isinstance(name, Name) else None
        except SqlError:
            return None
        return None if found is None else found.oid

    def is_visible(self, oid: int) -> bool | None:
        """Whether a bare name finds it. Relations of mz_catalog are said not to be, so that a
        list of visible relations is one of the user's own."""
        relation = self._relations.get(oid)
        if relation is None:
            return None
        if self._schema_of(relation) in _LISTED_BY_SCHEMA:
            return False
        return self._found_by_name(relation)

    def _found_by_name(self, relation: Item | Builtin) -> bool:
        found = find_object(Name((relation.name,)), self._names)
        return found is not None and found.oid == relation.oid

    def _schema_of(self, relation: Item | Builtin) -> str:
        if isinstance(relation, Builtin):
            return relation.schema
        return self._snapshot.schemas[relation.schema_id].name

    def view_definition(self, oid: int, _pretty: bool = True) -> str | None:
        item = self._relations.get(oid)
        if isinstance(item, Item) and item.kind in (ItemKind.VIEW, ItemKind.MATERIALIZED_VIEW):
            return query_text(item.create_sql)
        return None

    def index_definition(self, oid: int, column: int = 0, _pretty: bool = True) -> str | None:
        """The whole index in PostgreSQL's words, or one of its keys, from 1."""
        item = self._relations.get(oid)
        if not isinstance(item, Item) or not isinstance(item.definition, Index):
            return None
        keys = list(self._key_texts(item.definition))
        if column:
            return keys[column - 1] if 0 < column <= len(keys) else None
        on = self._relation_of(item.definition.on_id)
        table = f"{quote_identifier(self._schema_of(on))}.{quote_identifier(on.name)}"
        name = quote_identifier(item.name)
        return f"CREATE INDEX {name} ON {table} USING btree ({', '.join(keys)})"

    def _key_texts(self, index: Index) -> Iterator[str]:
        columns = self._relation_of(index.on_id).desc.names
        for key in index.keys:
            if key.position is not None:
                yield quote_identifier(columns[key.position])
            else:
                yield f"({key.expression})"

    def _relation_of(self, item_id: ItemId) -> Item | Builtin:
        item = self._snapshot.items.get(item_id)
        if item is not None:
            return item
        builtin = builtin_of(item_id)
        assert builtin is not None, "what is no item is a builtin"
        return builtin
