"""``shoal audit`` and ``shoal secrets`` on a real cluster."""

import json
import re
import time
from pathlib import Path

import pytest

from tests.integration.client.conftest import Shoal, type_in, workflow
from tests.support.waiting import DEADLINE_S


def test_audit_is_listed_verified_and_exported(here: Shoal) -> None:
    assert here("parameter", "set", "audited", "1", "--project", "audit").status == 0
    wanted = ("--action", "parameter.set", "--project", "audit", "--json")
    entry, *_ = here("audit", "list", *wanted).json  # more, if a slow answer was not waited for
    assert (entry["object"], entry["principal"]) == ("audited", "break-glass")
    shown = here("audit", "list", "-n", "5")
    assert re.search(r"parameter\.set +audit +audited", shown.out)
    assert "nothing of that kind" in here("audit", "list", "--action", "no.such").err
    _until_linked(here)
    verified = here("audit", "verify", "--json").json
    assert verified["findings"] == []
    assert here("audit", "verify", "--head", verified["head"]).status == 0
    file = Path("audit.jsonl")
    file.write_text(here("audit", "export").out)
    assert here("audit", "verify", "--file", str(file), "--head", verified["head"]).status == 0
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:-1]) + "\n")
    head = f"{json.loads(lines[-1])['position']}:{json.loads(lines[-1])['hash']}"
    cut = here("audit", "verify", "--file", str(file), "--head", head)
    assert (cut.status, "it ends at position" in cut.err) == (1, True)
    file.write_text("\n".join(lines).replace("break-glass", "somebody"))
    assert "the hash does not fit" in here("audit", "verify", "--file", str(file)).err
    assert here("audit", "verify", "--head", "nonsense").status == 2
    assert here("audit", "prune", "--older-than", "2d").err == "removed 0 entries\n"
    assert here("audit", "prune", "--older-than", "1h").status == 2


def _until_linked(here: Shoal) -> None:
    """The entry of what was just done is linked within a moment."""
    deadline_s = time.monotonic() + DEADLINE_S
    while '"object": "audited"' not in here("audit", "export").out:
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def test_keys_are_rotated_while_tasks_use_secrets(
    here: Shoal, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, b"hush-hush\n")
    assert here("secret", "set", "db").status == 0
    workflow("using", 'test "$SHOAL_SECRET_db" = hush-hush')
    assert here("apply", ".").status == 0
    before = here("secrets", "keys", "--json").json
    assert before["used"][before["primary"]] >= 1
    assert all(before["primary"] in keys for keys in before["masters"].values())
    started = [here("run", "using", "--json").json["id"] for _ in range(3)]
    rotated = here("secrets", "rotate")
    assert rotated.status == 0, rotated.err
    assert re.search(r"\d+ values were encrypted anew; \w+ encrypts", rotated.err)
    after = here("secrets", "keys", "--json").json
    assert after["primary"] != before["primary"]
    assert after["retired"] == [before["primary"]]
    assert after["used"].keys() == {after["primary"]}
    assert re.search(rf"^{after['primary']} +encrypts", here("secrets", "keys").out, re.MULTILINE)
    started.append(here("run", "using", "--json").json["id"])
    for one in started:
        assert _state_at_the_end(here, one) == "SUCCEEDED"


def _state_at_the_end(here: Shoal, instance_id: int) -> str:
    deadline_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline_s:
        state = str(here("instance", str(instance_id), "--json").json["state"])
        if state in ("SUCCEEDED", "FAILED", "STOPPED"):
            return state
        time.sleep(0.1)
    raise AssertionError(f"instance {instance_id} goes on")
