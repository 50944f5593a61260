"""Make the archive of classes that starts of Spark's drivers have missed, in the background."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

import structlog

from shoal.core.errors import ShoalError
from shoal.worker.logs.lines import last_line
from shoal.worker.processes.launcher import Launcher
from shoal.worker.processes.program import LaunchRequest
from shoal.worker.processes.variables import base_environment
from shoal.worker.processes.work_files import make_folder
from shoal.worker.types.spark.class_archive import WANTED, archive_name, make_options
from shoal.worker.types.spark.command import find_spark

LOOK_S = 5.0
TIMEOUT_S = 1800.0
_FAILED = ".failed"
_VERSION = re.compile(r'version "(\d+)')
_MEMORY = "700m"
# Loads what most drivers do, and a Spark Connect server beside them.
_PROGRAM = """\
from pyspark.sql import SparkSession, functions as f
spark = SparkSession.builder.getOrCreate()
rows = spark.range(1000).withColumn("kind", f.col("id") % 7)
rows.write.parquet("rows")
rows.coalesce(1).write.option("header", True).csv("texts")
spark.read.parquet("rows").createOrReplaceTempView("rows")
kinds = spark.sql("select kind, count(*) as n, sum(id) as s from rows group by kind order by kind")
kinds.join(spark.read.csv("texts", header=True), "kind").collect()
rows.rdd.map(lambda row: row.kind).distinct().count()
spark.stop()
"""
_CONF = {
    "spark.ui.port": "0",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
}

log = structlog.get_logger()


class ClassArchiver:
    """Belongs to the event loop; ``run`` is its life.

    ``root`` is the folder of the archives, which exists; ``work`` the one of attempts.
    """

    def __init__(
        self, root: Path, work: Path, launcher: Launcher, worker_env: Mapping[str, str]
    ) -> None:
        self._root, self._work = root, work
        self._launcher, self._env = launcher, worker_env

    async def run(self) -> None:
        """Make what is wanted, until it is cancelled. A failure is logged, and not repeated."""
        is_first = True
        while True:
            try:
                if is_first:
                    await asyncio.to_thread(self._forget_failures)
                    is_first = False
                await self.make_wanted()
            except OSError as error:
                log.warning("no archives of Spark's classes", why=str(error))
            await asyncio.sleep(LOOK_S)

    async def make_wanted(self) -> None:
        """Make what is wanted by now. Raises OSError if the folder cannot be used."""
        for wanted in await asyncio.to_thread(self._wanted):
            try:
                await self._make(wanted.stem)
            except (ShoalError, OSError) as error:
                log.warning("no archive of Spark's classes", why=str(error))
                await asyncio.to_thread(wanted.rename, wanted.with_suffix(_FAILED))

    def _forget_failures(self) -> None:
        for failed in self._root.glob(f"*{_FAILED}"):
            failed.unlink()

    def _wanted(self) -> list[Path]:
        """Return what asks for an archive whose making has not failed."""
        return [
            wanted
            for wanted in self._root.glob(f"*{WANTED}")
            if not wanted.with_suffix(_FAILED).exists()
        ]

    async def _make(self, key: str) -> None:
        began = time.monotonic()
        folder = self._work / f"spark-classes-{uuid.uuid4().hex}"
        request, name = await asyncio.to_thread(self._request, folder, key)
        try:
            launched = await self._launcher.launch(request)
            record = await launched.wait()
            made = folder / name
            if record.exit_code or not await asyncio.to_thread(made.exists):
                said = await asyncio.to_thread(last_line, request.log_path)
                raise ShoalError(f"it could not be made: {said or record.reason}")
            size_mb = await asyncio.to_thread(self._keep, made)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, True)
        took_s = round(time.monotonic() - began, 1)
        log.info("archive of Spark's classes made", mb=size_mb, took_s=took_s)

    def _keep(self, made: Path) -> int:
        """Let ``made`` be the only archive; return its size in MB."""
        for old in self._root.iterdir():
            old.unlink()
        shutil.move(made, self._root / f"{made.name}.new")
        return (self._root / f"{made.name}.new").rename(self._root / made.name).stat().st_size >> 20

    def _request(self, folder: Path, key: str) -> tuple[LaunchRequest, str]:
        """Return what makes the archive, and the archive's name below ``folder``."""
        home = find_spark()
        make_folder(folder)
        (folder / "tmp").mkdir(mode=0o700)
        program = folder / "program.py"
        program.write_text(_PROGRAM, encoding="ascii")
        name = archive_name(key, _java_version(self._env))
        java = [*make_options(name), "-Djava.io.tmpdir=tmp"]
        env = {
            **base_environment(self._env, folder),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_DIRS": str(folder / "tmp"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_CONNECT_AUTHENTICATE_TOKEN": uuid.uuid4().hex,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_SUBMIT_OPTS": " ".join([*java, self._env.get("SPARK_SUBMIT_OPTS", "")]).strip(),
            # By this the next worker in this folder knows what a killed one has left.
            "SHOAL_PARAMETERS": str(folder / "parameters.json"),
        }
        settings = [text for key, value in _CONF.items() for text in ("--conf", f"{key}={value}")]
        argv = ["nice", "-n", "19", str(home / "bin" / "spark-submit"), "--master", "local[1]"]
        argv += ["--driver-memory", _MEMORY, *settings, str(program)]
        request = LaunchRequest(
            id=folder.name,
            argv=argv,
            env=env,
            cwd=folder,
            log_path=folder / "log",
            record_path=folder / "record.json",
            timeout_s=TIMEOUT_S,
            journaled=False,
        )
        return request, name


def _java_version(env: Mapping[str, str]) -> int:
    """Return the main version of the worker's Java. Blocks. Raises ShoalError, OSError."""
    home = env.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    if (match := _VERSION.search(told)) is None:
        raise ShoalError(f"{java} does not say its version")
    return int(match[1])
