"""Plans of statements about replacements."""

from dataclasses import dataclass

from evertide.vocab.ids import ItemId


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyReplacementPlan:
    """The view gets the definition of its replacement; `create_sql` is that under its own name.

    `forward_time`: an interval may be left unreadable, so that nobody waits for the old definition.
    """

    item_id: ItemId
    replacement_id: ItemId
    create_sql: str
    forward_time: bool = False
