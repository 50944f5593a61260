"""Fixtures of these tests."""

from pathlib import Path

import pytest

from shoal.client.local.java import find_java, spark_java_home
from tests.integration.worker.spark.kit import Endless


@pytest.fixture
def java(spark_classes: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Java for Spark, in a folder whose name holds a blank."""
    monkeypatch.setenv("JAVA_HOME", str(spark_java_home(find_java(), tmp_path / "java home")))


@pytest.fixture
def endless(tmp_path: Path) -> Endless:
    """A query that does not end."""
    return Endless(tmp_path / "beats")
