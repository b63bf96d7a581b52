"""Arrangements that several dataflows of one evaluator look into.

Dataflows that keep the same rows by the same key, for a join or as an index, begin with an
arrangement each, since each starts at its own time. As soon as one of them has come exactly as far
as another, it takes over the other's and lets go of its own. From then on whoever ticks first adds
the changes; the others, which may not be that far yet, overlook what is later than they are.
Nothing is merged that one of them still tells apart.
"""

import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from evertide.dataflow.delta_plan import FlatMapNode, InputNode, LinearNode, NegateNode
from evertide.dataflow.plan_codec import node_key
from evertide.dataflow.stages import StageNode
from evertide.expr.columnar.batch import Batch, Entry
from evertide.expr.columnar.column import Column, Ints
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.arrangements.column_layer import ColumnLayer
from evertide.vocab.datum import Datum
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import MIN_TS, Timestamp

# What is kept, and by which columns: equal for readers that could share.
Contents: TypeAlias = tuple[bytes, tuple[int, ...]]


@dataclass(slots=True, eq=False)
class Shared:
    """An arrangement with all changes below `upper`, and from where on each reader looks at it."""

    arrangement: Arrangement
    # Whether rows are there whose key has a NULL; then every reader adds them.
    with_nulls: bool
    upper: Timestamp = MIN_TS
    # Before this, what it shows is not what there was.
    whole_from: Timestamp = MIN_TS
    readers: dict["Reader", Timestamp] = field(default_factory=dict)

    @property
    def first(self) -> "Reader":
        """The one of all that share it which accounts for its size."""
        return next(iter(self.readers))


class Reader:
    """One dataflow's access to an arrangement: it sees what was before its own `upper`."""

    def __init__(self, arrangement: Arrangement, *, with_nulls: bool, stays: bool = False) -> None:
        """`stays`: others may look into its arrangement, it never looks into theirs."""
        self.upper: Timestamp = MIN_TS
        self.stays = stays
        self.shared = Shared(arrangement, with_nulls)
        self.shared.readers[self] = arrangement.since

    @property
    def arrangement(self) -> Arrangement:
        """What is looked into; another one after `take_over`."""
        return self.shared.arrangement

    def probe(
        self, keys: Sequence[bytes], parts: Sequence[Datum] | None = None
    ) -> dict[bytes, Sequence[Entry]]:
        """Entries of these keys before this reader's upper; `parts` as the arrangement has it."""
        found = self.arrangement.probe(keys, parts)
        if not self._is_behind:
            return found
        before = {
            key: [entry for entry in entries if entry[1] < self.upper]
            for key, entries in found.items()
        }
        return {key: entries for key, entries in before.items() if entries}

    def find(
        self, keys: Sequence[Column], hashes: Ints, also: Sequence[ColumnLayer] = ()
    ) -> tuple[Ints, Batch]:
        """The same by columns, and whatever is found in `also`."""
        before = self.upper if self._is_behind else None
        return self.arrangement.find(keys, hashes, also, before=before)

    def add_rows(self, keyed: Mapping[bytes, Sequence[Entry]]) -> None:
        """Changes from this reader's upper on; those that another has added are left out."""
        if self._is_behind:
            known = self.shared.upper
            new = {key: [e for e in entries if e[1] >= known] for key, entries in keyed.items()}
            keyed = {key: entries for key, entries in new.items() if entries}
        self.arrangement.insert_keyed(keyed)

    def add_columns(self, layer: ColumnLayer) -> None:
        """The same by columns."""
        if self._is_behind:
            new = layer.batch.times >= self.shared.upper
            if not new.any():
                return
            layer = ColumnLayer(layer.hashes[new], layer.batch.take(new))
        self.arrangement.insert_columns(layer)

    def advance(self, upper: Timestamp) -> None:
        """All changes below `upper` have been added."""
        self.upper = upper
        self.shared.upper = max(self.shared.upper, upper)

    def look_from(self, since: Timestamp) -> None:
        """This reader does not tell apart what was before `since`."""
        readers = self.shared.readers
        readers[self] = max(since, readers[self])
        self.arrangement.advance_since(min(readers.values()))

    def take_over(self, other: "Reader") -> None:
        """Look into the other's arrangement from now on."""
        since = self.shared.readers[self]
        self.release()
        self.shared = other.shared
        self.shared.readers[self] = max(since, self.arrangement.since)

    def release(self) -> bool:
        """Look no longer. The files of an arrangement that nobody looks into go: then true."""
        readers = self.shared.readers
        del readers[self]
        if readers:
            self.arrangement.advance_since(min(readers.values()))
            return False
        shutil.rmtree(self.arrangement.levels.directory, ignore_errors=True)
        return True

    @property
    def _is_behind(self) -> bool:
        return self.shared.upper > self.upper


