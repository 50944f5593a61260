"""``shoal concurrency`` on a real cluster."""

import re
import time
from pathlib import Path

from tests.integration.client.conftest import Shoal
from tests.support.waiting import DEADLINE_S

GROUPED = """\
name: grouped
tasks:
  - {name: a, type: SHELL, concurrency_group: narrow, params: {script: "true"}}
"""


def test_group_lets_through_as_many_as_it_has_slots(here: Shoal) -> None:
    Path("grouped.yaml").write_text(GROUPED)
    refused = here("apply", ".")
    assert refused.status != 0
    assert "shoal concurrency set default/narrow SLOTS" in refused.err
    made = here("concurrency", "set", "narrow", "0", "--description", "one at a time")
    assert (made.status, made.err) == (0, "concurrency group default/narrow has 0 slots\n")
    assert here("apply", ".").status == 0
    instance = here("run", "grouped", "--json").json["id"]
    until_state(here, instance, "BLOCKED")
    shown = here("concurrency", "show", "default/narrow")
    assert "0 of 0 slots taken, 1 waiting" in shown.out
    assert re.search(rf"^grouped/a +{instance} .*BLOCKED", shown.out, re.MULTILINE)
    listed = here("concurrency", "list", "--project", "default").out
    assert re.search(r"^default/narrow +0 +0 +1 +one at a time", listed, re.MULTILINE)
    assert here("concurrency", "delete", "narrow").status != 0
    assert here("concurrency", "set", "narrow", "1").status == 0
    until_state(here, instance, "SUCCEEDED")
    found = here("concurrency", "show", "narrow", "--json").json
    assert (found["description"], found["waiting"]) == ("one at a time", 0)
    wrong = here("concurrency", "set", "narrow", "-1")
    assert wrong.status == 2
    assert here("concurrency", "show", "other/narrow", "--project", "default").status == 2


def until_state(here: Shoal, instance: int, state: str) -> None:
    """Wait until the one task of an instance is in ``state``."""
    deadline = time.monotonic() + DEADLINE_S
    while (seen := here("instance", str(instance), "--json").json["tasks"][0]["state"]) != state:
        assert time.monotonic() < deadline, f"the task is {seen}, not {state}"
