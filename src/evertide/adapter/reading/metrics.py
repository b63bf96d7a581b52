"""What reads count; `/metrics` shows it."""

from prometheus_client import Counter

_index_reads = Counter(
    "evertide_index_reads",
    "Reads of indexes, by whether a replica answered, this process had a copy of what the index"
    " holds, or the shards had to be read instead.",
    ["outcome"],
)

_view_reads = Counter(
    "evertide_view_reads_ahead",
    "Reads of views that wait for what their shards lack, by who told it first.",
    ["told_by"],
)


def count_read_ahead(*, by_replica: bool) -> None:
    """One view was waited for."""
    _view_reads.labels("replica" if by_replica else "shard").inc()


def count_index_read(*, answered: bool) -> None:
    """One index was asked."""
    _index_reads.labels("answered" if answered else "unanswered").inc()


_copied = _index_reads.labels("copied")


def count_copied_reads(count: int) -> None:
    """So many indexes were not asked, because what they hold is at hand."""
    _copied.inc(count)
