"""Plans of CREATE TYPE, CREATE SECRET and ALTER SECRET ... AS."""

from dataclasses import dataclass, field

from evertide.vocab.ids import ItemId, SchemaId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.sql_type import SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTypePlan:
    """`parts` are ids of the types that it is made of, `fields` those of a record."""

    schema_id: SchemaId
    name: str
    create_sql: str
    type: SqlType
    parts: tuple[str, ...]
    fields: RelationDesc
    depends_on: tuple[ItemId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSecretPlan:
    """The value is in no text that could be logged. `stored_at`: where it is kept, once it is."""

    schema_id: SchemaId
    name: str
    value: bytes = field(repr=False)
    if_not_exists: bool = False
    stored_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSecretPlan:
    """Another value for a secret."""

    secret_id: ItemId
    value: bytes = field(repr=False)
    stored_at: str = ""


NamedPlan = CreateTypePlan | CreateSecretPlan | AlterSecretPlan
