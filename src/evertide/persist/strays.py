"""Rows that a collection holds less than zero times: a writer removed what was not there.

No collection that we write does that, so whoever finds one says so instead of answering from it.
The error is data like any other: it is there from the timestamp of the removal on, and gone when
the row that was removed too early has come.
"""

from evertide.vocab.errors import InternalError, encode_error
from evertide.vocab.ids import ShardId


def stray_error(shard_id: ShardId) -> str:
    """The encoded error of a collection with such rows."""
    return encode_error(
        InternalError(
            f"shard {shard_id} holds a row less than zero times: a row was removed from it that"
            " was not there"
        )
    )
