"""The task type MR."""

from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.mapreduce.params import MapReduceParams


class MapReduce(ChildType[MapReduceParams]):
    """Runs a MapReduce program. Killed means that its jobs have ended, in a cluster, too.

    Hadoop's client is the one among Spark's jars. ``HADOOP_CONF_DIR`` of the worker says where jobs
    run; without it they run in the attempt's own process.
    """

    Params = MapReduceParams
    permanent_exit_codes = frozenset()  # its exit codes are the program's
    work = "shoal.worker.types.mapreduce.run:run"
    settles = True
    uses_environment = True
