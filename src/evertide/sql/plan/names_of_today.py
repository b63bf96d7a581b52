"""Kept texts in names of today: what they name may have been renamed since they were written."""

from collections.abc import Callable, Mapping

from evertide.sql.renaming import Renaming
from evertide.vocab.ids import ItemId


def renamings(
    meant: Mapping[tuple[str, ...], ItemId], today: Callable[[ItemId], tuple[str, ...]]
) -> tuple[Renaming, Renaming]:
    """How relations, and columns that are named with their relation, are called now.

    `meant` says which item each full name meant; names that are not in it are the system's, or
    those of WITH queries. `today` gives an item's full name, or says that it is gone.
    """

    def relation(parts: tuple[str, ...]) -> tuple[str, ...]:
        return today(meant[parts]) if parts in meant else parts

    def column(parts: tuple[str, ...]) -> tuple[str, ...]:
        *qualifier, name = parts
        if len(qualifier) < 2:
            return parts
        full = [one for one in meant if one[-len(qualifier) :] == tuple(qualifier)]
        if len(full) != 1:
            return parts
        now = relation(full[0])
        if now[-1] != full[0][-1]:
            # It goes by its old name, as an alias, which nothing qualifies.
            return (full[0][-1], name)
        # In full: its schema and name alone may be those of another database's by now.
        return parts if now == full[0] else (*now, name)

    return relation, column
