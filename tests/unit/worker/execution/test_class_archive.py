"""Which archive of classes a start of Java uses, and how it is asked for."""

import os
from pathlib import Path

import pytest

from shoal.worker.types.spark.class_archive import (
    WANTED,
    archive_name,
    make_options,
    use_options,
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Spark's home with a jar, and a Java."""
    for file in ("spark/jars/a.jar", "java/bin/java"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text("x")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    return tmp_path / "spark"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def wanted(root: Path) -> list[str]:
    return [file.stem for file in root.glob(f"*{WANTED}")]


def test_archive_that_is_not_there_is_asked_for(home: Path, root: Path, tmp_path: Path) -> None:
    assert use_options(str(root), home, tmp_path) == []
    assert use_options(str(root), home, tmp_path) == []
    assert len(wanted(root)) == 1


def test_nothing_is_asked_for_where_there_are_to_be_none(home: Path, tmp_path: Path) -> None:
    assert use_options("", home, tmp_path) == []


@pytest.mark.parametrize(
    ("version", "suffix", "option"),
    [
        (17, ".jsa", "-XX:SharedArchiveFile=classes.jsa"),
        (24, ".jsa", "-XX:SharedArchiveFile=classes.jsa"),
        (25, ".aot", "-XX:AOTCache=classes.aot"),
    ],
)
def test_archive_is_linked_and_used(
    version: int, suffix: str, option: str, home: Path, root: Path, tmp_path: Path
) -> None:
    use_options(str(root), home, tmp_path)
    [key] = wanted(root)
    name = archive_name(key, version)
    assert name == key + suffix
    assert make_options(name)[0].endswith(f"={name}")
    (root / name).write_text("classes")
    folder = tmp_path / "an attempt"
    folder.mkdir()
    assert use_options(str(root), home, folder)[0] == option
    assert (folder / f"classes{suffix}").read_text() == "classes"


@pytest.mark.parametrize("changed", ["spark/jars/a.jar", "spark/jars/b.jar", "java/bin/java"])
def test_other_java_or_jars_want_an_archive_of_their_own(
    changed: str, home: Path, root: Path, tmp_path: Path
) -> None:
    use_options(str(root), home, tmp_path)
    (tmp_path / changed).write_text("xy")
    os.utime(tmp_path / changed, (1, 1))
    use_options(str(root), home, tmp_path)
    assert len(wanted(root)) == 2
