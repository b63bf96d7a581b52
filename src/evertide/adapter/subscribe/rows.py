"""Changes as the rows that a subscriber is sent; pure."""

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import groupby
from operator import attrgetter, itemgetter

from evertide.adapter.subscribe.feed import Batch
from evertide.expr.compile import compile_scalar
from evertide.expr.row_key import group_key, in_order, picker
from evertide.sql.plan.plans import DiffForm, EnvelopeForm, SubscribePlan
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import decode_error
from evertide.vocab.sql_type import SqlType
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp
from evertide.vocab.update import Update

# The rows of one timestamp, without the columns that every row begins with.
Told = Callable[[Sequence[Update]], Iterator[Row]]


class ChangeRows:
    """How one subscription tells its changes."""

    def __init__(self, plan: SubscribePlan) -> None:
        self._progress = plan.progress
        self._nothing: Row = (None,) * (plan.desc.arity - 2)
        types = plan.columns.types
        match plan.form:
            case DiffForm(order=()):
                self._told: Told = _diffs
            case DiffForm() as form:
                self._told = _ordered(form, types)
            case EnvelopeForm() as form:
                self._told = _by_key(form, types)

    def rows(self, batch: Batch) -> Iterator[Row]:
        """The rows of a batch, then its progress; raises the error that the collection has."""
        for ts, group in groupby(batch.updates, key=attrgetter("ts")):
            updates = list(group)
            errors = [u.error for u in updates if u.error is not None and u.diff > 0]
            if errors:
                raise decode_error(min(errors))
            leading: tuple[Datum, ...] = (Decimal(ts), False) if self._progress else (Decimal(ts),)
            for row in self._told([u for u in updates if u.error is None]):
                yield leading + row
        yield from self.progress(batch.upper)

    def progress(self, upper: Timestamp) -> Iterator[Row]:
        """A row that says that nothing below `upper` will come any more, if that is wanted."""
        if self._progress and upper != EMPTY_FRONTIER:
            yield (Decimal(upper), True, *self._nothing)


def _diffs(updates: Sequence[Update]) -> Iterator[Row]:
    return ((update.diff, *update.row) for update in updates)


def _ordered(form: DiffForm, types: tuple[SqlType, ...]) -> Told:
    """Ties are broken by the whole row, so that the order is the same each time."""
    keys = [compile_scalar(key) for key in form.keys]
    width = len(keys)
    key_types = tuple(key.type for key in form.keys)
    all_types = (*key_types, *types)

    def told(updates: Sequence[Update]) -> Iterator[Row]:
        changes = [(update.diff, *update.row) for update in updates]
        keyed = [((*(key(c) for key in keys), *c[1:]), c) for c in changes]
        ordered = in_order(keyed, itemgetter(0), all_types, form.order)
        return (change for _, change in ordered)

    assert width == len(form.order), "the order numbers the keys"
    return told


def _by_key(form: EnvelopeForm, types: tuple[SqlType, ...]) -> Told:
    """One row for each key that changed: what it is now, or that it is gone.

    A key with more than one row breaks the promise that it is one, which is told in its state.
    """
    values = tuple(i for i in range(len(types)) if i not in form.key)
    key_of, value_of = picker(form.key), picker(values)
    group_of = group_key(types, form.key)
    nothing: Row = (None,) * len(values)

    def told(updates: Sequence[Update]) -> Iterator[Row]:
        keys: dict[object, list[Update]] = {}
        for update in updates:
            keys.setdefault(group_of(update.row), []).append(update)
        for changes in keys.values():
            gone = [u for u in changes if u.diff < 0]
            come = [u for u in changes if u.diff > 0]
            state = _state(gone, come, before=form.before)
            broken = state == "key_violation"
            was = nothing if broken or not gone else value_of(gone[0].row)
            now = nothing if broken or not come else value_of(come[0].row)
            both = (*was, *now) if form.before else now
            yield (state, *key_of(changes[-1].row), *both)

    return told


def _state(gone: Sequence[Update], come: Sequence[Update], *, before: bool) -> str:
    if len(gone) > 1 or len(come) > 1 or any(abs(u.diff) > 1 for u in (*gone, *come)):
        return "key_violation"
    if not come:
        return "delete"
    return "insert" if before and not gone else "upsert"
