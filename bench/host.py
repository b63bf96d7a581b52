"""What a table was made on: numbers without their machine mean little."""

import datetime
import os
import platform
import subprocess
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Shared:
    """How much of the processors' time a machine that is itself a guest has had to leave to others:
    what waits for that shows in every figure."""

    stolen: int
    total: int

    @classmethod
    def now(cls) -> "Shared":
        """Since the machine was started."""
        ticks = [
            int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        ]
        return cls(ticks[7], sum(ticks))

    def since(self, before: "Shared") -> str:
        """In words."""
        share = (self.stolen - before.stolen) / max(1, self.total - before.total)
        return f"{share:.1%} of the processors' time went to other machines of the host"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _file_system(directory: Path) -> str:
    command = ["stat", "--file-system", "--format=%T", str(directory)]
    return subprocess.check_output(command, text=True).strip()
