"""``shoal parameter``, ``shoal secret`` and ``shoal task`` on a real cluster."""

import re

import pytest

from shoal.client.local.cluster import LocalCluster
from tests.integration.client.conftest import Shoal, type_in, workflow


def test_parameters_of_a_project_reach_its_tasks_and_outputs_are_shown(here: Shoal) -> None:
    assert here("parameter", "set", "place", "sea $[yyyy]", "--project", "water").status == 0
    assert re.search(r"^water +place +sea \$\[yyyy\]", here("parameter", "list").out, re.MULTILINE)
    workflow("dive", 'echo "where=$place" > "$SHOAL_OUTPUT"', "project: water")
    assert here("apply", ".").status == 0
    ran = here("run", "water/dive", "--logical-time", "2024-05-01", "--wait", "--json")
    assert ran.status == 0, ran.err
    [task] = ran.json["tasks"]
    shown = here("task", str(task["id"]))
    assert re.search(r"^only  instance \d+  attempt 1  ✓ SUCCEEDED", shown.out)
    assert re.search(r"^where +sea 2024$", shown.out, re.MULTILINE)
    assert here("task", str(task["id"]), "--json").json["outputs"] == {"where": "sea 2024"}
    assert here("parameter", "delete", "place", "--project", "water").status == 0
    assert here("parameter", "list", "--project", "water", "--json").json == {"water": {}}
    assert here("parameter", "delete", "place", "--project", "water").status == 3
    wrong = here("parameter", "set", "place", "$[nonsense(]", "--project", "water")
    assert wrong.status == 2
    assert "unknown function" in wrong.err


def test_secret_comes_from_standard_input_and_is_never_shown(
    here: Shoal, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, b"hush-hush\n")
    done = here("secret", "set", "db", "--project", "vault")
    assert (done.status, done.out, done.err) == (0, "", "secret vault/db is set\n")
    listed = here("secret", "list", "--project", "vault")
    assert re.search(r"^vault +db ", listed.out, re.MULTILINE)
    assert [one["name"] for one in here("secret", "list", "--project", "vault", "--json").json] == [
        "db"
    ]
    assert "hush" not in listed.out
    assert here("secret", "delete", "db", "--project", "vault").status == 0
    assert here("secret", "delete", "db", "--project", "vault").status == 3
    type_in(monkeypatch, b"abc")
    assert "less than 4 characters" in here("secret", "set", "db", "--project", "vault").err
    type_in(monkeypatch, b"\xff\xff\xff\xff")
    assert here("secret", "set", "db", "--project", "vault").status == 2


def test_secret_in_a_store_is_set_and_tried(here: Shoal, cluster: LocalCluster) -> None:
    mounted = cluster.data / "mounted"
    unknown = here("secret", "set", "db", "--from", "none:water/db", "--project", "water")
    assert unknown.status == 2
    assert "names the store none, which there is not" in unknown.err
    reference = "mounted:water/db"
    done = here("secret", "set", "db", "--from", reference, "--project", "water")
    assert (done.status, done.err) == (
        0,
        f"secret water/db is read from {reference}; `shoal secret test` tries it\n",
    )
    listed = here("secret", "list", "--project", "water")
    assert re.search(rf"^water +db .*{reference}", listed.out, re.MULTILINE)
    missing = here("secret", "test", "db", "--project", "water")
    assert missing.status == 1
    assert "there is no such file" in missing.err
    (mounted / "water").mkdir(parents=True)
    (mounted / "water" / "db").write_text("hush of the mount\n")
    tried = here("secret", "test", "db", "--project", "water")
    assert (tried.status, "can be read" in tried.err) == (0, True)
    assert here("secret", "test", "db", "--project", "water", "--json").json["ok"]
