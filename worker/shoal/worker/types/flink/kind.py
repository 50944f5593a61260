"""FLINK: a job of a jar in a session cluster of the project's data sources."""

from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.flink.params import FlinkParams


class Flink(ChildType[FlinkParams]):
    """Runs a job in a Flink cluster; killed means that Flink has confirmed its end."""

    Params = FlinkParams
    work = "shoal.worker.types.flink.run:run"
    settles = True
