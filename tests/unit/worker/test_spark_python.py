"""Which Python Spark's drivers and executors get."""

import sys
from pathlib import Path

import pytest

from shoal.worker.types.spark.command import environment
from shoal.worker.types.spark.kind import SparkParams


@pytest.mark.parametrize(
    ("master", "driver", "executors"),
    [("local[1]", None, sys.executable), ("local[1]", "/ml/python", "/ml/python")],
)
def test_driver_has_the_python_of_its_environment(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    master: str,
    driver: str | None,
    executors: str,
) -> None:
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    if driver is not None:
        monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", driver)
    params = SparkParams(script="print()", master=master)
    found = environment(tmp_path, Path("/spark"), params)
    assert found["PYSPARK_DRIVER_PYTHON"] == (driver or sys.executable)
    assert found["PYSPARK_PYTHON"] == executors


def test_executors_elsewhere_have_a_python_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "/ml/python")
    params = SparkParams(script="print()", master="yarn")
    found = environment(tmp_path, Path("/spark"), params)
    assert found["PYSPARK_DRIVER_PYTHON"] == "/ml/python"
    assert "PYSPARK_PYTHON" not in found
