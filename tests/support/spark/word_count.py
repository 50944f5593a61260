"""A MapReduce program that counts words, compiled where it is needed."""

import subprocess
import zipfile
from pathlib import Path

from shoal.worker.types.spark.command import find_spark

_SOURCE = Path(__file__).parents[2] / "integration" / "worker" / "mapreduce" / "WordCount.java"


def compiled(folder: Path) -> Path:
    """Return the jar of ``WordCount.java``, made in ``folder``."""
    [hadoop] = (find_spark() / "jars").glob("hadoop-client-api-*.jar")
    javac = ["javac", "--release", "17", "-cp", str(hadoop), "-d", str(folder), str(_SOURCE)]
    subprocess.run(javac, check=True)
    jar = folder / "words.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for file in folder.glob("*.class"):
            archive.write(file, file.name)
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\nMain-Class: WordCount\n")
    return jar
