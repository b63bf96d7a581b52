"""Updates: what a collection is made of."""

from typing import NamedTuple

from evertide.vocab.datum import Row
from evertide.vocab.timestamp import Timestamp


class Update(NamedTuple):
    """A signed change in the multiplicity of one row at one timestamp.

    `error` is None for an ordinary row. Otherwise this is an error row: `row` is empty and `error`
    holds the encoded error (see errors.DataError) that a read of the collection reports while the
    row's multiplicity is not zero. Errors are data, so that they are retracted like data.
    """

    row: Row
    ts: Timestamp
    diff: int
    error: str | None = None