def can_take_over(reader: Reader, other: Reader) -> bool:
    """Whether the other's arrangement shows at this moment what the reader's own does."""
    theirs = other.shared
    if theirs is reader.shared or reader.stays or reader.upper == MIN_TS:
        return False
    if not theirs.arrangement.since < reader.upper <= theirs.upper:
        return False
    if reader.upper <= max(reader.shared.whole_from, theirs.whole_from):
        return False
    # A join never asks for NULL, so it may look where such rows are; not the other way round.
    return theirs.with_nulls or not reader.shared.with_nulls


class Sharing:
    """All readers of one evaluator, by what they read."""

    def __init__(
        self,
        settle: Callable[[Collection[Arrangement]], None],
        is_damaged: Callable[[Arrangement], bool],
    ) -> None:
        """`settle` ends what works on these beside the ticks, before one is let go."""
        self._settle = settle
        self._is_damaged = is_damaged
        self._of_dataflow: dict[GlobalId, Mapping[Reader, Contents]] = {}
        self._by_contents: dict[Contents, list[Reader]] = {}

    def add(self, dataflow_id: GlobalId, readers: Mapping[Reader, Contents]) -> None:
        """From now on they may share. Those that stay come first, so that others come to them."""
        self._of_dataflow[dataflow_id] = readers
        for reader, contents in readers.items():
            equal = self._by_contents.setdefault(contents, [])
            equal.insert(0 if reader.stays else len(equal), reader)

    def remove(self, dataflow_id: GlobalId) -> None:
        """It reads no longer."""
        for reader, contents in self._of_dataflow.pop(dataflow_id).items():
            equal = self._by_contents[contents]
            equal.remove(reader)
            if not equal:
                del self._by_contents[contents]

    def bring_together(self, dataflow_id: GlobalId) -> None:
        """After a tick: whoever can looks into the arrangement of the first of its equals.

        Not into one that is damaged: who was built again because of it would only meet it again.
        """
        for contents in self._of_dataflow[dataflow_id].values():
            equal = self._by_contents[contents]
            if len(equal) == 1:
                continue
            sound = [reader for reader in equal if not self._is_damaged(reader.arrangement)]
            for reader in sound[1:]:
                if can_take_over(reader, sound[0]):
                    if len(reader.shared.readers) == 1:
                        self._settle((reader.arrangement,))
                    # Who let go of what is damaged could not be told to begin again.
                    if not self._is_damaged(reader.arrangement):
                        reader.take_over(sound[0])


def contents_of(nodes: Sequence[StageNode], position: int, key: tuple[int, ...]) -> Contents | None:
    """What a node's rows are, if that follows from one input alone, change by change."""
    names: list[bytes] = []
    while True:
        node = nodes[position]
        if isinstance(node, InputNode):
            return (b"".join([*names, node_key(node)]), key)
        if not isinstance(node, LinearNode | FlatMapNode | NegateNode):
            return None
        names.append(node_key(replace(node, input=0)))
        position = node.input
