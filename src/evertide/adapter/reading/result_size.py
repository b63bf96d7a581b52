"""How large a query's result may be, if the session wants less than there is room for."""

from collections.abc import Sequence

from evertide.adapter.reading.result_stream import ResultStream
from evertide.adapter.session import Session
from evertide.adapter.temporary.tables import weight_of
from evertide.adapter.variables import VARIABLES, size_bytes
from evertide.vocab.datum import Row
from evertide.vocab.errors import InsufficientResources

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def check_result_size(found: Sequence[Row] | ResultStream, session: Session) -> None:
    """Refuse rows that take more than `max_query_result_size`, once that was set."""
    wanted = session.variables.get("max_query_result_size")
    if wanted == VARIABLES["max_query_result_size"].default:
        return
    most = size_bytes(wanted)
    assert most is not None, "variables keep what is one"
    if _weight(found) > most:
        raise InsufficientResources(
            f"result exceeds max size of {_shown(most)}",
            hint="Ask for less, or raise max_query_result_size.",
        )


def _weight(found: Sequence[Row] | ResultStream) -> int:
    if isinstance(found, ResultStream):
        return found.weight
    return weight_of((row, 1) for row in found)


def _shown(size: int) -> str:
    """In the unit that leaves the fewest digits.

    >>> _shown(8), _shown(1024 * 1024)
    ('8 B', '1.0 MiB')
    """
    if size < 1024:
        return f"{size} B"
    power = min((size.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{size / 1024**power:.1f} {_UNITS[power]}"
