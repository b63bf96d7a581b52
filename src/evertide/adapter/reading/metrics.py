"""What reads count; `/metrics` shows it."""

from prometheus_client import Counter

_index_reads = Counter(
    "evertide_index_reads",
    "Reads of indexes, by whether a replica answered or the shards had to be read instead.",
    ["outcome"],
)


def count_index_read(*, answered: bool) -> None:
    """One index was asked."""
    _index_reads.labels("answered" if answered else "unanswered").inc()
