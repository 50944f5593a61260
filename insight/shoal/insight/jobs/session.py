"""The Spark session of the jobs, and why it is set as it is."""

import atexit
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.insight.jobs.errors import NoSpark

if TYPE_CHECKING:
    from pyspark import SparkContext

#: Rows of a part: so few that Python holds some columns of them, and what it makes of these.
ROWS_OF_PART = 250_000


def parts_of(rows: int) -> int:
    """Return into how many parts so many rows are best divided."""
    return max(2, -(-rows // ROWS_OF_PART))


def settings(scratch: Path) -> Mapping[str, str]:
    """Return the settings that do not depend on where Spark runs."""
    return {
        "spark.local.dir": str(scratch),
        # Java starts steps and passes bytes on: nothing that is worth to be compiled with care, nor
        # many threads that collect garbage.
        # Quoted: a folder may have a space in its name.
        "spark.driver.extraJavaOptions": f'"-Djava.io.tmpdir={scratch}" {_LEAN_JAVA}',
        # A file for each step, not one for each of its receivers: those are many, and small.
        "spark.shuffle.sort.bypassMergeThreshold": "0",
        # What is sent is compressed already.
        "spark.shuffle.compress": "false",
        "spark.shuffle.spill.compress": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


#: Characters; the address of a socket has 107, and the names of folder and socket some 60 of them.
_LONGEST_PLACE = 40

_LEAN_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@contextmanager
def started(master: str | None, scratch: Path, memory: str = "1g") -> "Iterator[SparkContext]":
    """Start Spark with a driver's heap of ``memory`` that keeps its files in ``scratch``.

    ``master`` None: as ``spark-submit`` has set it. On ``local`` ones nothing listens beyond
    loopback. Raises NoSpark.
    """
    _require_spark()
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf().setAppName("shoal-insight")
    if master is not None:
        conf.setMaster(master)
    conf.set("spark.driver.memory", memory)
    conf.setAll(list(settings(scratch).items()))
    if master is not None and master.startswith("local"):
        conf.setAll(list(_settings_of_one_machine(_folder_of_sockets()).items()))
    context = SparkContext.getOrCreate(conf)
    context.setLogLevel("ERROR")
    try:
        yield context
    finally:
        # Where Java has gone there is nothing to stop, and the error that says so is on its way.
        with suppress(Py4JError, ConnectionError):
            context.stop()


@cache
def _folder_of_sockets() -> str | None:
    """Return a folder of this process for sockets; None: there is none with a short name.

    Java keeps to the first one that a process names. Tasks of Shoal have a ``TMPDIR`` deep below.
    """
    from shoal.insight.jobs.output import scratch_folder

    places = (tempfile.gettempdir(), "/tmp")  # noqa: S108 - a new folder in it, for us alone
    for place in places:
        if len(place) <= _LONGEST_PLACE and os.access(place, os.W_OK):
            stack = ExitStack()
            atexit.register(stack.close)
            return str(stack.enter_context(scratch_folder(place)))
    return None


def _settings_of_one_machine(sockets: str | None) -> Mapping[str, str]:
    """Return settings for a Spark whose Java and Python are on this machine.

    ``sockets``: a folder of this user's alone, if there is one.
    """
    found = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    # By TCP each task waits for delayed acknowledgements: 60 ms of 75.
    if sockets is not None:
        found["spark.python.unix.domain.socket.enabled"] = "true"
        found["spark.python.unix.domain.socket.dir"] = sockets
    return found


def _require_spark() -> None:
    if importlib.util.find_spec("pyspark") is None:
        raise NoSpark("the jobs need PySpark: pip install 'shoal[insight]'")
    home = os.environ.get("JAVA_HOME")
    if home and not os.access(Path(home, "bin", "java"), os.X_OK):
        raise NoSpark(f"JAVA_HOME={home} has no bin/java; correct it, or unset it")
    if not home and shutil.which("java") is None:
        raise NoSpark(
            "Spark needs Java 17 or newer: install it, or set JAVA_HOME (tasks of `shoal up` have "
            "its Java)"
        )
