"""Workflows run for real: the ways a task and an instance can end, and a thousand at once.

What requests do to a run is in ``faults/test_requests.py``."""

from pathlib import Path

from tests.acceptance.rest import Rest


def test_diamond_succeeds_in_order(rest: Rest, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    mark = f"echo $SHOAL_TASK >> '{ledger}'"
    rest.publish(
        "diamond",
        {
            "a": {"script": mark},
            "b": {"script": mark, "depends_on": ["a"]},
            "c": {"script": mark, "depends_on": ["a"]},
            "d": {"script": mark, "depends_on": ["b", "c"]},
        },
    )
    instance = rest.wait_for(rest.start("diamond"))
    assert instance["state"] == "SUCCEEDED"
    lines = ledger.read_text().split()
    assert (lines[0], sorted(lines[1:3]), lines[3]) == ("a", ["b", "c"], "d")
    for task in instance["tasks"]:
        assert task["state"] == "SUCCEEDED"
        assert task["exit_code"] == 0
        assert task["queued_at"] <= task["started_at"] <= task["finished_at"]


def test_failure_skips_downstream_and_keeps_the_log(rest: Rest) -> None:
    rest.publish(
        "fails",
        {
            "bad": {"script": "echo before; echo oops >&2; exit 3"},
            "after": {"depends_on": ["bad"]},
            "cleanup": {"depends_on": ["bad"], "run_when": "any_failed"},
        },
    )
    instance_id = rest.start("fails")
    assert rest.wait_for(instance_id)["state"] == "FAILED"
    tasks = rest.tasks(instance_id)
    assert (tasks["bad"]["state"], tasks["bad"]["exit_code"]) == ("FAILED", 3)
    assert (tasks["after"]["state"], tasks["cleanup"]["state"]) == ("SKIPPED", "SUCCEEDED")
    assert "bad" in tasks["after"]["reason"]
    assert rest.log(tasks["bad"]["id"]) == "before\noops\n"


def test_retries_are_separate_attempts_with_logs_of_their_own(rest: Rest, tmp_path: Path) -> None:
    rest.publish(
        "retries",
        {
            "flaky": {
                "script": f"echo attempt $SHOAL_ATTEMPT; echo x >> '{tmp_path}/n'; "
                f"[ $(wc -l < '{tmp_path}/n') -ge 3 ]",
                "retries": 3,
                "retry_delay": "200ms",
            }
        },
    )
    instance_id = rest.start("retries")
    assert rest.wait_for(instance_id)["state"] == "SUCCEEDED"
    attempts = rest.instance(instance_id, attempts="all")["tasks"]
    assert [(a["attempt"], a["state"]) for a in attempts] == [
        (1, "FAILED"),
        (2, "FAILED"),
        (3, "SUCCEEDED"),
    ]
    assert [rest.log(a["id"]) for a in attempts] == [f"attempt {n}\n" for n in (1, 2, 3)]


def test_timeout_kills_the_whole_tree_and_fails_the_task(rest: Rest, tmp_path: Path) -> None:
    rest.publish(
        "slow",
        {
            "sleeper": {
                "script": f"(trap '' TERM; setsid sleep 300 & echo $! > '{tmp_path}/pid'; wait)",
                "timeout": "1s",
            }
        },
    )
    instance_id = rest.start("slow")
    assert rest.wait_for(instance_id)["state"] == "FAILED"
    task = rest.tasks(instance_id)["sleeper"]
    assert task["state"] == "FAILED"
    assert "1s" in task["reason"] or "timeout" in task["reason"] or "timed out" in task["reason"]
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_stop_kills_and_resume_finishes(rest: Rest, tmp_path: Path) -> None:
    rest.publish(
        "stoppable",
        {
            "first": {"script": f"echo $$ > '{tmp_path}/pid'; [ -e '{tmp_path}/go' ] || sleep 300"},
            "second": {"depends_on": ["first"]},
        },
    )
    instance_id = rest.start("stoppable")
    rest.until(lambda: rest.tasks(instance_id)["first"]["state"], lambda s: s == "RUNNING")
    rest.until(lambda: (tmp_path / "pid").exists(), bool)
    assert rest.command("STOP", instance_id=instance_id)["state"] == "DONE"
    assert rest.wait_for(instance_id)["state"] == "STOPPED"
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()
    assert {t["state"] for t in rest.tasks(instance_id).values()} == {"KILLED"}
    (tmp_path / "go").touch()
    assert rest.command("RESUME", instance_id=instance_id)["state"] == "DONE"
    assert rest.wait_for(instance_id)["state"] == "SUCCEEDED"


def test_thousand_tasks_in_one_workflow(rest: Rest) -> None:
    tasks = {
        f"t{n:04d}": {"depends_on": [f"t{n - 100:04d}"] if n >= 100 else []} for n in range(1000)
    }
    rest.publish("thousand-tasks", tasks)
    instance = rest.wait_for(rest.start("thousand-tasks"), timeout_s=500)
    assert instance["state"] == "SUCCEEDED"
    assert len(instance["tasks"]) == 1000
    assert {t["attempt"] for t in instance["tasks"]} == {1}


def test_thousand_instances(rest: Rest) -> None:
    rest.publish("thousand-instances", {"a": {}})
    ids = [
        rest.http.post(
            "/commands",
            json={"type": "START", "project": "default", "workflow": "thousand-instances"},
        ).json()["id"]
        for _ in range(1000)
    ]
    assert len(set(ids)) == 1000

    def succeeded() -> int:
        count, cursor = 0, None
        while True:
            query = {"limit": 500} | ({"cursor": cursor} if cursor else {})
            page = rest.get(
                "/instances",
                project="default",
                workflow="thousand-instances",
                state="SUCCEEDED",
                **query,
            )
            count += len(page["items"])
            cursor = page["next"]
            if cursor is None:
                return count

    rest.until(succeeded, lambda count: count == 1000, timeout_s=500)
