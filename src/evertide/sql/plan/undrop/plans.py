"""The plan of UNDROP."""

from dataclasses import dataclass

from evertide.catalog.dropped_ops import Returning
from evertide.sql.plan.roles.rights import Needs
from evertide.vocab.errors import Notice


@dataclass(frozen=True, slots=True)
class UndropPlan:
    """These come back, what others depend on first, and the statement is allowed to who has this.

    Where materialized views go on is found out when it is run.
    """

    tag: str
    items: tuple[Returning, ...]
    needs: Needs
    notices: tuple[Notice, ...] = ()
