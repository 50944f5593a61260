"""The task type SPARK."""

from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.spark.params import SparkParams


class Spark(ChildType[SparkParams]):
    """Runs ``spark-submit`` of the worker's Spark to the end of the application.

    Spark is that of ``SPARK_HOME``, else the PySpark package beside Shoal. Killed means that the
    driver has ended, and in YARN the application, wherever its driver was.
    """

    Params = SparkParams
    permanent_exit_codes = frozenset()  # its exit codes are the application's
    work = "shoal.worker.types.spark.submit:submit"
    settles = True
    uses_environment = True
