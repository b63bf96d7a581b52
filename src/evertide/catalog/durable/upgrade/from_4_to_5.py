"""Version 5 keeps dropped items for a while, as rows of a kind of their own.

Everything here is as it was when version 5 came, whatever those things are called today.
"""

from collections.abc import Sequence

from evertide.catalog.durable.upgrade.plain import PlainRow


def from_4_to_5(rows: Sequence[PlainRow]) -> Sequence[PlainRow]:
    """What was dropped before is gone, so no row changes.

    From here on a row of kind dropped_item holds a whole item under "item": a later step that
    changes rows of items must change those, too.
    """
    return rows
