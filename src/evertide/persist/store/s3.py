"""Large values as objects of an S3-compatible store.

Where it is and who we are comes from the usual variables of the environment, never from arguments,
which every user of the machine can read: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
AWS_SESSION_TOKEN, AWS_REGION or AWS_DEFAULT_REGION, AWS_ENDPOINT_URL. Only an endpoint that says
http is spoken to in the clear.

Every call may be repeated: a key is written once, with one value. So requests that fail for a
passing reason are made again, and the store counts as unreachable when that does not help. Only
the owner's record is written anew; whoever wrote it looks again whether it is there.
"""

import asyncio
import os
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from obstore.exceptions import BaseError
from obstore.store import S3Store

from evertide.persist.faults import (
    BlobMissing,
    Corrupt,
    PersistFault,
    StoreFull,
    StoreUnreachable,
)
from evertide.persist.store.blob_key import check_key, is_key
from evertide.persist.store.protocol import OWNER_BYTES, OWNER_KEY

if TYPE_CHECKING:
    # A type only: obstore has no such name at run time.
    from obstore.store import S3Config

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
# Not a key, so that nobody takes what a check left behind for a value.
_CHECK: Final = ".check-"
# Values beyond this are sent in pieces of this size.
_PIECE_BYTES: Final = 8 * 1024**2
_PIECES_AT_ONCE: Final = 4
# More at once gain nothing and make a small server refuse connections.
_REQUESTS_AT_ONCE: Final = 32
_DELETE_ATTEMPTS: Final = 3

_STATUS: Final = re.compile(r"status code: (\d{3}) ?([A-Za-z ]*)")
_CODE: Final = re.compile(r"<Code>(\w{1,60})</Code>")
_INSTANCE_METADATA: Final = "/latest/api/token"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long requests may take before the store counts as unreachable."""

    connect_s: float = 5.0
    # Without a byte of answer, so also for sending one piece.
    silence_s: float = 30.0
    request_s: float = 300.0
    retries: int = 10
    # No further attempt begins after this.
    retry_s: float = 60.0
    # For all of `check`.
    check_s: float = 30.0


class S3Blob:
    """One object per key, below one prefix of one bucket. May be used from any event loop."""

    def __init__(self, store: S3Store, place: str, patience: Patience) -> None:
        self._store = store
        self._place = place
        self._patience = patience
        self._free: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            WeakKeyDictionary()
        )

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        environment: Mapping[str, str] | None = None,
        patience: Patience | None = None,
    ) -> "S3Blob":
        """The store at s3://BUCKET or s3://BUCKET/PREFIX; raises ValueError. Asks nothing yet."""
        patience = patience or Patience()
        variables = os.environ if environment is None else environment
        bucket, prefix = _parse_url(url)
        endpoint = _endpoint(variables)
        settings = {
            "access_key_id": variables.get("AWS_ACCESS_KEY_ID"),
            "secret_access_key": variables.get("AWS_SECRET_ACCESS_KEY"),
            "session_token": variables.get("AWS_SESSION_TOKEN"),
            "region": variables.get("AWS_REGION") or variables.get("AWS_DEFAULT_REGION"),
            "endpoint": endpoint,
        }
        store = S3Store(
            bucket,
            prefix=prefix or None,
            config=cast("S3Config", {name: value for name, value in settings.items() if value}),
            # Not every server knows how to delete many at once, and we never do.
            disable_bulk_delete=True,
            client_options={
                "allow_http": endpoint is not None and endpoint.startswith("http://"),
                "connect_timeout": timedelta(seconds=patience.connect_s),
                "read_timeout": timedelta(seconds=patience.silence_s),
                "timeout": timedelta(seconds=patience.request_s),
            },
            retry_config={
                "max_retries": patience.retries,
                "retry_timeout": timedelta(seconds=patience.retry_s),
                "backoff": {
                    "init_backoff": timedelta(milliseconds=100),
                    "max_backoff": timedelta(seconds=5),
                    "base": 2,
                },
            },
        )
        place = f"bucket {bucket}" + (f" at {endpoint}" if endpoint else "")
        return cls(store, place, patience)

    async def check(self) -> None:
        """Raises StoreUnreachable, with the reason, unless values can be written, read and listed.

        For the start of a server: what is set up wrongly is said then, not at the first write.
        """
        name, value = f"{_CHECK}{uuid.uuid4().hex}", b"evertide"
        try:
            async with asyncio.timeout(self._patience.check_s):
                await self._ask(lambda: self._put(name, value))
                found = await self._ask(lambda: self._get(name))
                await self._ask(lambda: self._delete(name))
                await self._ask(self._list_some)
        except TimeoutError:
            raise StoreUnreachable(f"{self._place}: no answer in time") from None
        except BlobMissing:
            raise StoreUnreachable(f"{self._place}: what was written cannot be read") from None
        if found != value:
            raise StoreUnreachable(f"{self._place}: what was written is read as something else")

    async def put(self, key: str, value: bytes) -> None:
        check_key(key)
        await self._ask(lambda: self._put(key, value))

    async def get(self, key: str) -> bytes:
        check_key(key)
        return await self._ask(lambda: self._get(key), key)

    async def delete(self, key: str) -> None:
        check_key(key)
        await self._ask(lambda: self._delete(key))

    async def keys(self, prefix: str = "") -> list[str]:
        found = await self._ask(lambda: self._list(prefix.rpartition("/")[0]))
        return sorted(key for key in found if key.startswith(prefix) and is_key(key))

    async def remove_unfinished(self, before_ms: int) -> int:  # noqa: ARG002 - there is nothing
        return 0

    async def read_owner(self) -> bytes | None:
        try:
            return await self._ask(lambda: self._get(OWNER_KEY, OWNER_BYTES), OWNER_KEY)
        except BlobMissing:
            return None

    async def write_owner(self, value: bytes) -> None:
        await self._ask(lambda: self._put(OWNER_KEY, value))

    def local_path(self, key: str) -> Path | None:  # noqa: ARG002 - nothing lies in a file
        return None

    @asynccontextmanager
    async def localize(
        self,
        keys: Sequence[str],  # noqa: ARG002 - nothing lies in a file
    ) -> AsyncIterator[Mapping[str, Path]]:
        yield {}

    async def _put(self, name: str, value: bytes) -> None:
        await self._store.put_async(
            name, value, chunk_size=_PIECE_BYTES, max_concurrency=_PIECES_AT_ONCE
        )

    async def _get(self, name: str, limit_bytes: int | None = None) -> bytes:
        answer = await self._store.get_async(name)
        if limit_bytes is not None and answer.meta["size"] > limit_bytes:
            raise Corrupt("it is too long", key=name)
        return (await answer.bytes_async()).to_bytes()

    async def _delete(self, name: str) -> None:
        """Deleting may be repeated, but obstore does not know: not after a silent request."""
        for attempt in range(_DELETE_ATTEMPTS):
            try:
                return await self._store.delete_async(name)
            except FileNotFoundError as error:
                if _code(str(error)) == "NoSuchBucket":
                    raise
                return None
            except BaseError as error:
                if attempt == _DELETE_ATTEMPTS - 1 or "kind: Timeout" not in str(error):
                    raise
        return None

    async def _list(self, directory: str) -> list[str]:
        found: list[str] = []
        async for page in self._store.list(directory or None, chunk_size=1000):
            found.extend(meta["path"] for meta in page)
        return found

    async def _list_some(self) -> None:
        async for _ in self._store.list(chunk_size=1):
            return

    async def _ask(self, request: Callable[[], Awaitable[T]], key: str | None = None) -> T:
        """The answer to a request, or our own fault; `key` is what a missing object is called."""
        free = self._free.setdefault(
            asyncio.get_running_loop(), asyncio.Semaphore(_REQUESTS_AT_ONCE)
        )
        async with free:
            try:
                return await request()
            except (BaseError, OSError) as error:
                raise self._fault(error, key) from None

    def _fault(self, error: Exception, key: str | None) -> PersistFault:
        text = str(error)
        if isinstance(error, FileNotFoundError) and _code(text) != "NoSuchBucket":
            return BlobMissing(key or "")
        if "status code: 507" in text:
            return StoreFull(f"{self._place}: {_reason(text)}")
        return StoreUnreachable(f"{self._place}: {_reason(text)}")


