"""A stream whose rows are shown otherwise than they are kept."""

from collections.abc import Callable, Sequence

from evertide.adapter.client import RowStream
from evertide.vocab.datum import Row


class MappedStream:
    """Implements adapter/client.py's RowStream over another one."""

    def __init__(self, rows: RowStream, shown: Callable[[Sequence[Row]], Sequence[Row]]) -> None:
        self._rows = rows
        self._shown = shown

    async def take(self, most: int | None) -> Sequence[Row] | None:
        rows = await self._rows.take(most)
        return None if rows is None else self._shown(rows)

    @property
    def ready(self) -> bool:
        return self._rows.ready

    def close(self) -> None:
        self._rows.close()
