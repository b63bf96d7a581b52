"""Spark jobs over stored parts: the files stay while a job runs, and where they could not, again.

Where parts are files, garbage collection may remove replaced ones under a job that takes longer
than the grace period. Such a job has failed for no reason of its own.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Final, TypeVar

import structlog

from evertide.dataflow.description import Import
from evertide.persist.faults import BlobMissing
from evertide.persist.spark_input import PartFiles
from evertide.spark.source import Collections
from evertide.spark.watch import JobFailed
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp

# A job that loses its files more often than this is always slower than the grace period.
MAX_ATTEMPTS: Final = 4

T = TypeVar("T")

_log = structlog.get_logger()


async def over_parts(
    collections: Collections,
    imports: Sequence[Import],
    as_of: Timestamp,
    job: Callable[[Mapping[GlobalId, PartFiles]], Awaitable[T]],
) -> T:
    """What a job over the collections at `as_of` gives.

    Raises what the job raises, what part_files raises, and BlobMissing if parts vanish under every
    attempt.
    """
    for attempt in range(1, MAX_ATTEMPTS + 1):
        async with AsyncExitStack() as held:
            files: dict[GlobalId, PartFiles] = {}
            for one in imports:
                opened = collections.part_files(one, as_of)
                files[one.global_id] = await held.enter_async_context(opened)
            try:
                return await job(files)
            except (JobFailed, FileNotFoundError) as failure:
                missing = await asyncio.to_thread(_first_vanished, files.values())
                if missing is None:
                    raise
                if attempt == MAX_ATTEMPTS:
                    raise missing from failure
                _log.info("parts were replaced under a job", key=missing.key, attempt=attempt)
    raise AssertionError("the last attempt returns or raises")


def _first_vanished(files: Iterable[PartFiles]) -> BlobMissing | None:
    """Asked instead of reading Spark's message, which differs with the moment a file went."""
    return next((missing for one in files if (missing := one.vanished()) is not None), None)
