"""Goal: no value is too large, no key is left out, no event loop is special."""

import asyncio
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import uvloop

from tests.support.s3 import SLOW_DOWN, Ask, Seen, create_bucket, running_proxy, s3_blob

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


async def test_all_keys_are_listed_however_many(s3_endpoint: str) -> None:
    """A server lists a thousand keys at a time."""
    blob = s3_blob(s3_endpoint)
    keys = [f"shard{number % 7}/{number}" for number in range(1_100)]
    await asyncio.gather(*(blob.put(key, b"") for key in keys))
    assert await blob.keys() == sorted(keys)


async def test_prefixes_of_one_bucket_keep_apart(s3_endpoint: str) -> None:
    bucket = create_bucket(s3_endpoint)
    ours = s3_blob(s3_endpoint, place=f"{bucket}/some/prefix")
    theirs = s3_blob(s3_endpoint, place=f"{bucket}/some/prefixed")
    everything = s3_blob(s3_endpoint, place=bucket)
    await ours.put("shard/a", b"ours")
    await theirs.put("shard/a", b"theirs")
    assert await ours.get("shard/a") == b"ours"
    assert await ours.keys() == await theirs.keys() == ["shard/a"]
    assert await everything.keys() == ["some/prefix/shard/a", "some/prefixed/shard/a"]
    await theirs.delete("shard/a")
    assert await ours.keys() == ["shard/a"]


async def test_a_large_value_is_sent_in_pieces_and_got_whole(s3_endpoint: str) -> None:
    value = random.Random(1).randbytes(20 * 1024**2)
    async with running_proxy(s3_endpoint) as proxy:
        blob = s3_blob(s3_endpoint, through=proxy.address)
        refused: list[Seen] = []

        async def meddle(seen: Seen, ask: Ask) -> bytes | None:
            """Refuse the first attempt at the second piece."""
            if "partNumber=2" in seen.path and not refused:
                refused.append(seen)
                return SLOW_DOWN
            return await ask()

        proxy.meddler = meddle
        await blob.put("shard/large", value)
        assert len(refused) == 1
        assert sum("partNumber=" in seen.path for seen in proxy.seen) == 4
        assert await blob.get("shard/large") == value
        assert await blob.keys() == ["shard/large"]


def test_one_store_serves_any_loop_one_after_the_other(s3_endpoint: str) -> None:
    blob = s3_blob(s3_endpoint)

    async def use(name: str) -> None:
        # More than may be under way at once, so that some wait for others.
        keys = [f"{name}/{number}" for number in range(50)]
        await asyncio.gather(*(blob.put(key, key.encode()) for key in keys))
        values = await asyncio.gather(*(blob.get(key) for key in keys))
        assert values == [key.encode() for key in keys]

    for name, factory in [*LOOPS.items(), *LOOPS.items()]:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(use(name))


def test_one_store_serves_several_loops_at_once(s3_endpoint: str) -> None:
    blob = s3_blob(s3_endpoint)
    started = threading.Barrier(len(LOOPS))

    async def use(name: str) -> list[str]:
        keys = [f"{name}/{number}" for number in range(50)]
        started.wait(timeout=60)
        await asyncio.gather(*(blob.put(key, b"") for key in keys))
        return await blob.keys(f"{name}/")

    def run(name: str) -> list[str]:
        with asyncio.Runner(loop_factory=LOOPS[name]) as runner:
            return runner.run(use(name))

    with ThreadPoolExecutor() as threads:
        found = list(threads.map(run, LOOPS))
    assert [len(keys) for keys in found] == [50, 50]


async def test_a_crowd_of_calls_does_not_overrun_the_store(s3_endpoint: str) -> None:
    async with running_proxy(s3_endpoint) as proxy:
        blob = s3_blob(s3_endpoint, through=proxy.address)
        under_way: list[int] = []
        now = 0

        async def count(_: Seen, ask: Ask) -> bytes | None:
            nonlocal now
            now += 1
            under_way.append(now)
            answer = await ask()
            now -= 1
            return answer

        proxy.meddler = count
        await asyncio.gather(*(blob.put(f"shard/{number}", b"") for number in range(150)))
        assert len(under_way) == 150
        assert max(under_way) <= 32


async def test_a_cancelled_call_leaves_the_store_usable(s3_endpoint: str) -> None:
    async with running_proxy(s3_endpoint) as proxy:
        blob = s3_blob(s3_endpoint, through=proxy.address)
        asked = asyncio.Event()

        async def stall(_: Seen, __: Ask) -> bytes | None:
            asked.set()
            await asyncio.Event().wait()
            return None

        honest, proxy.meddler = proxy.meddler, stall
        calls = [asyncio.create_task(blob.put("shard/a", b"1")) for _ in range(40)]
        await asked.wait()
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        proxy.meddler = honest
        # Another key: a cancelled put may still arrive, and keys are never used twice.
        await blob.put("shard/b", b"2")
        assert await blob.get("shard/b") == b"2"
