"""What was asked of a dataflow's state beside its ticks, and failed."""

import structlog

from evertide.spark.engine import Engine, EngineFailing
from evertide.spark.partitions.connection import ResidentFault
from evertide.spark.running import RunningDataflow
from evertide.spark.worker import Worker

log = structlog.get_logger()


def asked_in_vain(
    worker: Worker,
    dataflow: RunningDataflow,
    engine: Engine,
    fault: EngineFailing | ResidentFault,
) -> None:
    """If the state is at an end with it: for a reason that may pass, it is built again; with a bug
    the dataflow stops, as after a tick that met one.

    A lookup that is short of memory leaves the state as it was.
    """
    if not fault.broken:
        return
    if isinstance(fault, EngineFailing):
        worker.found_broken(dataflow, engine, fault)
    elif dataflow.stopped is None and dataflow.engine is engine:
        dataflow.stop("internal error")
        log.error("dataflow stopped", object_id=dataflow.description.global_id, exc_info=fault)
