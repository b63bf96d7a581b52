"""A store that counts what it is asked: each call of it or of its handles is one round trip."""

from collections.abc import Callable
from typing import Any

from evertide.persist.store.protocol import Store

# What gives a handle, or lets go, asks nobody.
_FREE = ("consensus", "oracle_rows", "stash", "close")


class Counted:
    """Passes everything on to what it wraps, and notes the names of the calls."""

    def __init__(self, inner: Any, asked: list[str], free: tuple[str, ...] = ()) -> None:
        self._inner = inner
        self._asked = asked
        self._free = free

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found
        if name in self._free:
            return self._handle(found)

        async def call(*arguments: Any, **options: Any) -> Any:
            self._asked.append(name)
            return await found(*arguments, **options)

        return call

    def _handle(self, give: Callable[..., Any]) -> Callable[..., Any]:
        def handle(*arguments: Any) -> Any:
            given = give(*arguments)
            return given if give.__name__ == "close" else Counted(given, self._asked)

        return handle


def counted(store: Store) -> tuple[Store, list[str]]:
    """The same store, and a list to which every call of it is added."""
    asked: list[str] = []
    wrapped: Any = Counted(store, asked, _FREE)
    found: Store = wrapped
    return found, asked
