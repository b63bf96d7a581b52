"""Types: as columns have them, and those that users give names to."""

import msgspec

from evertide.vocab.sql_type import Kind, SqlType


class StoredType(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A SqlType as it is stored: apart from vocab's, so that stored bytes do not move with it."""

    kind: str
    precision: int | None = None
    scale: int | None = None
    length: int | None = None
    element: "StoredType | None" = None
    fields: "tuple[tuple[str, StoredType], ...] | None" = None  # of a record

    def to_sql_type(self) -> SqlType:
        fields = None
        if self.fields is not None:
            fields = tuple((name, field.to_sql_type()) for name, field in self.fields)
        return SqlType(
            Kind(self.kind),
            precision=self.precision,
            scale=self.scale,
            length=self.length,
            element=None if self.element is None else self.element.to_sql_type(),
            fields=fields,
        )


def stored_type(sql_type: SqlType) -> StoredType:
    """The stored form of a type.

    >>> stored_type(SqlType(Kind.INT4)).to_sql_type() == SqlType(Kind.INT4)
    True
    """
    fields = None
    if sql_type.fields is not None:
        fields = tuple((name, stored_type(field)) for name, field in sql_type.fields)
    return StoredType(
        kind=sql_type.kind.value,
        precision=sql_type.precision,
        scale=sql_type.scale,
        length=sql_type.length,
        element=None if sql_type.element is None else stored_type(sql_type.element),
        fields=fields,
    )


class NamedType(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="is",
    tag="type",
    gc=False,
):
    """A user's name for a list, a map or a record; its values are those of the type it names.

    The fields of a record are the columns of the item's version.
    """

    type: StoredType
    # Ids, as mz_types has them, of what it is made of: an element; a key and a value; fields.
    parts: tuple[str, ...] = ()
