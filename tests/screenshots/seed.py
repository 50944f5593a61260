"""What the pictures show: projects, workflows with a history, a backfill, people, files."""

from typing import Any

from tests.acceptance.rest import Rest
from tests.screenshots import alerts
from tests.support.people import add_user

ETL = """#!/usr/bin/env bash
set -euo pipefail
day=${1:?a day is needed}
for part in eu us asia; do
  echo "INFO loading $part of $day"
  sleep 0.2
  echo "INFO $part rows=$((RANDOM % 9000 + 1000))"
done
"""
FLIGHTS: dict[str, dict[str, Any]] = {
    "fetch": {
        "script": 'echo "INFO fetching $day"; sleep 0.4; echo "rows=27004" >> "$SHOAL_OUTPUT"'
    },
    "check": {"script": 'echo "INFO rows=$rows"; sleep 0.2', "depends_on": ["fetch"]},
    "load_eu": {"script": "sleep 0.7; echo done", "depends_on": ["check"]},
    "load_us": {"script": "sleep 1.1; echo done", "depends_on": ["check"]},
    "load_asia": {"script": "sleep 0.5; echo done", "depends_on": ["check"]},
    "merge": {"script": "sleep 0.4", "depends_on": ["load_eu", "load_us", "load_asia"]},
    "delays": {
        "script": 'for i in $(seq 1 40); do echo "INFO airport $i: $((i * 37 % 90)) min"; done',
        "depends_on": ["merge"],
    },
    "report": {"script": 'echo "INFO report of $day"; sleep 0.3', "depends_on": ["delays"]},
}


ARRIVALS: dict[str, dict[str, Any]] = {
    "fetch": {"script": "sleep 2.1"},
    "check": {"script": "sleep 0.9", "depends_on": ["fetch"]},
    "load_eu": {"script": "sleep 4.2", "depends_on": ["check"]},
    "load_us": {"script": "sleep 15.6", "depends_on": ["check"]},
    "load_asia": {"script": "sleep 3.1", "depends_on": ["check"]},
    "merge": {"script": "sleep 1.6", "depends_on": ["load_eu", "load_us", "load_asia"]},
    "report": {"script": "sleep 0.8", "depends_on": ["merge"]},
}


def seed(rest: Rest, sink: str) -> dict[str, Any]:
    """Fill a new cluster. Returns what the pictures need: ids of runs, names.

    ``sink``: address of a server that takes messages.
    """
    for name, text in (
        ("flights", "Delays of all flights, every night."),
        ("sales", "Orders, invoices, the weekly report."),
        ("ml", "Models of churn and demand."),
        ("empty", "A project that has nothing in it yet."),
    ):
        _put(rest, f"/projects/{name}", {"description": text})
    people(rest)
    values(rest)
    files(rest)
    alerts.define(rest, sink)
    found = runs(rest)
    found["alert"] = alerts.wait_for_messages(rest, found["run"])
    return found


def people(rest: Rest) -> None:
    """Make users, a group, members, a service account."""
    for name, full in (("ada", "Ada Lovelace"), ("rosa", "Rosa Diaz"), ("li", "李 明")):
        add_user(rest.http, name, full, is_admin=name == "ada")
    _post(rest, "/groups", {"name": "analysts", "description": "Who reads reports"}, 201)
    _put(rest, "/groups/analysts/members/li", None)
    _put(rest, "/projects/flights/members/user/rosa", {"role": "reader"})
    _put(rest, "/projects/sales/members/group/analysts", {"role": "runner"})
    _put(rest, "/projects/flights/members/group/analysts", {"role": "runner"})
    _put(rest, "/projects/flights/grants/sales", {"what": "see"})
    account = {"name": "loader", "role": "runner"}
    _post(rest, "/projects/flights/service-accounts", account, 201)
    token = {"name": "nightly import", "days": 30, "permissions": ["run.operate"]}
    _post(rest, "/projects/flights/service-accounts/loader/tokens", token, 201)


