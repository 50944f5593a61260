"""The cheap steps of the example pipeline by hand: any day can be asked for, others are refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.client import load_definitions
from tests.support.waiting import START_S

EXAMPLES = Path(__file__).parents[3] / "examples"
FLIGHTS = EXAMPLES / "flights"


def fetch(date: str, output: Path) -> subprocess.CompletedProcess[str]:
    """Run the first step for one day."""
    parameters = {"DATE": date, "SOURCE": str(EXAMPLES / "data"), "OUTPUT": str(output)}
    environment = {f"SHOAL_PARAM_{name}": value for name, value in parameters.items()}
    return subprocess.run(
        ["/bin/sh", str(FLIGHTS / "split.sh")],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=START_S,
    )


@pytest.mark.parametrize("date", ["2013-02-01", "2013-02-20", "2013-03-10", "2013-03-31"])
def test_a_day_is_cut_out_and_passes_the_quality_rules(date: str, tmp_path: Path) -> None:
    output = tmp_path / "out put"
    done = fetch(date, output)
    assert done.returncode == 0, done.stderr
    rows = (output / date / "raw/flights.csv").read_text().splitlines()
    assert len(rows) > 500
    checked = subprocess.run(
        [sys.executable, str(FLIGHTS / "quality.py"), "--date", date, "--output", str(output)],
        capture_output=True,
        text=True,
        timeout=START_S,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert json.loads((output / date / "quality.json").read_text())


@pytest.mark.parametrize("date", ["2013-01-31", "2013-02-30", "tomorrow", ""])
def test_a_day_that_is_not_in_the_data_is_refused_and_leaves_nothing(
    date: str, tmp_path: Path
) -> None:
    done = fetch(date, tmp_path)
    assert done.returncode != 0
    assert done.stderr.strip()
    assert not list(tmp_path.iterdir())


def test_all_examples_are_valid_definitions() -> None:
    found = {d.spec.name for d in load_definitions([EXAMPLES]).definitions}
    assert {"flights", "hello"} <= found
