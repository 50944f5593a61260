"""``shoal backfill`` and ``shoal backfills`` on a real cluster."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.client.conftest import Shoal, workflow
from tests.support.waiting import DEADLINE_S

JANUARY = ("--from", "2026-01-01", "--to", "2026-01-04")


def until(look: Callable[[], Any], good: Callable[[Any], bool]) -> Any:
    """Look until what is seen is good."""
    deadline = time.monotonic() + DEADLINE_S
    while not good(seen := look()):
        assert time.monotonic() < deadline, seen
        time.sleep(0.05)
    return seen


def test_a_backfill_is_previewed_run_and_shown(here: Shoal) -> None:
    workflow("filled", "echo $[yyyy-MM-dd]")
    here("apply", "filled.yaml")
    plan = here("backfill", "filled", *JANUARY, "--descending", "--dry-run")
    assert plan.status == 0, plan.err
    assert re.search(r"^ *0 +2026-01-04T00:00:00Z +default/filled +runs", plan.out, re.MULTILINE)
    assert plan.err == "4 runs, 0 left out; nothing was started\n"
    assert here("backfills", "--workflow", "filled", "--json").json == []

    ran = here("backfill", "filled", *JANUARY, "--parallel", "2", "--wait")
    assert ran.status == 0, ran.err
    assert "✓ SUCCEEDED" in ran.out
    assert re.search(r"\d\d:\d\d:\d\d \S+ SUCCEEDED +4 of 4 dates done", ran.err)
    (found,) = here("backfills", "--workflow", "default/filled", "--json").json
    assert (found["state"], found["counts"]) == ("SUCCEEDED", {"SUCCEEDED": 4})
    number = str(found["id"])
    assert re.search(rf"^ *{number} +default/filled +✓ SUCCEEDED", here("backfills").out, re.M)
    shown = here("backfills", "show", number)
    assert "from=2026-01-01  to=2026-01-04  parallel=2" in shown.out
    assert len(re.findall(r"2026-01-0\dT00:00:00Z +default/filled +✓ SUCCEEDED", shown.out)) == 4
    runs = here("backfills", "show", number, "--json").json["runs"]
    assert here("logs", f"{runs[1]['instance_id']}:only").out == "2026-01-02\n"

    again = here("backfill", "filled", *JANUARY)
    assert again.status == 2
    assert "nothing to run: 4 x it has succeeded before" in again.err
    one = here(
        "backfill", "filled", "--date", "2026-01-02", "--reprocess", "all", "--wait", "--json"
    )
    assert (one.status, one.json["total"]) == (0, 1)


def test_a_date_that_fails_ends_it_and_a_retry_after_the_fix_completes_it(here: Shoal) -> None:
    workflow("breaks", "[ $[dd] != 02 ]")
    here("apply", "breaks.yaml")
    ran = here("backfill", "breaks", *JANUARY, "--wait")
    assert ran.status == 1
    assert "1 of 4 runs failed, 2 did not start" in ran.out
    assert re.search(r"2026-01-02T00:00:00Z +default/breaks +✗ FAILED", ran.out)
    number = re.search(r"backfill (\d+) of", ran.err)
    assert number is not None
    workflow("breaks", "true")
    here("apply", "breaks.yaml")
    retried = here("backfills", "retry", number[1], "--wait", "--json")
    assert (retried.status, retried.json["counts"]) == (0, {"SUCCEEDED": 4})
    refused = here("backfills", "retry", number[1])
    assert (refused.status, refused.err) == (
        1,
        "error: refused: cannot retry: the backfill is SUCCEEDED\n",
    )


def test_pause_resume_and_cancel(here: Shoal, tmp_path: Path) -> None:
    workflow("gated", f"while [ ! -e '{tmp_path}/go' ]; do sleep 0.05; done")
    here("apply", "gated.yaml")
    started = here("backfill", "gated", *JANUARY, "--parallel", "2", "--json")
    number = str(started.json["id"])

    def counts() -> Any:
        return here("backfills", "show", number, "--json").json["counts"]

    assert here("backfills", "pause", number).out == f"backfill {number} starts no other date\n"
    (tmp_path / "go").touch()
    seen = until(counts, lambda found: "STARTED" not in found)
    assert seen["WAITING"] >= 2
    assert here("backfills", "--state", "paused", "--json").json[0]["id"] == int(number)
    (tmp_path / "go").unlink()
    assert here("backfills", "resume", number).status == 0
    until(counts, lambda found: found.get("STARTED") == 2)
    assert here("backfills", "cancel", number).status == 0
    ended = until(
        lambda: here("backfills", "show", number, "--json").json,
        lambda found: found["state"] == "CANCELLED",
    )
    assert ended["counts"] == {"SUCCEEDED": 4 - seen["WAITING"], "CANCELLED": seen["WAITING"]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "say which dates"),
        (("--from", "2026-01-01"), "go together"),
        ((*JANUARY, "--date", "2026-01-01"), "say which dates"),
        ((*JANUARY, "--missing", "--failed"), "exclude each other"),
        ((*JANUARY, "--missing", "--reprocess", "all"), "does not go with"),
        ((*JANUARY, "--on-failure", "0"), "number of failures"),
        ((*JANUARY, "--downstream"), "needs a task"),
        ((*JANUARY, "--by", "week"), "week"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_asked(
    shoal: Shoal, arguments: tuple[str, ...], words: str
) -> None:
    ended = shoal("backfill", "w", *arguments)
    assert ended.status == 2
    assert words in re.sub(r"[│\s]+", " ", ended.err)
