"""Files of hydrated state that come through the channel, piece by piece."""

import re
import shutil
from pathlib import Path
from typing import Final

from evertide.vocab.ids import GlobalId

# As state_files.py names them; nothing else may be written.
_NAME: Final = re.compile(r"-?\d+\.[a-z]+")


class ReceivedFiles:
    """A directory for each dataflow, until its state is loaded or it is dropped."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def of(self, dataflow_id: GlobalId) -> Path:
        """Where a dataflow's files are."""
        assert re.fullmatch(r"\w+", dataflow_id), f"not a name for a directory: {dataflow_id}"
        return self._directory / dataflow_id

    def add(self, dataflow_id: GlobalId, name: str, content: bytes) -> None:
        """One more piece of a file."""
        assert _NAME.fullmatch(name), f"not a file of hydrated state: {name}"
        directory = self.of(dataflow_id)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (directory / name).open("ab") as file:
            file.write(content)

    def forget(self, dataflow_id: GlobalId) -> None:
        """Remove them; what is mapped stays readable."""
        shutil.rmtree(self.of(dataflow_id), ignore_errors=True)
