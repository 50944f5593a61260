"""Workflows run for real: every way a task and an instance can end."""

import json
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


def test_pause_holds_what_has_not_started(rest: Rest, tmp_path: Path) -> None:
    rest.publish(
        "pausable",
        {
            "first": {"script": f"while [ ! -e '{tmp_path}/go' ]; do sleep 0.05; done"},
            "second": {"depends_on": ["first"]},
        },
    )
    instance_id = rest.start("pausable")
    rest.until(lambda: rest.tasks(instance_id)["first"]["state"], lambda s: s == "RUNNING")
    assert rest.command("PAUSE", instance_id=instance_id)["state"] == "DONE"
    (tmp_path / "go").touch()
    rest.until(lambda: rest.instance(instance_id)["state"], lambda s: s == "PAUSED")
    assert rest.tasks(instance_id)["first"]["state"] == "SUCCEEDED"
    assert rest.tasks(instance_id)["second"]["state"] in ("PAUSED", "WAITING")
    assert rest.command("RESUME", instance_id=instance_id)["state"] == "DONE"
    assert rest.wait_for(instance_id)["state"] == "SUCCEEDED"


def test_recover_runs_only_what_failed(rest: Rest, tmp_path: Path) -> None:
    rest.publish(
        "recoverable",
        {
            "good": {"script": f"echo x >> '{tmp_path}/good'"},
            "bad": {"script": f"[ -e '{tmp_path}/fixed' ]", "depends_on": ["good"]},
            "after": {"depends_on": ["bad"]},
        },
    )
    instance_id = rest.start("recoverable")
    assert rest.wait_for(instance_id)["state"] == "FAILED"
    (tmp_path / "fixed").touch()
    assert rest.command("RECOVER", instance_id=instance_id)["state"] == "DONE"
    assert rest.wait_for(instance_id)["state"] == "SUCCEEDED"
    assert (tmp_path / "good").read_text() == "x\n"


def test_rerun_is_a_new_instance_with_the_same_parameters(rest: Rest) -> None:
    rest.publish("again", {"say": {"script": "echo got $word"}}, parameters={"word": "nothing"})
    first = rest.start("again", parameters={"word": "hello"})
    rest.wait_for(first)
    outcome = rest.command("RERUN", instance_id=first)
    second = outcome["result_instance_id"]
    assert second != first
    instance = rest.wait_for(second)
    assert (instance["rerun_of"], instance["run_number"]) == (first, 2)
    assert rest.log(rest.tasks(second)["say"]["id"]) == "got hello\n"


def test_requests_that_make_no_sense_are_refused_with_the_reason(rest: Rest) -> None:
    rest.publish("short", {"a": {}})
    instance_id = rest.start("short")
    rest.wait_for(instance_id)
    outcome = rest.command("PAUSE", instance_id=instance_id)
    assert outcome["state"] == "REFUSED"
    assert "SUCCEEDED" in outcome["reason"]


def test_hostile_parameters_arrive_byte_exact_and_never_run(rest: Rest, tmp_path: Path) -> None:
    value = f"$(touch '{tmp_path}/pwned') `id` \"quotes\" 'single' ; ü\n${{HOME}} \\n %s"
    rest.publish(
        "hostile",
        {
            "shell": {"script": 'printf %s "$word"'},
        },
        parameters={"word": "none"},
    )
    body = {
        "name": "hostile-python",
        "parameters": {"word": "none"},
        "tasks": [
            {
                "name": "python",
                "type": "PYTHON",
                "params": {
                    "script": "import json, os, sys\n"
                    "given = json.load(open(os.environ['SHOAL_PARAMETERS']))\n"
                    "sys.stdout.write(given['word'] + '|' + sys.argv[1])",
                    "arguments": ["${word}"],
                },
            }
        ],
    }
    rest.put("/projects/default/workflows/hostile-python", body)
    shell = rest.start("hostile", parameters={"word": value})
    python = rest.start("hostile-python", parameters={"word": value})
    assert rest.wait_for(shell)["state"] == "SUCCEEDED"
    assert rest.wait_for(python)["state"] == "SUCCEEDED"
    assert rest.log(rest.tasks(shell)["shell"]["id"]) == value
    assert rest.log(rest.tasks(python)["python"]["id"]) == f"{value}|{value}"
    assert not (tmp_path / "pwned").exists()


def test_date_expressions_follow_the_logical_time(rest: Rest) -> None:
    rest.publish(
        "dated", {"say": {"script": "echo $[yyyy-MM-dd] $[yyyyMMdd-1] ${system.biz.date}"}}
    )
    instance_id = rest.start("dated", logical_time="2024-03-01T12:00:00Z")
    rest.wait_for(instance_id)
    assert rest.log(rest.tasks(instance_id)["say"]["id"]) == "2024-03-01 20240229 20240229\n"


def test_idempotency_key_starts_one_instance(rest: Rest) -> None:
    rest.publish("once", {"a": {}})
    body = {
        "type": "START",
        "project": "default",
        "workflow": "once",
        "idempotency_key": "test-once",
    }
    answers = [rest.http.post("/commands", json=body).json() for _ in range(3)]
    assert len({a["id"] for a in answers}) == 1
    rest.outcome(answers[0]["id"])
    assert len(rest.get("/instances", project="default", workflow="once")["items"]) == 1


def test_schedule_fires_by_itself(rest: Rest) -> None:
    rest.publish("timed", {"a": {}}, schedules=[{"cron": "* * * * * ?"}])
    found = rest.until(
        lambda: rest.get("/instances", project="default", workflow="timed")["items"],
        lambda items: len(items) >= 3,
    )
    rest.publish("timed", {"a": {}}, schedules=[])
    times = [i["logical_time"] for i in found]
    assert len(set(times)) == len(times), "one instance per fire time"


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


def test_events_tell_what_happened(rest: Rest) -> None:
    rest.publish("eventful", {"a": {}})
    instance_id = rest.start("eventful")
    rest.wait_for(instance_id)
    seen = []
    with rest.http.stream(
        "GET", "/events", params={"instance_id": instance_id}, headers={"Last-Event-ID": "0"}
    ) as stream:
        for line in stream.iter_lines():
            if line.startswith("data:"):
                event = json.loads(line[5:])
                seen.append(event)
                if "SUCCEEDED" in line and event.get("task_instance_id") is None:
                    break
    assert seen
