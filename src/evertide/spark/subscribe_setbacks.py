"""Subscriptions that wait because a store or an engine failed them for a reason that may pass.

All of one replica share a growing pause and what the log is told, as views do: a full disk meets
them all at once. Their readers see nothing of it, unless another replica tells them more meanwhile.
"""

import asyncio

from evertide.persist.trouble import Trouble
from evertide.vocab.ids import GlobalId


class SubscribeSetbacks:
    """Of one replica's subscriptions, by the ids of their dataflows."""

    def __init__(self) -> None:
        self._trouble = Trouble("computing subscriptions")
        self._failing: set[GlobalId] = set()

    async def outwait(self, dataflow_id: GlobalId, fault: Exception) -> None:
        """It was tried, in vain: returns when it may be tried again."""
        self._failing.add(dataflow_id)
        self._trouble.met(fault)
        await asyncio.sleep(self._trouble.wait_s)

    def over(self, dataflow_id: GlobalId) -> None:
        """It goes on, or is gone. The pause shrinks only once none of them fails."""
        if dataflow_id in self._failing:
            self._failing.remove(dataflow_id)
            if not self._failing:
                self._trouble.over()
