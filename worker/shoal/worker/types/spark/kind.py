"""The task type SPARK."""

from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.spark.params import SparkParams


class Spark(ChildType[SparkParams]):
    """Runs ``spark-submit`` of the worker's Spark to the end of the application.

    Spark is that of ``SPARK_HOME``, else the PySpark package beside Shoal. Killing the task kills
    the driver in deploy mode client, and with it the application.
    """

    Params = SparkParams
    permanent_exit_codes = frozenset()  # its exit codes are the application's
    work = "shoal.worker.types.spark.submit:submit"
