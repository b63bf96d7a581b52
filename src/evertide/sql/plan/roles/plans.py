"""Plans that are catalog ops already: what statements about roles and owners ask for."""

from dataclasses import dataclass

from evertide.catalog.ops import Op
from evertide.sql.plan.roles.rights import NOTHING, Needs
from evertide.vocab.errors import Notice


@dataclass(frozen=True, slots=True)
class RolePlan:
    """Ops that happen together or not at all; made anew if another change was first."""

    tag: str
    ops: tuple[Op, ...]
    needs: Needs = NOTHING
    notices: tuple[Notice, ...] = ()
