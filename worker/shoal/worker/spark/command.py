"""The command line and the environment of a Spark Connect server."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shoal.worker.processes.program import LaunchRequest
from shoal.worker.processes.variables import base_environment
from shoal.worker.types.spark.class_archive import use_options
from shoal.worker.types.spark.command import find_spark, require_java, worker_sets

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
# Statements, with their values, are in its messages of level INFO; so these are not wanted, but
# those about its start. The files are bounded.
_LOG4J = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = ${sys:shoal.log}
appender.file.filePattern = ${sys:shoal.log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{yyyy-MM-dd HH:mm:ss} %p %c{1}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 5MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 1
logger.server.name = org.apache.spark.sql.connect.service.SparkConnectServer
logger.server.level = info
logger.pages.name = org.apache.spark.util.Utils
logger.pages.level = info
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""
_STARTED = re.compile(r"Spark Connect server started at: \S*:([0-9]+)\s*$", re.MULTILINE)
_PAGES = re.compile(r"Successfully started service 'SparkUI' on port ([0-9]+)\.$", re.MULTILINE)
_LONGEST_START = 1 << 20  # bytes of the log
#: A parallel collector ends a server that does nothing but collect; the usual one goes on for
#: minutes, in which no request is answered.
_JAVA = ("-XX:+ExitOnOutOfMemoryError", "-XX:+UseParallelGC", "-XX:GCTimeLimit=80")


@dataclass(frozen=True)
class Ports:
    """Where a server listens: for Spark Connect, and for its pages."""

    connect: int
    pages: int


@dataclass(frozen=True)
class Profile:
    """How servers are started: memory of the JVM's heap in MiB, and the cluster that they use.

    ``class_archives`` is the folder of archives of classes; empty: there are none.
    """

    memory_mb: int
    master: str
    class_archives: str = ""


def launch_request(
    folder: Path,
    profile: Profile,
    token: str,
    page_conf: Mapping[str, str],
    worker_env: Mapping[str, str],
) -> LaunchRequest:
    """Return what starts a server whose files are in ``folder``, which exists. Blocks.

    It listens on the loopback, on ports that ``ports`` reads from its log. ``page_conf`` are
    settings of Spark that protect its pages. Raises CannotRun, OSError.
    """
    home = find_spark()
    require_java()
    temporary = folder / "tmp"
    temporary.mkdir(mode=0o700)
    log4j = folder / "log4j2.properties"
    log4j.write_text(_LOG4J, encoding="ascii")
    java = [
        f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        f"-Dshoal.log={_relative(folder / 'server.log')}",
        f"-Djava.io.tmpdir={_relative(temporary)}",
        *_JAVA,
        *use_options(profile.class_archives, home, folder),
    ]
    env = {
        **base_environment(worker_env, folder),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_DIRS": str(temporary),
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": token,
        "SPARK_SUBMIT_OPTS": " ".join([*java, worker_env.get("SPARK_SUBMIT_OPTS", "")]).strip(),
        # By this the next worker in this folder knows what a killed one has left.
        "SHOAL_PARAMETERS": str(folder / "parameters.json"),
    }
    conf = {
        **page_conf,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        # A client waits for it before it interrupts a statement.
        "spark.connect.progress.reportInterval": "500ms",
    }
    if profile.master.startswith("local"):
        env["SPARK_LOCAL_IP"] = "127.0.0.1"
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if not worker_sets(home, "spark.sql.warehouse.dir"):
        conf["spark.sql.warehouse.dir"] = (folder / "warehouse").as_uri()
    # Other users of the machine see a command line; the folder is private.
    settings = folder / "spark.properties"
    settings.write_text(
        "".join(f"{name}={value}\n" for name, value in conf.items()), encoding="ascii"
    )
    argv = [str(home / "bin" / "spark-submit"), "--master", profile.master]
    argv += ["--properties-file", str(settings), "--load-spark-defaults"]
    argv += ["--driver-memory", f"{profile.memory_mb}m", "--class", _CLASS]
    return LaunchRequest(
        id=folder.name,
        argv=[*argv, "spark-internal"],
        env=env,
        cwd=folder,
        log_path=folder / "log",
        record_path=folder / "record.json",
        journaled=False,
        masks=[token],
    )


def ports(folder: Path) -> Ports | None:
    """Return where the server of ``folder`` listens; None: not known yet. Blocks."""
    try:
        with (folder / "server.log").open(encoding="utf-8", errors="replace") as file:
            text = file.read(_LONGEST_START)
    except FileNotFoundError:
        return None
    connect, pages = _STARTED.search(text), _PAGES.search(text)
    return Ports(int(connect[1]), int(pages[1])) if connect and pages else None


def _relative(path: Path) -> str:
    """Spark's script cuts its options at blanks; the server's folder is its current one."""
    return path.name if " " in str(path) else str(path)
