"""Roles and schemas by their oids, and by their names."""

from functools import cached_property

from evertide.adapter.session import Session
from evertide.catalog.objects import Role, Schema
from evertide.catalog.snapshot import Snapshot
from evertide.expr.functions.text import quote_identifier
from evertide.sql.resolve import NameContext, resolve_schema
from evertide.vocab.errors import SqlError


class OwnerLookup:
    """What one snapshot says about who owns things and where they are.

    Tables by oid are made when first asked for.
    """

    def __init__(self, snapshot: Snapshot, session: Session) -> None:
        self._snapshot = snapshot
        self._names = NameContext(snapshot, session.database, session.search_path)

    @cached_property
    def _schemas(self) -> dict[int, Schema]:
        return {schema.oid: schema for schema in self._snapshot.schemas.values()}

    @cached_property
    def _roles(self) -> dict[int, Role]:
        return {role.oid: role for role in self._snapshot.roles.values()}

    def role_name(self, oid: int) -> str:
        role = self._roles.get(oid)
        return f"unknown (OID={oid})" if role is None else role.name

    def role_text(self, oid: int) -> str:
        role = self._roles.get(oid)
        return str(oid) if role is None else quote_identifier(role.name)

    def role_oid(self, name: str) -> int | None:
        role = self._snapshot.role_named(name.strip('"'))
        return None if role is None else role.oid

    def schema_name(self, oid: int) -> str:
        schema = self._schemas.get(oid)
        return str(oid) if schema is None else quote_identifier(schema.name)

    def schema_oid(self, name: str) -> int | None:
        try:
            return resolve_schema((name.strip('"'),), self._names).oid
        except SqlError:
            return None
