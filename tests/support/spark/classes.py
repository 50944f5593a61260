"""An archive of Spark's classes, which halves the processor time of each start of Spark in tests.

Java writes it once, into ``build/``, where all later runs find it. Every Spark of a test inherits
``SPARK_SUBMIT_OPTS``, and with it the archive; Java ignores an archive that does not fit.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from shoal.client.local.java import Java, find_java, spark_java_home
from shoal.worker.spark import class_archiver
from shoal.worker.types.spark.command import find_spark

_FOLDER = Path(__file__).parents[3] / "build" / "spark-of-tests"
_TIMEOUT_S = 1800.0
VARIABLE = "SPARK_SUBMIT_OPTS"
# Spark lives for seconds here: what Java compiles with care takes a third of its processor time.
QUICK = "-XX:TieredStopAtLevel=1"
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"


@pytest.fixture(scope="session")
def spark_classes() -> None:
    """Make the archive if there is none yet. For tests that start Spark."""
    java = find_java()
    archive = _archive_of(java)
    if " " in str(archive):  # Spark's script splits its options at blanks
        return
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the parts of the suite run at the same time
        if not archive.exists():
            _make(java, archive)
    _use(archive)


def pytest_configure() -> None:
    """Let Spark start from the archive, if an earlier run has made one."""
    os.environ.setdefault("SPARK_DAEMON_JAVA_OPTS", QUICK)
    os.environ.setdefault(VARIABLE, QUICK)
    made = sorted(_FOLDER.glob("*.jsa"), key=lambda file: file.stat().st_mtime)
    if made and " " not in str(made[-1]):
        _use(made[-1])


def _use(archive: Path) -> None:
    os.environ[VARIABLE] = f"{QUICK} -XX:SharedArchiveFile={archive} {_QUIET}"


def _archive_of(java: Java) -> Path:
    """Return the file for this Java and this Spark."""
    files = [java.executable.resolve(), *sorted((find_spark() / "jars").glob("*.jar"))]
    told = hashlib.sha256()
    for file in files:
        status = file.stat()
        told.update(f"{file}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return _FOLDER / f"{told.hexdigest()[:32]}.jsa"


def _make(java: Java, archive: Path) -> None:
    """Run the program that workers make theirs by. Without an archive, tests only take longer."""
    for old in [*_FOLDER.glob("*.jsa"), *_FOLDER.glob("*.new")]:
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="shoal-spark-") as name:
        folder = Path(name)
        program = folder / "program.py"
        program.write_text(class_archiver._PROGRAM, encoding="ascii")
        made = folder / "made.jsa"
        env = {
            **os.environ,
            "JAVA_HOME": str(spark_java_home(java, folder / "java")),
            "SPARK_HOME": str(find_spark()),
            "SPARK_LOCAL_DIRS": name,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_CONNECT_AUTHENTICATE_TOKEN": "token",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            VARIABLE: f"{QUICK} -XX:ArchiveClassesAtExit={made} {_QUIET}",
        }
        settings = [
            text for pair in class_archiver._CONF.items() for text in ("--conf", "=".join(pair))
        ]
        argv = [str(find_spark() / "bin" / "spark-submit"), "--master", "local[1]"]
        argv += ["--driver-memory", "700m", *settings, str(program)]
        done = subprocess.run(
            argv, cwd=folder, env=env, capture_output=True, text=True, timeout=_TIMEOUT_S
        )
        if done.returncode != 0 or not made.exists():
            raise RuntimeError(f"no archive of Spark's classes:\n{done.stdout}{done.stderr}")
        shutil.move(made, archive.with_suffix(".new"))
        archive.with_suffix(".new").rename(archive)
