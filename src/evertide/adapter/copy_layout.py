"""COPY's format as the protocol writes it."""

from evertide.adapter.client import CopyKind, CopyLayout
from evertide.sql.plan.plans import CopyFormat


def copy_layout(form: CopyFormat) -> CopyLayout:
    if form.binary:
        return CopyLayout(CopyKind.BINARY)
    kind = CopyKind.CSV if form.csv else CopyKind.TEXT
    return CopyLayout(kind, form.delimiter, form.null, form.quote)