def values(rest: Rest) -> None:
    """Set parameters, secrets, limits, data sources, environments."""
    for name, value in (("bucket", "s3://lake/flights"), ("region", "eu-central-1")):
        _put(rest, f"/projects/flights/parameters/{name}", {"value": value})
    for name in ("db_password", "api_key", "smtp"):
        _put(rest, f"/projects/flights/secrets/{name}", {"value": "not for anybody's eyes"})
    days = ["2026-12-24", "2026-12-25", "2026-12-26", "2027-01-01"]
    _put(rest, "/projects/flights/calendars/holidays", {"days": days, "description": "Berlin"})
    group = {"slots": 4, "description": "Connections of the warehouse"}
    _put(rest, "/projects/flights/concurrency-groups/warehouse", group)
    for name, body in {
        "warehouse": {
            "kind": "postgresql",
            "host": "db.example.org",
            "database": "sales",
            "user": "etl",
            "password": "${secret.db_password}",
            "options": {"sslmode": "verify-full", "connect_timeout": 5},
            "shared_with": ["sales"],
        },
        "scratch": {"kind": "sqlite", "database": ":memory:"},
        "gateway": {"kind": "ssh", "host": "gw.example.org", "user": "ops"},
    }.items():
        _put(rest, f"/projects/flights/data-sources/{name}", body)
    environment = {
        "description": "Training on the GPUs",
        "python": "/opt/venvs/ml",
        "variables": {"OMP_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": "0"},
        "worker_groups": ["gpu", "default"],
    }
    _put(rest, "/environments/ml", environment)


def files(rest: Rest) -> None:
    """Upload some files, one of them in three versions."""
    changed = ETL.replace("sleep 0.2", "sleep 0.1").replace("asia", "asia africa")
    for path, contents in {
        "etl/clean.sh": [ETL, changed, changed.replace("INFO loading", "INFO reading")],
        "etl/lib/dates.sh": ["today() { date -u +%F; }\n"],
        "conf/airports.csv": ["code,name\nBER,Berlin\nFRA,Frankfurt\n"],
        "sql/report.sql": ["SELECT carrier, avg(delay) FROM flights GROUP BY carrier;\n"],
        "readme.md": ["# Flights\n\nWhat the nightly run needs.\n"],
    }.items():
        for content in contents:
            answer = rest.http.put(
                f"/projects/flights/resource-contents/{path}",
                content=content.encode(),
                headers={"content-type": "application/octet-stream"},
            )
            assert answer.status_code in (200, 201), answer.text


