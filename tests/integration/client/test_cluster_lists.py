"""``shoal queue`` and ``shoal takeovers`` on a real cluster."""

import time
from pathlib import Path

from tests.integration.client.conftest import Shoal
from tests.support.waiting import DEADLINE_S

URGENT = """\
name: urgent
priority: HIGH
tasks:
  - {name: only, type: SHELL, worker_group: absent, params: {script: "true"}}
"""


def test_queue_is_listed_as_it_will_be_claimed(here: Shoal) -> None:
    Path("urgent.yaml").write_text(URGENT)
    Path("calm.yaml").write_text(URGENT.replace("urgent", "calm").replace("HIGH", "LOW"))
    assert here("apply", ".").status == 0
    nothing = here("queue", "absent")
    assert (nothing.status, nothing.out) == (0, "")
    assert "nothing waits for a worker of the group absent" in nothing.err
    runs = [here("run", name, "--json").json["id"] for name in ("calm", "urgent", "calm")]
    deadline = time.monotonic() + DEADLINE_S
    while len(found := here("queue", "absent", "--json").json) < len(runs):
        assert time.monotonic() < deadline, found
    assert [one["workflow_instance_id"] for one in found] == [runs[1], runs[0], runs[2]]
    assert [one["position"] for one in found] == [1, 2, 3]
    shown = here("queue").out.splitlines()
    assert shown[0].split()[:3] == ["group", "place", "task"]
    [first] = [line for line in shown if "default/urgent only" in line]
    assert first.split()[:2] == ["absent", "1"]
    assert "high medium" in first
    assert len(here("queue", "absent", "-n", "2", "--json").json) == 2
    for run in runs:
        assert here("stop", str(run)).status == 0
    assert here("queue", "not/a/group").status == 2


def test_takeovers_say_which_master_got_which_partition(here: Shoal) -> None:
    found = here("takeovers", "-n", "3", "--json").json
    assert len(found) == 3
    assert {one["owner"] for one in found} == {here("status", "--json").json["masters"][0]["id"]}
    lines = here("takeovers", "-n", "3").out.splitlines()
    assert (lines[0].split()[:2], len(lines)) == (["at", "partition"], 4)
