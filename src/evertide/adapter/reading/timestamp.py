"""The choice of a read's timestamp; pure."""

from collections.abc import Sequence

from evertide.vocab.errors import DataException, QueryCanceled
from evertide.vocab.timestamp import Timestamp


def select_as_of(*, oracle_read_ts: Timestamp, sinces: Sequence[Timestamp]) -> Timestamp:
    """The timestamp a strict serializable read runs at.

    Not below a since: there, history has been merged and contents are no longer exact.
    Not below the oracle's reading, which must be taken after the query arrived; an older one could
    miss a write that finished before this query began.

    >>> select_as_of(oracle_read_ts=Timestamp(7), sinces=[Timestamp(3), Timestamp(9)])
    9
    """
    return max([oracle_read_ts, *sinces])


def check_fixed_as_of(fixed: Timestamp | None, at_least: Timestamp | None) -> None:
    """Within a transaction that reads at one time already, no later one can be asked for."""
    if fixed is not None and at_least is not None and fixed < at_least:
        raise DataException(
            "could not find a valid timestamp for the query",
            detail=f"the transaction reads at {fixed}, which is before {at_least}",
        )


def check_explicit_as_of(as_of: Timestamp, sinces: Sequence[Timestamp]) -> Timestamp:
    """A timestamp the user asked for: readable, or refused."""
    since = max(sinces, default=Timestamp(0))
    if as_of < since:
        raise DataException(
            "could not find a valid timestamp for the query",
            detail=f"AS OF {as_of} is before {since}, the earliest readable timestamp",
        )
    return as_of


def check_in_time(
    as_of: Timestamp, uppers: Sequence[Timestamp], now: Timestamp, limit_ms: int
) -> None:
    """Whether what follows time is known at as_of already: it lies further from now than the time
    that the statement has."""
    if min(uppers) <= as_of:
        raise QueryCanceled(
            f"what is read will not be known at {as_of} within the statement's timeout",
            detail=f"It is {now} now, and the timeout is {limit_ms} ms.",
            hint="SET statement_timeout = 0 waits for ever.",
        )