def _parse_url(url: str) -> tuple[str, str]:
    """Bucket and prefix. Messages show nothing of a URL that has a password in it."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError("an s3 location has no user or password: they come from the environment")
    prefix = parts.path.strip("/")
    known = parts.scheme == "s3" and not parts.query and not parts.fragment
    if not known or not _BUCKET.fullmatch(parts.netloc):
        raise ValueError(f"not an s3 location: {url} (expected s3://BUCKET/PREFIX)")
    if prefix and not is_key(prefix):
        raise ValueError(f"not a prefix for keys: {prefix}")
    return parts.netloc, prefix


def _endpoint(variables: Mapping[str, str]) -> str | None:
    """Where requests go; None: to Amazon, by region."""
    endpoint = variables.get("AWS_ENDPOINT_URL_S3") or variables.get("AWS_ENDPOINT_URL")
    if not endpoint:
        return None
    parts = urlsplit(endpoint)
    if "@" in parts.netloc:
        raise ValueError("AWS_ENDPOINT_URL has no user or password in it")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"AWS_ENDPOINT_URL is not an http or https address: {endpoint}")
    return endpoint.rstrip("/")


def _code(text: str) -> str | None:
    """The error code that S3 gave, as in <Code>NoSuchBucket</Code>."""
    found = _CODE.search(text)
    return found[1] if found else None


def _reason(text: str) -> str:
    """What went wrong, from obstore's text, without what a server may have sent back to us."""
    status, code = _STATUS.search(text), _code(text)
    if _INSTANCE_METADATA in text:
        return "no credentials: AWS_ACCESS_KEY_ID is not set, and no instance metadata answers"
    if status is not None:
        answer = f"{status[1]} {status[2].strip()}".strip()
        return f"{answer} ({code})" if code else answer
    if "kind: Timeout" in text:
        return "no answer in time"
    if "kind: Connect" in text:
        return "no connection"
    if "Received redirect" in text:
        return "sent elsewhere, which usually means that AWS_REGION is not the bucket's region"
    return "connection lost" if "HTTP error" in text else "the request failed"
