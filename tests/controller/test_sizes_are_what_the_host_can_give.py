"""Goal: a size means the same everywhere, is held to the host, and what is none is told clearly."""

from decimal import Decimal

import pytest

from evertide.controller.sizes import SHIPPED, Host, Size, SizeTable
from evertide.vocab.errors import InvalidParameterValue

LARGE = Host(cores=64, memory_mb=512 * 1_024)
SMALL = Host(cores=2, memory_mb=8_192)


def test_numbers_are_cores_and_words_double() -> None:
    table = SizeTable({}, LARGE)
    for name, size in SHIPPED.items():
        assert table.find(name) == size, name
    numbers = [table.find(name) for name in ("1", "2", "4", "64")]
    assert [size.cores for size in numbers if size is not None] == [1, 2, 4, 64]
    words = [SHIPPED[name] for name in ("3xsmall", "2xsmall", "xsmall", "small", "3xlarge")]
    assert [str(size.credits_per_hour) for size in words] == ["0.25", "0.5", "1", "2", "64"]
    assert [size.cores for size in words] == [1, 1, 1, 2, 64]


def test_a_scaled_size_says_its_processes_and_workers() -> None:
    size = SizeTable({}, LARGE).find("scale=2,workers=4")
    assert size is not None
    assert (size.partitions, size.cores, size.credits_per_hour) == (2, 8, Decimal(2))
    with_memory = SizeTable({}, LARGE).find("scale=1,workers=1,mem=8GiB")
    assert with_memory is not None
    assert with_memory.total_mb == 8_192


def test_a_size_is_cut_to_the_host_and_whoever_asks_is_told() -> None:
    table = SizeTable({}, SMALL)
    size = table.find("16")
    assert size is not None
    assert (size.cores, size.total_mb) == (2, 6_144)
    notice = table.check("16")
    assert notice is not None
    assert notice.message == "cluster replica size 16 asks for 16 cores, this host has 2"
    assert table.check("2") is None
    # What it costs does not depend on where it runs.
    assert table.credits_per_hour("16") == 16


def test_a_file_adds_sizes_and_goes_first() -> None:
    own = Size(cores=1, memory_mb=1_024, credits_per_hour=Decimal("0.1"))
    far = Size(master="spark://a:1", cores=4_000, memory_mb=512)
    table = SizeTable({"1": own, "far": far}, SMALL)
    assert table.find("1") == own
    assert table.find("far") == far  # a cluster's cores are not this host's
    assert table.check("far") is None
    assert table.find("2") is not None
    assert {"1", "far", "3xlarge", "scale=1,workers=2"} <= {name for name, _ in table.listed()}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("lol", "lol"),
        ("", "''"),
        ("it's", '"it\'s"'),
        ("a\nb", "'a\\nb'"),
        ("1\x00", "'1\\x00'"),
        ("scale=0,workers=1", "scale=0,workers=1"),
        ("scale=1,workers=2 ", "'scale=1,workers=2 '"),
        ("x" * 10_000, "x" * 64 + "…"),
    ],
)
def test_what_is_no_size_is_told_on_one_line(name: str, shown: str) -> None:
    with pytest.raises(InvalidParameterValue) as refused:
        SizeTable({}, SMALL).check(name)
    assert refused.value.message == f"unknown cluster replica size {shown}"
    assert refused.value.hint is not None
    assert "3xsmall, 2xsmall" in refused.value.hint


def test_the_shares_of_a_size_leave_room_for_each_other() -> None:
    for name, size in SHIPPED.items():
        assert size.heap_mb + size.state_mb * size.partitions < size.total_mb, name
    far = Size(master="spark://a:1", memory_mb=700)
    assert (far.heap_mb, far.is_limited) == (700, False)


def test_a_size_too_small_to_start_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a memory_mb of 1024"):
        Size(memory_mb=512)
    with pytest.raises(ValueError, match="credits_per_hour"):
        Size(credits_per_hour=Decimal(-1))
