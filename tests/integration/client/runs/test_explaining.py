"""``shoal why`` on a real cluster."""

import time
from pathlib import Path

import pytest

from tests.integration.client.conftest import Shoal
from tests.support.waiting import DEADLINE_S

NOBODY = """\
name: nobody
tasks:
  - {name: first, type: SHELL, worker_group: nowhere, params: {script: "true"}}
  - {name: second, type: SHELL, depends_on: first, params: {script: "true"}}
"""


@pytest.fixture
def waiting(here: Shoal) -> int:
    """An instance whose first task waits for a worker group without workers."""
    Path("nobody.yaml").write_text(NOBODY)
    assert here("apply", ".").status == 0
    found: int = here("run", "nobody", "--json").json["id"]
    deadline = time.monotonic() + DEADLINE_S
    while here("instance", str(found), "--json").json["state"] != "RUNNING":
        assert time.monotonic() < deadline, "no master has started it"
    return found


def test_instance_and_task_say_what_they_wait_for(here: Shoal, waiting: int) -> None:
    shown = here("why", f"{waiting}/second")
    assert shown.status == 0
    assert "task second (task instance " in shown.out
    assert "upstream task first is " in shown.out
    [first] = [
        t for t in here("instance", str(waiting), "--json").json["tasks"] if t["task"] == "first"
    ]
    by_id = here("why", "-t", str(first["id"]), "--json").json
    assert by_id["task"] == "first"
    whole = here("why", str(waiting)).out
    assert "owns partition" in whole
    assert "1 task waits for those before it" in whole
    assert here("stop", str(waiting)).status == 0


def test_mistakes_say_how_to_write_it(here: Shoal, waiting: int) -> None:
    wrong = here("why", "nobody")
    said = " ".join(wrong.err.replace("│", "").split())  # it is wrapped in a box
    assert (wrong.status, "write 17 for an instance" in said) == (2, True)
    wrong = here("why", f"{waiting}/secnod")
    assert (wrong.status, "did you mean 'second'?" in wrong.err) == (2, True)
    assert here("why", "999999").status != 0
    assert here("stop", str(waiting)).status == 0
