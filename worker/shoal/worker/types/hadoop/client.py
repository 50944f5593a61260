"""Hadoop's client: its command line, and its settings for one attempt."""

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape

from shoal.worker.types.program import CannotRun

JOB_LOG = "jobs.log"
_SITE, _CORE_SITE = "mapred-site.xml", "core-site.xml"
# What the client says of its jobs goes to the attempt's log, and into a file that is read here.
_LOG4J = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
appender.jobs.type = File
appender.jobs.name = jobs
appender.jobs.fileName = ${sys:shoal.jobs}
appender.jobs.layout.type = PatternLayout
appender.jobs.layout.pattern = %m%n
logger.job.name = org.apache.hadoop.mapreduce.Job
logger.job.level = info
logger.job.appenderRef.jobs.ref = jobs
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""
# In the attempt's process everything that Hadoop writes stays in the attempt's folder.
_LOCAL = {"mapreduce.framework.name": "local"}


class Hadoop:
    """The client for one attempt, whose files are below ``folder``. Raises CannotRun, OSError.

    ``home`` is the worker's Spark, which brings the client's jars; ``settings`` are for jobs.
    """

    def __init__(
        self,
        home: Path,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        jars: Sequence[str] = (),
    ) -> None:
        self._jars = home / "jars"
        if not any(self._jars.glob("hadoop-client-api-*.jar")):
            raise CannotRun(
                f"no Hadoop on this worker: {self._jars} has no hadoop-client-api; install "
                "PySpark beside Shoal, or a Spark that was built with Hadoop"
            )
        self._folder, self._more_jars = folder, jars
        self.uses_yarn = _uses_yarn(_administrators())
        self.conf = Path(tempfile.mkdtemp(prefix="hadoop-", dir=folder))
        self._temporary = folder / "tmp"
        self._temporary.mkdir(mode=0o700, exist_ok=True)
        own = dict(settings or {})
        if not self.uses_yarn:
            own = {**_LOCAL, "hadoop.tmp.dir": str(self._temporary), **own}
        _write_conf(self.conf, own)

    def argv(self, main_class: str, *arguments: str) -> list[str]:
        """Return the command line that runs a class of the client."""
        java = os.environ.get("JAVA_HOME")
        path = [str(self.conf), *self._more_jars, f"{self._jars}/*"]
        return [
            str(Path(java, "bin", "java")) if java else "java",
            f"-Djava.io.tmpdir={self._temporary}",
            f"-Dlog4j2.configurationFile={(self.conf / 'log4j2.properties').as_uri()}",
            f"-Dshoal.jobs={self._folder / JOB_LOG}",
            *os.environ.get("HADOOP_OPTS", "").split(),
            "-cp",
            ":".join(path),
            main_class,
            *arguments,
        ]


def require_plain(folder: Path) -> None:
    """Raise CannotRun if no job could run below ``folder``: Hadoop mixes up paths and URIs."""
    if quote(str(folder)) != str(folder):
        raise CannotRun(
            f"Hadoop cannot run jobs in {folder}: the name holds a blank or another character that "
            "URIs escape; give the worker another work_dir"
        )


def _administrators() -> Path | None:
    """Return the folder with the worker's Hadoop settings."""
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        if folder := os.environ.get(name):
            return Path(folder)
    home = os.environ.get("HADOOP_HOME")
    folder_of_home = Path(home, "etc", "hadoop") if home else None
    return folder_of_home if folder_of_home and folder_of_home.is_dir() else None


def _uses_yarn(conf: Path | None) -> bool:
    """Whether jobs run in a cluster. A file that includes others is taken for one that says so."""
    if conf is None:
        return False
    try:
        text = (conf / _SITE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    named = re.search(r"mapreduce\.framework\.name\s*</name>\s*<value>\s*yarn\s*<", text)
    return named is not None or "XInclude" in text


def _write_conf(folder: Path, settings: Mapping[str, str]) -> None:
    """Make a folder of settings: those of the worker, and ``settings`` before them."""
    given = _administrators()
    included = ""
    if given is not None:
        for entry in given.iterdir():
            if entry.name not in {_SITE, "log4j2.properties"}:
                (folder / entry.name).symlink_to(entry.absolute())
        if (given / _SITE).is_file():
            uri = (given / _SITE).absolute().as_uri()
            included = (
                f'<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="{escape(uri)}"/>\n'
            )
    properties = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in settings.items()
    )
    text = f'<?xml version="1.0"?>\n<configuration>\n{included}{properties}</configuration>\n'
    (folder / _SITE).write_text(text, encoding="utf-8")
    if not (folder / _CORE_SITE).exists():  # without it, Hadoop's shell does not start
        (folder / _CORE_SITE).write_text("<configuration/>\n", encoding="ascii")
    (folder / "log4j2.properties").write_text(_LOG4J, encoding="ascii")


def remove_scratch(folder: Path) -> None:
    """Remove what a client has unpacked below an attempt's folder. Blocks."""
    shutil.rmtree(folder / "tmp", ignore_errors=True)
