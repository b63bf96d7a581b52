"""Large ticks find the memory of the one before, whoever computes: numpy or Arrow."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from evertide.spark.arrangements import memory
from evertide.spark.arrangements.memory import reuse_memory
from evertide.spark.evaluate import Evaluator

GET_THP_DISABLE = 42


def test_arrow_takes_the_memory_that_everybody_takes(tmp_path: Path) -> None:
    before = pa.default_memory_pool()
    try:
        Evaluator(tmp_path).close()
        assert pa.default_memory_pool().backend_name == "system"
    finally:
        pa.set_memory_pool(before)


def test_the_allocator_and_the_system_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def note(name: str) -> Callable[..., None]:
        return lambda *_given: told.append(name)

    monkeypatch.setattr(memory, "_mallopt", note("mallopt"))
    monkeypatch.setattr(memory, "_prctl", note("prctl"))
    reuse_memory()
    assert told == ["mallopt", "mallopt", "prctl"]


def test_a_system_without_these_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_mallopt", None)
    monkeypatch.setattr(memory, "_prctl", None)
    reuse_memory()


def test_the_settings_are_accepted_here() -> None:
    """On Linux with glibc, which is what replicas run on."""
    if memory._mallopt is None:
        pytest.skip("another C library")
    assert memory._mallopt(memory._TRIM_THRESHOLD, memory._KEPT_BYTES) == 1
    assert memory._mallopt(memory._MMAP_THRESHOLD, memory._LARGE_BYTES) == 1
    reuse_memory()
    assert memory._prctl is not None
    assert memory._prctl(GET_THP_DISABLE, 0, 0, 0, 0) == 1
