"""Names that clusters, replicas and profiles are given."""

from typing import Final

from evertide.sql.resolve import position_of
from evertide.vocab.errors import NameTooLong

LONGEST_BYTES: Final = 255


def check_new_name(name: str, at: int) -> None:
    """Names are shown in lists, logs and lists of processes, so they are kept short."""
    if len(name.encode()) > LONGEST_BYTES:
        raise NameTooLong(
            f"identifier length exceeds {LONGEST_BYTES} bytes", position=position_of(at)
        )