def runs(rest: Rest) -> dict[str, Any]:
    """Publish workflows and run them: with success, without, and until now."""
    nightly = [{"cron": "0 0 2 * * ?", "timezone": "Europe/Berlin"}]
    parameters = {"day": {"type": "date", "default": "$[yyyy-MM-dd]", "description": "Which day"}}
    _publish(
        rest,
        "flights",
        "nightly",
        FLIGHTS,
        parameters=parameters,
        schedules=nightly,
        description="Fetches, checks and loads the delays of a day.",
        timezone="Europe/Berlin",
    )
    broken = {
        **FLIGHTS,
        "load_us": {
            "script": "echo 'ERROR: relation flights_us does not exist' >&2; exit 3",
            "depends_on": ["check"],
        },
    }
    _publish(
        rest,
        "flights",
        "hourly",
        {"poll": {"script": "sleep 0.3"}, "store": {"depends_on": ["poll"]}},
        description="Positions of the last hour.",
        schedules=[{"cron": "0 5 * * * ?"}],
    )
    _publish(
        rest,
        "sales",
        "orders",
        {
            "read": {"script": "sleep 0.2"},
            "bill": {"depends_on": ["read"]},
            "mail": {"depends_on": ["bill"]},
        },
        description="Orders become invoices.",
        schedules=[{"cron": "0 30 6 ? * MON-FRI"}],
    )
    _publish(
        rest,
        "ml",
        "churn",
        {
            "features": {"script": "sleep 0.5"},
            "train": {
                "script": "for i in $(seq 1 900); do echo epoch $i; sleep 1; done",
                "depends_on": ["features"],
            },
            "score": {"depends_on": ["train"]},
        },
        description="Who is about to leave?",
    )
    for name, waits in {
        "report": {"nightly": "today", "hourly": "today", "weather": "today"},
        "forecast": {"weather": "today"},
        "billing": {"report": "today"},
        "week": {"report": "last7Days", "billing": "last1Days"},
    }.items():
        items = [{"workflow": one, "date": value} for one, value in waits.items()]
        wait = {"name": "wait", "type": "DEPENDENT", "params": {"when": {"all": items}}}
        _put(rest, f"/projects/flights/workflows/{name}", {"name": name, "tasks": [wait]})
    _publish(rest, "flights", "weather", {"read": {"script": "sleep 0.1"}})
    _publish(rest, "flights", "arrivals", ARRIVALS, description="Who lands when, every hour.")
    arrivals = _start(rest, "flights", "arrivals")
    _publish(rest, "ml", "demand", {"train": {"script": "sleep 900"}, "score": {}})
    _start(rest, "ml", "demand")
    gpu = {"tune": {"worker_group": "gpu"}, "embed": {"worker_group": "gpu"}}
    _publish(rest, "ml", "retrain", gpu, description="Waits for a machine with a GPU.")
    _publish(rest, "ml", "urgent", {"fix": {"worker_group": "gpu"}}, priority="HIGH")
    found: dict[str, Any] = {"project": "flights", "workflow": "nightly"}
    for name in ("retrain", "retrain", "urgent"):
        _start(rest, "ml", name)
    for _ in range(3):
        _start(rest, "flights", "hourly")
        _start(rest, "sales", "orders")
    found["good"] = _wait(rest, _start(rest, "flights", "nightly"))
    _wait(rest, _start(rest, "flights", "nightly"))
    _publish(
        rest,
        "flights",
        "nightly",
        broken,
        parameters=parameters,
        schedules=nightly,
        description="Fetches, checks and loads the delays of a day.",
        timezone="Europe/Berlin",
    )
    _wait(rest, _start(rest, "flights", "weather"))
    _wait(rest, _start(rest, "flights", "forecast"))
    _start(rest, "flights", "report")
    found["run"] = _wait(rest, _start(rest, "flights", "nightly"))
    found["live"] = _start(rest, "ml", "churn")
    found["slow"] = _wait(rest, arrivals)
    rest.until(
        lambda: rest.tasks(found["live"])["train"]["state"], lambda state: state == "RUNNING"
    )
    _publish(
        rest,
        "flights",
        "nightly",
        FLIGHTS,
        parameters=parameters,
        schedules=nightly,
        description="Fetches, checks and loads the delays of a day.",
        timezone="Europe/Berlin",
    )
    body = {
        "project": "flights",
        "workflow": "hourly",
        "from": "2026-10-01",
        "to": "2026-10-03",
        "by": "day",
        "parallel": 2,
    }
    sent = _post(rest, "/backfills", body, 202)
    found["backfill"] = rest.outcome(sent["command"]["id"])["backfill_id"]
    long = {
        "project": "flights",
        "workflow": "nightly",
        "from": "2026-09-01",
        "to": "2026-09-20",
        "by": "day",
    }
    sent = _post(rest, "/backfills", long, 202)
    found["backfill"] = rest.outcome(sent["command"]["id"])["backfill_id"]
    rest.until(
        lambda: rest.get(f"/backfills/{found['backfill']}")["counts"],
        lambda counts: counts.get("SUCCEEDED", 0) >= 3,
        timeout_s=120,
    )
    _post(rest, f"/backfills/{found['backfill']}/pause", None, 202)
    return found


def _publish(rest: Rest, project: str, name: str, tasks: dict[str, Any], **fields: Any) -> None:
    body = {
        "name": name,
        "project": project,
        "tasks": [
            {"name": task, "type": "SHELL", **rest_, "params": {"script": script}}
            for task, (script, rest_) in {
                task: (of.get("script", "true"), {k: v for k, v in of.items() if k != "script"})
                for task, of in tasks.items()
            }.items()
        ],
        **fields,
    }
    _put(rest, f"/projects/{project}/workflows/{name}", body)


def _start(rest: Rest, project: str, workflow: str) -> int:
    outcome = rest.command("START", project=project, workflow=workflow)
    assert outcome["state"] == "DONE", outcome
    return int(outcome["result_instance_id"])


def _wait(rest: Rest, instance: int) -> int:
    rest.wait_for(instance)
    return instance


def _put(rest: Rest, path: str, body: Any) -> None:
    answer = rest.http.put(path, json=body) if body is not None else rest.http.put(path)
    assert answer.status_code in (200, 201), f"{path}: {answer.text}"


def _post(rest: Rest, path: str, body: Any, status: int) -> Any:
    answer = rest.http.post(path, json=body) if body is not None else rest.http.post(path)
    assert answer.status_code == status, f"{path}: {answer.text}"
    return answer.json()
