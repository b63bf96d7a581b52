"""The objects of one variant, among all of their kind."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar, cast

KeyT = TypeVar("KeyT", bound=Hashable)
VariantT = TypeVar("VariantT")


class VariantView(Mapping[KeyT, VariantT], Generic[KeyT, VariantT]):
    """A map without the entries that are of another variant. Costs nothing to make."""

    __slots__ = ("_all", "_variant")

    def __init__(self, everything: Mapping[object, object], variant: type[VariantT]) -> None:
        self._all = everything
        self._variant = variant

    def __getitem__(self, key: KeyT) -> VariantT:
        found = self._all[key]
        if not isinstance(found, self._variant):
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[KeyT]:
        for key, found in self._all.items():
            if isinstance(found, self._variant):
                yield cast(KeyT, key)

    def __len__(self) -> int:
        return sum(isinstance(found, self._variant) for found in self._all.values())
