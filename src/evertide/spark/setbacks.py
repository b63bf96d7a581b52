"""Dataflows that wait because the store was full or failing when they were tried last.

They keep what they have computed. Each is tried again after a pause that grows with the trouble of
all of them; that one of them fails again makes no other wait longer. Dataflows that met nothing go
on meanwhile.
"""

import asyncio
from typing import Final

from evertide.persist.trouble import Trouble
from evertide.spark.running import RunningDataflow
from evertide.vocab.ids import GlobalId

_REASON_LENGTH: Final = 500


class Setbacks:
    """Of one worker's dataflows."""

    def __init__(self) -> None:
        self._trouble = Trouble("keeping views and indexes up to date")
        # What each of them met.
        self._waiting: dict[GlobalId, str] = {}
        # When each of them is tried again.
        self._due_s: dict[GlobalId, float] = {}

    def reason(self, dataflow: RunningDataflow) -> str | None:
        """Why it waits, in one line; None if it does not."""
        return self._waiting.get(dataflow.description.global_id)

    def waits(self, dataflow: RunningDataflow) -> bool:
        """Whether it is too early to try this one again."""
        due_s = self._due_s.get(dataflow.description.global_id)
        return due_s is not None and _now_s() < due_s

    def met(self, dataflow: RunningDataflow, fault: Exception) -> None:
        """It was tried, in vain."""
        told = str(fault).strip().split("\n", 1)[0][:_REASON_LENGTH]
        self._waiting[dataflow.description.global_id] = told or type(fault).__name__
        self._trouble.met(fault)
        self._due_s[dataflow.description.global_id] = _now_s() + self._trouble.wait_s

    def over(self, dataflow: RunningDataflow) -> None:
        """It goes on, or is gone."""
        if dataflow.description.global_id in self._waiting:
            del self._waiting[dataflow.description.global_id]
            del self._due_s[dataflow.description.global_id]
            if not self._waiting:
                self._trouble.over()


def _now_s() -> float:
    return asyncio.get_running_loop().time()
