"""A MapReduce program, compiled for these tests."""

from pathlib import Path

import pytest

from shoal.client.local.java import find_java, spark_java_home
from tests.support.spark.word_count import compiled


@pytest.fixture(scope="session")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the jar of ``WordCount.java``, in a folder whose name holds a blank."""
    return compiled(tmp_path_factory.mktemp("word count"))


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Java for Hadoop, in a folder whose name holds a blank."""
    monkeypatch.setenv("JAVA_HOME", str(spark_java_home(find_java(), tmp_path / "java home")))
