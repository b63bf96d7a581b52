"""Columns of type int2vector and oidvector, on their way to a client."""

from collections.abc import Sequence

from evertide.vocab.datum import Datum, Row


def with_words(rows: Sequence[Row], vectors: Sequence[int]) -> list[Row]:
    """The rows with the arrays in these columns as words: `1 2 3`."""
    return [
        tuple(_words(datum) if at in vectors else datum for at, datum in enumerate(row))
        for row in rows
    ]


def _words(datum: Datum) -> Datum:
    if datum is None:
        return None
    assert isinstance(datum, tuple), "vectors are kept as arrays"
    return " ".join(str(element) for element in datum)
