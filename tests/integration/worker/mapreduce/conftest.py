"""A MapReduce program, compiled for these tests."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from shoal.client.local.java import find_java, spark_java_home
from shoal.worker.types.spark.command import find_spark


@pytest.fixture(scope="session")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the jar of ``WordCount.java``, in a folder whose name holds a blank."""
    folder = tmp_path_factory.mktemp("word count")
    [hadoop] = (find_spark() / "jars").glob("hadoop-client-api-*.jar")
    source = Path(__file__).with_name("WordCount.java")
    javac = ["javac", "--release", "17", "-cp", str(hadoop), "-d", str(folder), str(source)]
    subprocess.run(javac, check=True)
    jar = folder / "words.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for compiled in folder.glob("*.class"):
            archive.write(compiled, compiled.name)
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\nMain-Class: WordCount\n")
    return jar


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Java for Hadoop, in a folder whose name holds a blank."""
    monkeypatch.setenv("JAVA_HOME", str(spark_java_home(find_java(), tmp_path / "java home")))
