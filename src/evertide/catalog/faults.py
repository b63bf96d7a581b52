"""Faults of the catalog as a whole, as opposed to mistakes of its users."""

from collections.abc import Sequence


class CatalogFault(Exception):
    """The stored catalog cannot be opened or changed as it is; someone must act."""


class BrokenCatalog(CatalogFault):
    """Objects that contradict one another: two with one name, or a reference that leads nowhere.

    SQL never gets this far: its own checks refuse first, in words for users. So this is a bug of
    ours, or somebody's edit by hand.
    """

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)
