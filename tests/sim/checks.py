"""What must hold of what clients were told, given what truly happened."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_back
from tests.sim.ddl import check_catalog
from tests.sim.feed import check_feed
from tests.sim.history import Followed, Forgot, Held, History, Read, Rows, Write, require
from tests.sim.node import TXNS, Place
from tests.sim.store import Done
from tests.sim.stored import COUNTERS, View
from tests.sim.truth import Changes, Truth, check_epochs


def check_all(
    place: Place, history: History, tables: Sequence[ShardId], views: Sequence[View]
) -> None:
    """Raise Violation for the first promise that was broken."""
    truth = Truth(place.store, place.blob)
    everything = [*tables, COUNTERS]
    check_time(place, truth)
    check_writes(history.writes, truth, everything)
    check_counters(truth)
    check_reads(history.reads, truth)
    check_followed(history.followed, truth)
    check_holds(history.holds, truth)
    check_drops(history.forgot, truth)
    check_catalog(history.ddls, history.catalog, truth)
    check_feed(history.fed, truth)
    for view in views:
        check_view(view, truth)


def check_time(place: Place, truth: Truth) -> None:
    """Commits have timestamps of their own, and no reading is beyond what was committed."""
    commits = [step_back(upper) for _, upper, _ in truth.shards[TXNS].appends]
    require(sorted(set(commits)) == commits, "commits have timestamps that grow")
    committed = {MIN_TS, *commits}
    store = place.oracle_store or place.store
    check_epochs(store.log)
    for entry in store.log:
        if isinstance(entry, Done):
            require(entry.read_ts in committed, f"read_ts {entry.read_ts} is not of a commit")
    moments = {v.state.upper: v.moment for v in reversed(truth.shards[TXNS].versions)}
    for entry in store.log:
        if isinstance(entry, Done) and entry.read_ts > MIN_TS:
            require(
                moments[Timestamp(entry.read_ts + 1)] <= entry.moment,
                f"read_ts {entry.read_ts} came before its write",
            )


def check_writes(writes: Sequence[Write], truth: Truth, tables: Iterable[ShardId]) -> None:
    """Each write is there once at most, whole, and where its client was told it is."""
    found = {table: truth.by_timestamp(table) for table in tables}
    happened = _when_they_happened(writes, found)
    expected: defaultdict[tuple[ShardId, Timestamp], Rows] = defaultdict(Counter)
    for write in writes:
        write_ts = happened.get(write.operation)
        if write.acknowledged is not None:
            require(
                write_ts == write.write_ts,
                f"operation {write.operation} was acknowledged at {write.write_ts} by"
                f" {write.process}, and is {'lost' if write_ts is None else f'at {write_ts}'}",
            )
        if write_ts is not None:
            require(
                not write.refused,
                f"operation {write.operation} was refused, and happened at {write_ts}",
            )
            for table, diffs in write.diffs.items():
                for row, diff in diffs:
                    expected[table, write_ts][row] += diff
    for table, by_time in found.items():
        for write_ts, rows in by_time.items():
            wanted = _without_zeros(expected[table, write_ts])
            if table == COUNTERS and ("counter", 0, 0) in rows and not wanted:
                continue  # the row that was there before any client came
            require(
                _without_zeros(rows) == wanted,
                f"{table} has {dict(rows)} at {write_ts} instead of {dict(wanted)}",
            )
    for (table, write_ts), rows in expected.items():
        require(
            not _without_zeros(rows) or write_ts in found[table],
            f"{table} lacks all of {dict(rows)} at {write_ts}: a write is there in part",
        )


def _when_they_happened(
    writes: Sequence[Write], found: dict[ShardId, dict[Timestamp, Rows]]
) -> dict[int, Timestamp]:
    """By operation: when the row that names it came."""
    happened: dict[int, Timestamp] = {}
    known = {write.operation for write in writes}
    for table, by_time in found.items():
        for write_ts, rows in by_time.items():
            for row, diff in rows.items():
                operation = int(str(row[2]))
                if operation == 0 or row[0] == "filler" or diff <= 0:
                    continue
                require(operation in known, f"{table} has {row}, which nobody wrote")
                before = happened.setdefault(operation, write_ts)
                require(
                    before == write_ts and diff == 1,
                    f"operation {operation} happened at {before} and again at {write_ts}"
                    f" ({diff} times {row} in {table})",
                )
    return happened


def check_counters(truth: Truth) -> None:
    """There is one row at any time, and it grows by one."""
    timestamps = sorted({ts for _, ts in truth.shards[COUNTERS].changes})
    value = -1
    for as_of, rows in truth.shards[COUNTERS].at(timestamps):
        require(list(rows.values()) == [1], f"{dict(rows)} at {as_of}: an increment was lost")
        (row,) = rows
        require(row[1] == value + 1, f"the counter went from {value} to {row!r} at {as_of}")
        value += 1


def check_reads(reads: Sequence[Read], truth: Truth) -> None:
    """What was seen at a timestamp is what had been written by then."""
    by_shard: defaultdict[ShardId, list[Read]] = defaultdict(list)
    for read in reads:
        by_shard[read.shard_id].append(read)
    for shard_id, some in by_shard.items():
        some.sort(key=lambda read: read.as_of)
        contents = truth.shards[shard_id].at([read.as_of for read in some])
        for read, (as_of, rows) in zip(some, contents, strict=True):
            require(
                read.rows == rows,
                f"{read.process} saw {shard_id} at {as_of} wrongly: missing"
                f" {dict(rows - read.rows)}, too much {dict(read.rows - rows)}",
            )


def check_followed(followed: Sequence[Followed], truth: Truth) -> None:
    """Whoever listened was given each update once, and all of them."""
    for one in followed:
        given: Changes = Counter()
        for update in one.updates:
            given[update.row, update.ts] += update.diff
        true: Changes = Counter(
            {
                key: diff
                for key, diff in truth.shards[one.shard_id].changes.items()
                if one.lower <= key[1] < one.upper
            }
        )
        require(
            _without_zeros(given) == _without_zeros(true),
            f"{one.process} was given other updates of {one.shard_id} in"
            f" {one.lower}..{one.upper} than there were: missing {dict(true - given)},"
            f" too much {dict(given - true)}",
        )


def check_holds(holds: Sequence[Held], truth: Truth) -> None:
    """Since does not pass a hold that somebody relies on."""
    for held in holds:
        for version in truth.shards[held.shard_id].versions:
            if version.moment < held.taken or version.now_s >= held.until_s:
                continue
            if held.released is not None and version.moment >= held.released:
                break
            require(
                version.state.since <= held.hold_ts,
                f"since of {held.shard_id} is {version.state.since}, and {held.owner} holds"
                f" {held.hold_ts}",
            )


def check_drops(forgot: Sequence[Forgot], truth: Truth) -> None:
    """A table that somebody dropped was dropped at some moment meanwhile."""
    for drop in forgot:
        versions = truth.shards[drop.shard_id].versions
        last = max(i for i, v in enumerate(versions) if v.moment <= drop.invoked)
        during = [v for v in versions[last:] if v.moment <= drop.acknowledged]
        require(any(v.state.forgotten for v in during), f"{drop.shard_id} was not dropped")


def check_view(view: View, truth: Truth) -> None:
    """The shard is the function of its inputs, at every time, whoever of two wrote it."""
    shard = truth.shards[view.shard_id]
    interesting = {lower for lower, _, _ in shard.appends} | {ts for _, ts in shard.changes}
    for shard_id in view.inputs:
        interesting |= {ts for _, ts in truth.shards[shard_id].changes}
    upper = shard.state.upper
    times = sorted(ts for ts in interesting if view.as_of <= ts < upper)
    inputs = [truth.shards[shard_id].at(times) for shard_id in view.inputs]
    appends = iter(shard.appends)
    (_, until, writer) = (view.as_of, view.as_of, None)
    for as_of, output in shard.at(times):
        while as_of >= until:
            _, until, writer = next(appends)
        rows = {s: next(i)[1] for s, i in zip(view.inputs, inputs, strict=True)}
        require(writer is not None, f"{view.shard_id} was written by nobody")
        wanted = view.definitions[writer](rows) if writer is not None else Counter()
        require(
            _without_zeros(wanted) == output,
            f"{view.shard_id} by {writer} at {as_of} is {dict(output)} instead of {dict(wanted)}",
        )


def _without_zeros(counter: Counter) -> Counter:
    return Counter({key: value for key, value in counter.items() if value})
