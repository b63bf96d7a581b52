"""A key's columns in a row, and how they are encoded."""

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import NamedTuple, cast

from evertide.expr.relation import Types
from evertide.persist.coding.keys import key_encoder, key_list_encoder, row_key_encoder
from evertide.vocab.datum import Datum, Row


class KeyParts(NamedTuple):
    """`pick` takes the key out of a row: of one column its value, of several a tuple of them.

    `encode` gives its encoding, `encode_all` those of many. What Python finds equal has one
    encoding; what it finds different may have one too.
    """

    types: Types
    pick: Callable[[Row], Datum]
    encode: Callable[[Datum], bytes]
    encode_all: Callable[[Iterable[Datum]], list[bytes]]

    @classmethod
    def of(cls, types: Types, columns: tuple[int, ...]) -> "KeyParts":
        """Of these columns of rows of these types."""
        key_types = tuple([types[i] for i in columns])
        if len(columns) == 1:
            (only,) = key_types
            return cls(key_types, itemgetter(*columns), key_encoder(only), key_list_encoder(only))
        pick = itemgetter(*columns) if columns else lambda _row: ()
        encode = cast("Callable[[Datum], bytes]", row_key_encoder(key_types))
        return cls(
            key_types,
            cast("Callable[[Row], Datum]", pick),
            encode,
            lambda parts: [encode(part) for part in parts],
        )
