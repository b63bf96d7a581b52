"""Which CPUs of this host each replica runs on."""

from collections.abc import Sequence


class CpuShares:
    """Gives out the CPUs that fewest replicas have, so that two small replicas do not meet."""

    def __init__(self, cpus: Sequence[int]) -> None:
        self._cpus = tuple(sorted(cpus))
        self._given: dict[str, tuple[int, ...]] = {}

    def take(self, name: str, count: int) -> tuple[int, ...]:
        """So many CPUs for the process of this name, or all there are."""
        load = dict.fromkeys(self._cpus, 0)
        for taken in self._given.values():
            # A replica with all CPUs says nothing about which of them are free.
            if len(taken) < len(self._cpus):
                for cpu in taken:
                    load[cpu] += 1
        # From the last on: what is not pinned tends to start on the first.
        chosen = sorted(self._cpus, key=lambda cpu: (load[cpu], -cpu))[:count]
        self._given[name] = tuple(sorted(chosen))
        return self._given[name]

    def give_back(self, name: str) -> None:
        """The process of this name is no more."""
        self._given.pop(name, None)
