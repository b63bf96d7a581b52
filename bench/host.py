"""What a table was made on: numbers without their machine mean little."""

import datetime
import os
import platform
import subprocess
from pathlib import Path


def describe(directory: Path) -> str:
    """Date, processor, memory, load, and the file system that commits go to."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    today = datetime.datetime.now(datetime.UTC).date()
    return (
        f"{today}, {platform.system()} {platform.release()}, Python {platform.python_version()}\n"
        f"{os.cpu_count()} x {_processor()}, {memory_gb:.0f} GB, {_file_system(directory)},"
        f" load {load}"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _file_system(directory: Path) -> str:
    command = ["stat", "--file-system", "--format=%T", str(directory)]
    return subprocess.check_output(command, text=True).strip()
