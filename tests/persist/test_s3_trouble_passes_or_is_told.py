"""Goal: an object store in trouble costs time, or a clear fault; never a wrong answer or a secret.

Method: a proxy before a real endpoint refuses, stalls, drops and cuts.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from evertide.persist.faults import BlobMissing, StoreFull, StoreUnreachable
from evertide.persist.store.s3 import Patience, S3Blob
from tests.support.s3 import (
    KEY_ID,
    SECRET,
    SLOW_DOWN,
    Ask,
    Seen,
    create_bucket,
    environment_of,
    error_answer,
    running_proxy,
    s3_blob,
)

# Few attempts, so that a lasting fault is told soon; waits are longer than honest answers take.
BRIEF = Patience(connect_s=10, silence_s=10, retries=3, retry_s=60)
# For endpoints that say nothing at all.
SHORT_SILENCE = Patience(connect_s=10, silence_s=1, retries=3, retry_s=60, check_s=3)

Call = Callable[[S3Blob], Awaitable[object]]

CALLS: dict[str, Call] = {
    "put": lambda blob: blob.put("shard/new", b"value"),
    "get": lambda blob: blob.get("shard/old"),
    "delete": lambda blob: blob.delete("shard/old"),
    "keys": lambda blob: blob.keys(),
}
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())


@dataclass
class Faulty:
    """Misbehaves for the first requests, then not any more."""

    answer: Callable[[Ask], Awaitable[bytes | None]]
    times: int = 10**9
    met: int = field(default=0, init=False)

    async def __call__(self, _: Seen, ask: Ask) -> bytes | None:
        self.met += 1
        return await (self.answer(ask) if self.met <= self.times else ask())


def answering(answer: bytes | None) -> Callable[[Ask], Awaitable[bytes | None]]:
    async def give(_: Ask) -> bytes | None:
        return answer

    return give


async def silent(_: Ask) -> bytes | None:
    await asyncio.Event().wait()
    return None


async def cut_short(ask: Ask) -> bytes | None:
    answer = await ask()
    return answer[: answer.index(b"\r\n\r\n") + 5]


def without_secrets(fault: BaseException) -> str:
    told = f"{fault} {fault!r} {fault.__cause__!r}"
    assert SECRET not in told
    assert KEY_ID not in told
    return str(fault)


@each_call
@pytest.mark.parametrize("answer", [SLOW_DOWN, None], ids=["refused", "dropped"])
async def test_what_passes_is_outlived(s3_endpoint: str, call: Call, answer: bytes | None) -> None:
    async with running_proxy(s3_endpoint) as proxy:
        blob = s3_blob(s3_endpoint, BRIEF, through=proxy.address)
        await blob.put("shard/old", b"value")
        proxy.meddler = faulty = Faulty(answering(answer), times=2)
        result = await call(blob)
        assert faulty.met == 3
        assert result in (None, b"value", ["shard/old"])


@each_call
async def test_a_request_that_is_never_answered_is_made_again(s3_endpoint: str, call: Call) -> None:
    async with running_proxy(s3_endpoint) as proxy:
        blob = s3_blob(s3_endpoint, SHORT_SILENCE, through=proxy.address)
        await blob.put("shard/old", b"value")
        proxy.meddler = faulty = Faulty(silent, times=1)
        await call(blob)
        assert faulty.met >= 2


@each_call
async def test_a_slow_answer_is_waited_for(s3_endpoint: str, call: Call) -> None:
    async def slow(ask: Ask) -> bytes | None:
        await asyncio.sleep(0.3)
        return await ask()

    async with running_proxy(s3_endpoint) as proxy:
        blob = s3_blob(s3_endpoint, BRIEF, through=proxy.address)
        await blob.put("shard/old", b"value")
        proxy.meddler = faulty = Faulty(slow)
        await call(blob)
        assert faulty.met == 1


async def test_an_answer_that_breaks_off_is_read_whole(s3_endpoint: str) -> None:
    value = bytes(range(256)) * 1000
    async with running_proxy(s3_endpoint) as proxy:
        blob = s3_blob(s3_endpoint, BRIEF, through=proxy.address)
        await blob.put("shard/old", value)
        proxy.meddler = Faulty(cut_short, times=2)
        assert await blob.get("shard/old") == value


@each_call
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (SLOW_DOWN, "503 Service Unavailable (SlowDown)"),
        (error_answer("403 Forbidden", "AccessDenied"), "403 Forbidden (AccessDenied)"),
        (error_answer("301 Moved Permanently", "PermanentRedirect"), "AWS_REGION"),
        (None, "connection lost"),
    ],
)
async def test_what_lasts_is_told_with_its_reason(
    s3_endpoint: str, call: Call, answer: bytes | None, reason: str
) -> None:
    bucket = create_bucket(s3_endpoint)
    async with running_proxy(s3_endpoint) as proxy:
        blob = s3_blob(s3_endpoint, BRIEF, place=bucket, through=proxy.address)
        proxy.meddler = Faulty(answering(answer))
        with pytest.raises(StoreUnreachable) as fault:
            await call(blob)
    told = without_secrets(fault.value)
    assert reason in told
    assert f"bucket {bucket} at {proxy.address}" in told
    assert len(told) < 300


@each_call
async def test_an_endpoint_that_says_nothing_is_given_up(s3_endpoint: str, call: Call) -> None:
    async with running_proxy(s3_endpoint) as proxy:
        blob = s3_blob(s3_endpoint, SHORT_SILENCE, through=proxy.address)
        proxy.meddler = Faulty(silent)
        with pytest.raises(StoreUnreachable, match="no answer in time"):
            await call(blob)


@each_call
async def test_an_endpoint_that_is_gone_is_unreachable(s3_endpoint: str, call: Call) -> None:
    async with running_proxy(s3_endpoint) as proxy:
        blob = s3_blob(s3_endpoint, BRIEF, through=proxy.address)
    with pytest.raises(StoreUnreachable, match="no connection") as fault:
        await call(blob)
    without_secrets(fault.value)


@each_call
async def test_a_missing_bucket_is_not_a_missing_value(s3_endpoint: str, call: Call) -> None:
    blob = s3_blob(s3_endpoint, BRIEF, place="no-such-bucket")
    with pytest.raises(StoreUnreachable, match=r"bucket no-such-bucket .* \(NoSuchBucket\)"):
        await call(blob)


async def test_a_missing_value_is_a_missing_value(s3_endpoint: str) -> None:
    with pytest.raises(BlobMissing) as missing:
        await s3_blob(s3_endpoint, BRIEF).get("shard/none")
    assert missing.value.key == "shard/none"


async def test_a_store_without_room_is_told_from_one_out_of_reach(s3_endpoint: str) -> None:
    async with running_proxy(s3_endpoint) as proxy:
        blob = s3_blob(s3_endpoint, BRIEF, through=proxy.address)
        proxy.meddler = Faulty(answering(error_answer("507 Insufficient Storage", "StorageFull")))
        with pytest.raises(StoreFull):
            await blob.put("shard/new", b"value")


async def test_nothing_is_sent_in_the_clear_unless_the_endpoint_says_so(s3_endpoint: str) -> None:
    async with running_proxy(s3_endpoint) as proxy:
        endpoint = proxy.address.replace("http://", "https://")
        impatient = Patience(connect_s=1, retries=0)
        blob = s3_blob(s3_endpoint, impatient, place="some-bucket", through=endpoint)
        with pytest.raises(StoreUnreachable):
            await blob.put("shard/new", b"value")
        assert proxy.seen == []


async def test_a_check_finds_nothing_wrong_and_leaves_nothing(s3_endpoint: str) -> None:
    async with running_proxy(s3_endpoint) as proxy:
        await s3_blob(s3_endpoint, BRIEF, through=proxy.address).check()
        assert [one.method for one in proxy.seen] == ["PUT", "GET", "DELETE", "GET"]
        assert len({one.path for one in proxy.seen[:3]}) == 1


@pytest.mark.parametrize("refused", range(4), ids=["write", "read", "remove", "list"])
async def test_a_check_tells_what_is_not_allowed(s3_endpoint: str, refused: int) -> None:
    bucket = create_bucket(s3_endpoint)
    denied = error_answer("403 Forbidden", "AccessDenied")
    async with running_proxy(s3_endpoint) as proxy:

        async def meddle(_: Seen, ask: Ask) -> bytes | None:
            return denied if len(proxy.seen) == refused + 1 else await ask()

        proxy.meddler = meddle
        with pytest.raises(StoreUnreachable, match=rf"bucket {bucket} .*AccessDenied") as fault:
            await s3_blob(s3_endpoint, BRIEF, place=bucket, through=proxy.address).check()
        without_secrets(fault.value)


async def test_a_check_does_not_wait_for_ever(s3_endpoint: str) -> None:
    async with running_proxy(s3_endpoint) as proxy:
        blob = s3_blob(s3_endpoint, SHORT_SILENCE, through=proxy.address)
        proxy.meddler = Faulty(silent)
        with pytest.raises(StoreUnreachable, match="no answer in time"):
            await blob.check()


async def test_a_check_notices_that_nobody_said_who_we_are(
    s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = create_bucket(s3_endpoint)
    environment = environment_of(s3_endpoint)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        del environment[name]
        monkeypatch.delenv(name, raising=False)
    async with running_proxy(s3_endpoint) as proxy:
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", proxy.address)
        proxy.meddler = Faulty(answering(error_answer("404 Not Found", "NoInstance")))
        blob = S3Blob.from_url(f"s3://{bucket}", environment=environment, patience=BRIEF)
        with pytest.raises(StoreUnreachable, match="no credentials: AWS_ACCESS_KEY_ID"):
            await blob.check()


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("s3://", "http://127.0.0.1:1"),
        ("s3://AB", "http://127.0.0.1:1"),
        ("http://bucket/prefix", "http://127.0.0.1:1"),
        ("s3://bucket/../other", "http://127.0.0.1:1"),
        ("s3://bucket/a//b", "http://127.0.0.1:1"),
        ("s3://bucket/a?versioned", "http://127.0.0.1:1"),
        ("s3://user:hidden@bucket/a", "http://127.0.0.1:1"),
        ("s3://bucket/a", "127.0.0.1:1"),
        ("s3://bucket/a", "ftp://127.0.0.1:1"),
        ("s3://bucket/a", "http://user:hidden@127.0.0.1:1"),
    ],
)
def test_wrong_locations_are_refused(url: str, endpoint: str) -> None:
    with pytest.raises(ValueError) as refusal:
        S3Blob.from_url(url, environment=environment_of(endpoint))
    assert "hidden" not in str(refusal.value)


@pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", "../a", "a/../b", ".hidden", "a b", "ä"])
async def test_keys_that_are_none_are_refused(key: str, s3_endpoint: str) -> None:
    blob = s3_blob(s3_endpoint, BRIEF, place="never-asked")
    calls = [blob.put(key, b""), blob.get(key), blob.delete(key)]
    for call in calls:
        with pytest.raises(ValueError, match="not a blob key"):
            await call
