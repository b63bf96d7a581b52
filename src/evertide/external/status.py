"""How a source or sink fares, for whoever asks."""

import time
from enum import StrEnum
from typing import TypeAlias

from evertide.vocab.ids import ClusterId, GlobalId

Facts: TypeAlias = tuple[str | int | float | bool | None, ...]


class State(StrEnum):
    """In the words of mz_source_statuses and mz_sink_statuses."""

    STARTING = "starting"
    RUNNING = "running"
    STALLED = "stalled"


class Status:
    """Of one source or sink in this process."""

    def __init__(self, global_id: GlobalId, cluster_id: ClusterId) -> None:
        self._ids = (global_id, cluster_id)
        self._state = State.STARTING
        self._error: str | None = None
        self._changed_us = time.time_ns() // 1_000

    def running(self) -> None:
        """It does what it shall."""
        self._change(State.RUNNING, None)

    def starting(self, why: str | None = None) -> None:
        """It is not so far yet."""
        self._change(State.STARTING, why)

    def stalled(self, error: str) -> None:
        """It cannot go on for now."""
        self._change(State.STALLED, error)

    def _change(self, state: State, error: str | None) -> None:
        if (state, error) != (self._state, self._error):
            self._state, self._error = state, error
            self._changed_us = time.time_ns() // 1_000

    @property
    def facts(self) -> Facts:
        """(object, cluster, state, error, when that began in microseconds)."""
        return (*self._ids, self._state.value, self._error, self._changed_us)
