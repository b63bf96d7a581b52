"""Immutable maps of which the changed copy costs the change, not the size."""

from collections.abc import (
    Hashable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sized,
    ValuesView,
)
from typing import Final, Generic, TypeVar, cast

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")
SizedT = TypeVar("SizedT", bound=Sized)


class _Gone:
    """Stands in an overlay for a key that the base has and the map has not."""


_GONE: Final = _Gone()
_ABSENT: Final = object()
# An overlay grows to this, and to this share of its base, before both become a new base.
_OVERLAY_LEAST: Final = 32
_OVERLAY_SHARE: Final = 64


class LayeredMap(Mapping[KeyT, ValueT], Generic[KeyT, ValueT]):
    """A base that many versions share, and the few entries in which this version differs.

    A change copies the overlay alone; once that is long, it is merged into a new base, which
    happens seldom enough not to count. Iterating merges too, and keeps the result: iteration is as
    fast as a dict's, and in its order (a replaced value keeps its place).
    """

    __slots__ = ("_base", "_overlay", "_size")

    def __init__(self, base: Mapping[KeyT, ValueT] | None = None) -> None:
        self._base: dict[KeyT, ValueT] = {} if base is None else dict(base)
        self._overlay: dict[KeyT, ValueT | _Gone] = {}
        self._size = len(self._base)

    def changed(
        self, gone: Iterable[KeyT], came: Mapping[KeyT, ValueT]
    ) -> "LayeredMap[KeyT, ValueT]":
        """The map without `gone` and with `came`; a key may be in both."""
        # The overlay before the base, see _whole.
        overlay, base, size = dict(self._overlay), self._base, self._size
        for key in gone:
            size -= _holds(overlay, base, key)
            if key in base:
                overlay[key] = _GONE
            else:
                overlay.pop(key, None)
        if overlay or base:
            size += sum(not _holds(overlay, base, key) for key in came)
        else:
            size += len(came)
        overlay.update(came)
        changed: LayeredMap[KeyT, ValueT] = LayeredMap.__new__(LayeredMap)
        changed._base = base
        changed._overlay = overlay
        changed._size = size
        if len(overlay) > _OVERLAY_LEAST + len(base) // _OVERLAY_SHARE:
            changed._whole()
        return changed

    def with_filled(
        self: "LayeredMap[KeyT, SizedT]", touched: Mapping[KeyT, SizedT]
    ) -> "LayeredMap[KeyT, SizedT]":
        """The map with these values, where an empty one means that its key goes."""
        emptied = [key for key, value in touched.items() if not value]
        filled = {key: value for key, value in touched.items() if value} if emptied else touched
        return self.changed(emptied, filled)

    def look(self, key: KeyT, nothing: ValueT) -> ValueT:
        """As get, without the price of an exception where the key is missing."""
        if self._overlay:
            found = self._overlay.get(key, _ABSENT)
            if found is _GONE:
                return nothing
            if found is not _ABSENT:
                return cast("ValueT", found)
        return self._base.get(key, nothing)

    def _whole(self) -> dict[KeyT, ValueT]:
        """This map as one dict, which it keeps. Contents stay the same, so nobody can tell."""
        if self._overlay:
            whole = cast("dict[KeyT, ValueT | _Gone]", dict(self._base))
            whole.update(self._overlay)
            for key, value in self._overlay.items():
                if value is _GONE:
                    del whole[key]
            # In this order: another thread that reads between the two finds entries in both.
            self._base = cast("dict[KeyT, ValueT]", whole)
            self._overlay = {}
        return self._base

    def __getitem__(self, key: KeyT) -> ValueT:
        overlay = self._overlay
        if key in overlay:
            found = overlay[key]
            if found is _GONE:
                raise KeyError(key)
            return cast("ValueT", found)
        return self._base[key]

    def __contains__(self, key: object) -> bool:
        return _holds(self._overlay, self._base, key)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[KeyT]:
        return iter(self._whole())

    def keys(self) -> KeysView[KeyT]:
        return self._whole().keys()

    def values(self) -> ValuesView[ValueT]:
        return self._whole().values()

    def items(self) -> ItemsView[KeyT, ValueT]:
        return self._whole().items()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LayeredMap):
            return self._whole() == other._whole()
        return self._whole() == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"LayeredMap({self._whole()!r})"


def _holds(overlay: Mapping[KeyT, object], base: Mapping[KeyT, object], key: object) -> bool:
    if key in overlay:
        return overlay[cast("KeyT", key)] is not _GONE
    return key in base
