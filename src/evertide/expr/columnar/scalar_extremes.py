"""Kernels of greatest and least, which pass over NULLs and keep the first of equal values."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from evertide.expr.columnar import scalar_comparison
from evertide.expr.columnar.column import Numbers
from evertide.expr.columnar.scalar_choice import chosen
from evertide.expr.columnar.scalar_kernel import Apply, Build, Part, Parts, null_mask
from evertide.expr.functions.build import Types
from evertide.expr.functions.comparison import IN_COLUMNS
from evertide.expr.scalar import Scalar
from evertide.vocab.sql_type import JSONB


def _extreme(better: Build) -> Build:
    def build(arguments: Sequence[Scalar]) -> Apply | None:
        compare = better(arguments[:2])
        assert compare is not None, "comparisons do not ask for literals"

        def apply(parts: Parts) -> Part:
            best = parts[0]
            for part in parts[1:]:
                best = _better(compare, part, best)
            return best

        return apply

    return build


def _better(compare: Apply, part: Part, best: Part) -> Part:
    found = compare((part, best))
    assert isinstance(found, Numbers), "booleans are numbers"
    wins = found.values
    missing, present = null_mask(best), null_mask(part)
    if missing is not None:
        wins = wins | (missing if present is None else missing & ~present)
    return chosen(np.asarray(wins), part, best)


KERNELS: Final[dict[tuple[str, Types], Build]] = {
    (name, (sql_type,)): _extreme(scalar_comparison.KERNELS[symbol, (sql_type, sql_type)])
    for sql_type in IN_COLUMNS
    for name, symbol in (("greatest", ">"), ("least", "<"))
    if sql_type != JSONB
}
