"""What Spark builds of a dataflow, read back from its files."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evertide.dataflow.delta_plan import DeltaPlan
from evertide.persist.coding.batch import from_payload
from evertide.spark.building.hydrate import STATE_DIRECTORY, Imports, hydrate
from evertide.spark.building.result_files import read_frames
from evertide.spark.building.state_files import read_states
from evertide.spark.evaluate import NodeState
from evertide.spark.jobs import SparkJobs
from evertide.spark.tables import desc_of
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update


@dataclass(frozen=True)
class Built:
    """The states by position, where their files are, and the output."""

    directory: Path
    states: Mapping[int, NodeState]
    output: list[Update]


def build(
    jobs: SparkJobs,
    plan: DeltaPlan,
    imports: Imports,
    as_of: Timestamp,
    directory: Path,
    index_key: tuple[int, ...] | None,
) -> Built:
    directory.mkdir()
    files = hydrate(jobs, plan, imports, as_of, directory, index_key=index_key)
    output = [
        update
        for file in files
        for payload in read_frames(directory / file.name)
        for update in from_payload(desc_of(plan.types), payload)
    ]
    states = directory / STATE_DIRECTORY
    states.mkdir(exist_ok=True)
    return Built(states, read_states(states, plan), output)
