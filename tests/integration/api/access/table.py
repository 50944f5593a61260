"""What each route needs of its caller, and each place where a request may name a thing.

Written by hand, beside the code and not from it: a route that asks for less than before, or that is
not here, is noticed.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# -- what each route needs --------------------------------------------------------------------

_ROUTES = """
public           GET    /health/live
public           GET    /login
public           POST   /login
public           POST   /login/one-time
signed-in        POST   /sign-in-codes
public           POST   /login/ldap
public           POST   /login/code
public           GET    /login/oidc/{provider}
public           GET    /login/oidc/{provider}/callback
public           GET    /login/oidc/{provider}/logout
signed-in        GET    /health
signed-in        GET    /health/ready
signed-in        POST   /logout
signed-in        GET    /me
signed-in        PUT    /me/password
signed-in        GET    /me/sessions
signed-in        DELETE /me/sessions/{session_id}
signed-in        GET    /me/tokens
signed-in        POST   /me/tokens
signed-in        DELETE /me/tokens/{token_id}
signed-in        GET    /events
signed-in        GET    /task-types
signed-in        GET    /data-source-kinds
signed-in        GET    /environments
signed-in        GET    /environments/{name}
environment.edit PUT    /environments/{name}
environment.edit DELETE /environments/{name}
restriction.edit GET    /restrictions
restriction.edit GET    /restrictions/{what}/{name}
restriction.edit PUT    /restrictions/{what}/{name}
restriction.edit DELETE /restrictions/{what}/{name}
secrets.rotate   GET    /secrets-keys
secrets.rotate   POST   /secrets-keys/rotation
audit.read       GET    /audit
audit.read       GET    /audit-head
audit.read       GET    /audit-chain
history.purge    POST   /audit-prunes
project.manage   GET    /projects/{project}/audit
user.manage      GET    /users
user.manage      POST   /users
user.manage      GET    /users/{name}
user.manage      PATCH  /users/{name}
user.manage      POST   /users/{name}/password-reset
user.manage      PUT    /users/{name}/identity
user.manage      DELETE /users/{name}/identity
user.manage      GET    /users/{name}/tokens
user.manage      DELETE /users/{name}/tokens/{token_id}
user.manage      GET    /groups
user.manage      POST   /groups
user.manage      GET    /groups/{name}
user.manage      PATCH  /groups/{name}
user.manage      DELETE /groups/{name}
user.manage      PUT    /groups/{name}/members/{member}
user.manage      DELETE /groups/{name}/members/{member}
cluster.read     GET    /cluster
cluster.read     GET    /masters
cluster.read     GET    /workers
cluster.read     GET    /worker-groups
project.read     GET    /queue-entries
cluster.read     GET    /partitions
cluster.read     GET    /takeovers
cluster.read     GET    /stores
cluster.read     GET    /quarantine
cluster.operate  POST   /quarantine-retries
cluster.operate  POST   /quarantine-discards
history.purge    POST   /purges
history.purge    GET    /purges
history.purge    GET    /purges/{purge_id}
project.read     GET    /projects/{project}/grants
project.read     GET    /projects/{project}/grants/{taker}
project.manage   PUT    /projects/{project}/grants/{taker}
project.manage   DELETE /projects/{project}/grants/{taker}
project.read     GET    /projects/{project}/resource-grants
project.read     GET    /projects/{project}/resource-grants/{taker}
project.manage   PUT    /projects/{project}/resource-grants/{taker}
project.manage   DELETE /projects/{project}/resource-grants/{taker}
project.read     GET    /projects/{project}/members
project.read     GET    /projects/{project}/members/{kind}/{name}
project.manage   PUT    /projects/{project}/members/{kind}/{name}
project.manage   DELETE /projects/{project}/members/{kind}/{name}
project.manage   GET    /projects/{project}/service-accounts
project.manage   POST   /projects/{project}/service-accounts
project.manage   DELETE /projects/{project}/service-accounts/{name}
project.manage   GET    /projects/{project}/service-accounts/{name}/tokens
project.manage   POST   /projects/{project}/service-accounts/{name}/tokens
project.manage   DELETE /projects/{project}/service-accounts/{name}/tokens/{token_id}
project.read     GET    /projects
project.read     GET    /projects/{project}
project.manage   PUT    /projects/{project}
project.read     GET    /projects/{project}/parameters
project.read     GET    /projects/{project}/parameters/{name}
project.edit     PUT    /projects/{project}/parameters/{name}
project.edit     DELETE /projects/{project}/parameters/{name}
project.read     GET    /projects/{project}/secrets
project.read     GET    /projects/{project}/secrets/{name}
connection.edit  PUT    /projects/{project}/secrets/{name}
connection.edit  DELETE /projects/{project}/secrets/{name}
connection.edit  POST   /projects/{project}/secrets/{name}/test
project.read     GET    /projects/{project}/data-sources
project.read     GET    /projects/{project}/data-sources/{name}
connection.edit  PUT    /projects/{project}/data-sources/{name}
connection.edit  DELETE /projects/{project}/data-sources/{name}
connection.edit  POST   /projects/{project}/data-sources/{name}/test
project.read     GET    /projects/{project}/resources
project.read     GET    /projects/{project}/resources/{path}
project.edit     DELETE /projects/{project}/resources/{path}
project.read     GET    /projects/{project}/resource-versions/{path}
project.read     GET    /projects/{project}/resource-contents/{path}
project.edit     PUT    /projects/{project}/resource-contents/{path}
project.read     GET    /workflows
project.edit     PUT    /projects/{project}/workflows/{name}
project.read     GET    /projects/{project}/workflows/{name}
project.edit     DELETE /projects/{project}/workflows/{name}
project.read     GET    /projects/{project}/workflows/{name}/versions
project.read     GET    /projects/{project}/workflows/{name}/versions/{version}
project.read     GET    /projects/{project}/workflows/{name}/versions/{version}/diff
project.edit     POST   /projects/{project}/workflows/{name}/versions/{version}/restore
project.read     GET    /projects/{project}/workflows/{name}/dependencies
project.read     GET    /projects/{project}/workflows/{name}/hanging
project.edit     POST   /projects/{project}/workflows/{name}/rename
project.edit     POST   /projects/{project}/workflows/{name}/copy
project.edit     POST   /projects/{project}/workflows/{name}/archive
project.edit     POST   /projects/{project}/workflows/{name}/unarchive
project.read     GET    /projects/{project}/workflows/{name}/grid
project.read     GET    /projects/{project}/workflows/{name}/days
project.edit     GET    /projects/{project}/drafts
project.edit     GET    /projects/{project}/workflows/{name}/draft
project.edit     PUT    /projects/{project}/workflows/{name}/draft
project.edit     DELETE /projects/{project}/workflows/{name}/draft
project.edit     POST   /projects/{project}/workflows/{name}/draft/publish
project.read     GET    /projects/{project}/workflows/{name}/layout
project.edit     PUT    /projects/{project}/workflows/{name}/layout
project.edit     POST   /projects/{project}/workflows/{name}/validate
project.edit     POST   /projects/{project}/workflows/{name}/plan
project.read     GET    /projects/{project}/dependency-graph
project.read     GET    /projects/{project}/export
project.edit     POST   /projects/{project}/import
project.read     GET    /projects/{project}/workflows/{name}/schedules
project.read     GET    /schedules
project.read     GET    /schedules/{schedule_id}/preview
run.operate      POST   /schedules/{schedule_id}/pause
run.operate      POST   /schedules/{schedule_id}/resume
project.read     POST   /schedules/preview
project.read     GET    /projects/{project}/calendars
project.read     GET    /projects/{project}/calendars/{name}
project.edit     PUT    /projects/{project}/calendars/{name}
project.edit     DELETE /projects/{project}/calendars/{name}
project.read     GET    /projects/{project}/concurrency-groups
project.read     GET    /projects/{project}/concurrency-groups/{name}
project.edit     PUT    /projects/{project}/concurrency-groups/{name}
project.edit     DELETE /projects/{project}/concurrency-groups/{name}
project.read     GET    /projects/{project}/alert-rules
project.read     GET    /projects/{project}/alert-rules/{name}
project.edit     PUT    /projects/{project}/alert-rules/{name}
project.edit     DELETE /projects/{project}/alert-rules/{name}
project.read     GET    /projects/{project}/alert-receivers
project.read     GET    /projects/{project}/alert-receivers/{name}
project.edit     PUT    /projects/{project}/alert-receivers/{name}
project.edit     DELETE /projects/{project}/alert-receivers/{name}
project.read     GET    /projects/{project}/alert-channels
project.read     GET    /projects/{project}/alert-channels/{name}
connection.edit  PUT    /projects/{project}/alert-channels/{name}
connection.edit  DELETE /projects/{project}/alert-channels/{name}
signed-in        GET    /alert-channel-kinds
connection.edit  POST   /projects/{project}/alert-channels/{name}/tests
project.read     GET    /projects/{project}/alerts
project.read     GET    /projects/{project}/alerts/{alert_id}
run.operate      POST   /projects/{project}/alerts/{alert_id}/acknowledgement
project.read     GET    /projects/{project}/alert-deliveries
project.read     GET    /projects/{project}/alert-deliveries/{delivery_id}
project.read     GET    /projects/{project}/alert-explanations
project.read     POST   /projects/{project}/alert-previews
project.read     GET    /projects/{project}/alert-silences
run.operate      POST   /projects/{project}/alert-silences
run.operate      DELETE /projects/{project}/alert-silences/{silence_id}
run.operate      POST   /commands
run.operate      POST   /bulk-commands
run.operate      POST   /bulk-schedules
project.read     GET    /commands/{command_id}
run.operate      POST   /backfills
project.read     GET    /backfills
project.read     GET    /backfills/{backfill_id}
project.read     GET    /backfills/{backfill_id}/runs
run.operate      POST   /backfills/{backfill_id}/{request}
project.read     GET    /instances
project.read     GET    /instances/{instance_id}
project.read     GET    /instance-counts
project.read     GET    /today
project.read     GET    /history
project.read     GET    /insight/summary
project.read     GET    /insight/workflows
project.read     GET    /insight/tasks
project.read     GET    /insight/failures
project.read     GET    /insight/costs
cluster.read     GET    /insight/load
project.read     GET    /insight/schedule-minutes
project.read     GET    /insight/rollups
project.read     GET    /insight/rollup-rows
project.read     GET    /instances/{instance_id}/baseline
run.operate      PATCH  /instances/{instance_id}/labels
project.read     POST   /start-previews
project.read     GET    /task-instances/{task_instance_id}/rendered
project.read     GET    /instances/{instance_id}/comparison/{other_instance_id}
project.read     GET    /instances/{instance_id}/timeline
project.read     GET    /instances/{instance_id}/progress
project.read     GET    /instances/{instance_id}/why
project.read     GET    /task-instances
project.read     GET    /task-instances/{task_instance_id}
project.read     GET    /task-instance-counts
project.read     GET    /task-instances/{task_instance_id}/why
project.read     GET    /task-instances/{task_instance_id}/log
project.read     GET    /task-instances/{task_instance_id}/log/search
project.read     GET    /instances/{instance_id}/log-search
project.read     GET    /task-instances/{task_instance_id}/log/raw
project.read     GET    /task-instances/{task_instance_id}/log/follow
project.read     GET    /past-instances
project.read     GET    /past-instances/{past_instance_id}
project.read     GET    /past-instances/{past_instance_id}/attempts/{attempt_id}/log
"""

Route = tuple[str, str]  # method, path below the prefix
NEEDS: Mapping[Route, str] = {
    (method, path): permission
    for permission, method, path in map(str.split, _ROUTES.strip().splitlines())
}
PLATFORM = frozenset(
    {
        "user.manage",
        "cluster.read",
        "cluster.operate",
        "history.purge",
        "project.create",
        "environment.edit",
    }
    | {"audit.read", "secrets.rotate", "restriction.edit"}
)
HOLDS: Mapping[str, frozenset[str]] = {
    "reader": frozenset({"project.read"}),
    "runner": frozenset({"project.read", "run.operate"}),
    "writer": frozenset({"project.read", "run.operate", "project.edit", "connection.edit"}),
    "owner": frozenset(
        {"project.read", "run.operate", "project.edit", "connection.edit", "project.manage"}
    ),
}
# Lists of what all projects have: who asks sees those of its own.
LISTS: tuple[str, ...] = (
    "/projects",
    "/workflows",
    "/schedules",
    "/instances",
    "/task-instances",
    "/backfills",
    "/past-instances",
)
LISTS += ("/today", "/history", "/queue-entries")
LISTS += ("/insight/workflows", "/insight/failures", "/insight/costs")
# Of them alone are counted, or asked for something, by filters.
FILTERED: tuple[str, ...] = (
    "/instance-counts",
    "/task-instance-counts",
    "/bulk-commands",
    "/bulk-schedules",
)
FILTERED += ("/insight/summary", "/insight/tasks", "/insight/rollup-rows")
STREAMS = ("/events", "/task-instances/{task_instance_id}/log/follow")

# -- how to ask for a thing of a project ------------------------------------------------------

MISSING_ID = 899_999_999
MISSING_NAME = "nowhere"
Made = Mapping[str, Any]  # what the things of a project are called
NAMES = {
    "parameters": "x",
    "secrets": "s",
    "data-sources": "wh",
    "workflows": "daily",
    "calendars": "days",
    "alert-rules": "night",
    "alert-receivers": "people",
    "alert-channels": "hook",
    "concurrency-groups": "gpu",
    "service-accounts": "bot",
    "members": "someone",
    "users": "someone",
    "groups": "crew",
    "environments": "lab",
    "restrictions": "lab",
}
_WORKFLOW = "/projects/{project}/workflows/{name}"
_SOURCE = {"kind": "mariadb", "host": "db", "port": 1, "user": "u", "password": "p"}
_TOKEN = {"name": "t", "days": 1}
_TASKS = [{"name": "fetch", "type": "SHELL", "params": {"script": "true"}}]
ALERT_RULE = {"triggers": ["run.failed"], "receivers": ["people"]}
ALERT_RECEIVER = {"members": [{"targets": [{"channel": "hook"}]}]}
ALERT_CHANNEL = {"kind": "webhook", "options": {"url": "https://hook.example/"}}
_QUARANTINED = {"consumer": "alerts", "kind": "event", "item": "17"}
BODIES: Mapping[Route, Callable[[Made], Any]] = {
    ("POST", "/login"): lambda _: {"name": "nobody", "password": "wrong"},
    ("POST", "/login/one-time"): lambda _: {"code": "wrong"},
    ("POST", "/login/ldap"): lambda _: {"name": "nobody", "password": "wrong"},
    ("POST", "/login/code"): lambda _: {"code": "c" * 43, "verifier": "v" * 43},
    ("PUT", "/users/{name}/identity"): lambda _: {"issuer": "https://id.example", "subject": "s"},
    ("PUT", "/me/password"): lambda _: {"current": "wrong", "new": "much better words"},
    ("POST", "/me/tokens"): lambda _: _TOKEN,
    ("POST", "/users"): lambda _: {"name": "grace", "is_admin": True},
    ("PATCH", "/users/{name}"): lambda _: {"is_admin": True},
    ("POST", "/groups"): lambda _: {"name": "analysts"},
    ("PATCH", "/groups/{name}"): lambda _: {"description": "d"},
    ("POST", "/secrets-keys/rotation"): lambda _: {"begin": False},
    ("POST", "/audit-prunes"): lambda _: {"before": "2020-01-01T00:00:00Z"},
    ("POST", "/quarantine-retries"): lambda _: _QUARANTINED,
    ("POST", "/quarantine-discards"): lambda _: {**_QUARANTINED, "item": "18"},
    ("POST", "/purges"): lambda made: {"project": made["project"]},
    ("PUT", "/environments/{name}"): lambda _: {"setup": "true"},
    ("PUT", "/restrictions/{what}/{name}"): lambda made: {"projects": [made["project"]]},
    ("PUT", "/projects/{project}/grants/{taker}"): lambda _: {"what": "run"},
    ("PUT", "/projects/{project}/resource-grants/{taker}"): lambda _: {"paths": ["lib/"]},
    ("PUT", "/projects/{project}/members/{kind}/{name}"): lambda _: {"role": "owner"},
    ("POST", "/projects/{project}/service-accounts"): lambda _: {"name": "loader", "role": "owner"},
    ("POST", "/projects/{project}/service-accounts/{name}/tokens"): lambda _: _TOKEN,
    ("PATCH", "/instances/{instance_id}/labels"): lambda _: {"labels": {"team": "x"}},
    ("PUT", "/projects/{project}"): lambda _: {"description": "d"},
    ("PUT", "/projects/{project}/parameters/{name}"): lambda _: {"value": "v"},
    ("PUT", "/projects/{project}/secrets/{name}"): lambda _: {"value": "v"},
    ("PUT", "/projects/{project}/data-sources/{name}"): lambda _: _SOURCE,
    ("POST", "/projects/{project}/data-sources/{name}/test"): lambda _: {},
    ("PUT", "/projects/{project}/resource-contents/{path}"): lambda _: b"bytes",
    ("PUT", "/projects/{project}/workflows/{name}"): lambda _: {"tasks": _TASKS},
    ("PUT", _WORKFLOW + "/draft"): lambda _: {"text": "tasks: []"},
    ("PUT", _WORKFLOW + "/layout"): lambda _: {"places": {}},
    ("POST", _WORKFLOW + "/validate"): lambda _: {"definition": {"tasks": _TASKS}},
    ("POST", _WORKFLOW + "/plan"): lambda _: {"definition": {"tasks": _TASKS}},
    ("POST", _WORKFLOW + "/rename"): lambda _: {"name": "other"},
    ("POST", _WORKFLOW + "/copy"): lambda made: {
        "project": made["project"],
        "workflow": "daily",
    },
    ("POST", "/projects/{project}/import"): lambda _: {"text": json.dumps({"tasks": _TASKS})},
    ("POST", "/schedules/preview"): lambda made: {
        "cron": "0 0 6 * * ?",
        "project": made["project"],
        "calendar": "days",
    },
    ("PUT", "/projects/{project}/alert-rules/{name}"): lambda _: ALERT_RULE,
    ("PUT", "/projects/{project}/alert-receivers/{name}"): lambda _: ALERT_RECEIVER,
    ("PUT", "/projects/{project}/alert-channels/{name}"): lambda _: ALERT_CHANNEL,
    ("POST", "/projects/{project}/alert-channels/{name}/tests"): lambda _: {},
    ("POST", "/projects/{project}/alert-previews"): lambda made: {
        "rule": ALERT_RULE,
        "alert_id": made.get("alert_id"),
    },
    ("POST", "/projects/{project}/alert-silences"): lambda _: {"until": "2100-01-01T00:00:00Z"},
    ("PUT", "/projects/{project}/calendars/{name}"): lambda _: {"days": ["2026-01-02"]},
    ("PUT", "/projects/{project}/concurrency-groups/{name}"): lambda _: {"slots": 2},
    ("POST", "/commands"): lambda made: {
        "type": "START",
        "project": made["project"],
        "workflow": "daily",
        "parameters": {"y": "1"},
    },
    # Of none that there is: each of many is judged by itself, see test_bulk.py.
    ("POST", "/bulk-schedules"): lambda _: {"type": "pause", "ids": [MISSING_ID]},
    ("POST", "/bulk-commands"): lambda _: {"type": "STOP", "ids": [MISSING_ID]},
    ("POST", "/start-previews"): lambda made: {
        "project": made["project"],
        "workflow": "daily",
        "parameters": {"y": "1"},
    },
    ("POST", "/backfills"): lambda made: {
        "project": made["project"],
        "workflow": "daily",
        "from": "2026-02-01",
        "to": "2026-02-02",
        "parameters": {"y": "1"},
    },
}
#: Parameters of paths that say which project a request is about.
SUBJECTS = (
    "project",
    "instance_id",
    "other_instance_id",
    "task_instance_id",
    "command_id",
    "schedule_id",
    "backfill_id",
    "past_instance_id",
    "alert_id",
    "delivery_id",
    "silence_id",
)
#: Routes whose body says it.
SUBJECT_IN_BODY = {
    ("POST", "/schedules/preview"),
    ("POST", "/commands"),
    ("POST", "/start-previews"),
    ("POST", "/backfills"),
}


@dataclass(frozen=True)
class Ask:
    """A request."""

    method: str
    path: str
    body: Any = None


def in_path(route: Route, made: Made) -> dict[str, Any]:
    """Return what the path of a route may name, by parameter."""
    parts = route[1].split("/")
    collection = parts[3] if route[1].startswith("/projects/{project}/") else parts[1]
    name = NAMES.get(collection, "")
    given = {"name": name, "kind": "user", "request": "pause", "member": "someone"}
    given["what"] = "worker-group"
    return {**made, **given, "taker": "other"}


def ask(route: Route, made: Made) -> Ask:
    """Return a good request about the things of a project."""
    method, path = route
    body = BODIES[route](made) if route in BODIES else None
    return Ask(method, path.format(**in_path(route, made), provider="main"), body)


def is_about_project(route: Route) -> bool:
    """Say whether a request to this route names a thing of a project."""
    return route in SUBJECT_IN_BODY or any(f"{{{name}}}" in route[1] for name in SUBJECTS)


# -- each place where a request may name a thing of another project ---------------------------


@dataclass(frozen=True)
class Place:
    """One place of a request. ``ask`` puts a key there, in a request that is good otherwise.

    ``key``: of what ``stocked`` has made. ``missing``: a key that nothing has.
    """

    key: str
    ask: Callable[[Made, Any], Ask]


def _command(kind: str, **more: Any) -> Callable[[Made, Any], Ask]:
    return lambda _, key: Ask("POST", "/commands", {"type": kind, "instance_id": key, **more})


def _of_task(kind: str, **more: Any) -> Callable[[Made, Any], Ask]:
    return lambda _, key: Ask("POST", "/commands", {"type": kind, "task_instance_id": key, **more})


def _task(kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"tasks": [{"name": "other", "type": kind, "params": params}]}


#: Requests that carry a definition, whose tasks may name projects.
WAYS_IN: Mapping[str, Callable[[str, dict[str, Any]], Ask]] = {
    f"PUT {_WORKFLOW}": lambda home, content: Ask(
        "PUT", f"/projects/{home}/workflows/new", content
    ),
    f"POST {_WORKFLOW}/plan": lambda home, content: Ask(
        "POST", f"/projects/{home}/workflows/new/plan", {"definition": content}
    ),
    f"POST {_WORKFLOW}/validate": lambda home, content: Ask(
        "POST", f"/projects/{home}/workflows/new/validate", {"text": json.dumps(content)}
    ),
    "POST /projects/{project}/import": lambda home, content: Ask(
        "POST", f"/projects/{home}/import", {"text": json.dumps({"name": "new", **content})}
    ),
}
REACHES: Mapping[str, Callable[[Any], Mapping[str, Any]]] = {
    "SUB_WORKFLOW": lambda key: {"project": key, "workflow": "daily"},
    "MAP": lambda key: {"project": key, "workflow": "daily", "items": ["1"]},
    "DEPENDENT": lambda key: {
        "when": {"all": [{"project": key, "workflow": "daily", "date": "today"}]}
    },
}


def _publish(
    where: str, kind: str, params: Callable[[Any], Mapping[str, Any]]
) -> Callable[[Made, Any], Ask]:
    return lambda own, key: WAYS_IN[where](own["project"], _task(kind, params(key)))


_BACKFILL = {
    "workflow": "daily",
    "from": "2026-02-01",
    "to": "2026-02-02",
    "parameters": {"y": "1"},
}
_ABOUT_INSTANCE: Mapping[str, dict[str, Any]] = {
    "RERUN": {},
    "PAUSE": {},
    "RESUME": {},
    "STOP": {},
    "RECOVER": {},
    "RERUN_TASKS": {"tasks": ["fetch"]},
    "KILL_TASK": {"task": "fetch"},
    "FORCE_SUCCESS": {"task": "fetch", "reason": "r"},
}
#: In bodies, by the name of the field; the places of a path follow from it.
PLACES: Mapping[str, Place] = {
    "POST /commands project": Place(
        "project",
        lambda _, key: Ask(
            "POST", "/commands", {"type": "START", "project": key, "workflow": "daily"}
        ),
    ),
    **{
        f"POST /commands {kind} instance_id": Place("instance_id", _command(kind, **more))
        for kind, more in _ABOUT_INSTANCE.items()
    },
    "POST /commands KILL_TASK task_instance_id": Place("task_instance_id", _of_task("KILL_TASK")),
    "POST /commands FORCE_SUCCESS task_instance_id": Place(
        "task_instance_id", _of_task("FORCE_SUCCESS", reason="r")
    ),
    "POST /start-previews project": Place(
        "project",
        lambda _, key: Ask("POST", "/start-previews", {"project": key, "workflow": "daily"}),
    ),
    "POST /backfills project": Place(
        "project", lambda _, key: Ask("POST", "/backfills", {**_BACKFILL, "project": key})
    ),
    "POST /backfills?dry_run=true project": Place(
        "project",
        lambda _, key: Ask("POST", "/backfills?dry_run=true", {**_BACKFILL, "project": key}),
    ),
    "POST /schedules/preview project": Place(
        "project",
        lambda _, key: Ask(
            "POST",
            "/schedules/preview",
            {"cron": "0 0 6 * * ?", "project": key, "calendar": "days"},
        ),
    ),
    "POST /me/tokens projects": Place(
        "project", lambda _, key: Ask("POST", "/me/tokens", {**_TOKEN, "projects": [key]})
    ),
    "POST /projects/{project}/service-accounts/{name}/tokens projects": Place(
        "project",
        lambda own, key: Ask(
            "POST",
            f"/projects/{own['project']}/service-accounts/bot/tokens",
            {**_TOKEN, "projects": [own["project"], key]},
        ),
    ),
    f"POST {_WORKFLOW}/copy project": Place(
        "project",
        lambda own, key: Ask(
            "POST",
            f"/projects/{own['project']}/workflows/new/copy",
            {"project": key, "workflow": "daily"},
        ),
    ),
    "POST /projects/{project}/alert-previews alert_id": Place(
        "alert_id",
        lambda own, key: Ask(
            "POST",
            f"/projects/{own['project']}/alert-previews",
            {"rule": ALERT_RULE, "alert_id": key},
        ),
    ),
    **{
        f"{where} {kind}": Place("project", _publish(where, kind, params))
        for where in WAYS_IN
        for kind, params in REACHES.items()
    },
}
#: Fields of bodies that may name a thing, and why no ``Place`` is needed where there is none.
FIELDS: Mapping[str, str] = {
    "POST /commands project": "place",
    "POST /commands workflow": "within the project",
    "POST /commands instance_id": "place",
    "POST /commands task_instance_id": "place",
    "POST /start-previews project": "place",
    "POST /start-previews workflow": "within the project",
    "POST /backfills project": "place",
    "POST /backfills workflow": "within the project",
    "POST /schedules/preview project": "place",
    "POST /schedules/preview calendar": "within the project",
    "POST /purges project": "of the platform",
    "POST /purges workflow": "within the project",
    "POST /me/tokens projects": "place",
    "POST /projects/{project}/service-accounts/{name}/tokens projects": "place",
    "PUT /restrictions/{what}/{name} projects": "of the platform",
    f"POST {_WORKFLOW}/copy project": "place",
    f"POST {_WORKFLOW}/copy workflow": "within the project",
    "PUT /projects/{project}/workflows/{name} project": "equals the path",
    "PUT /projects/{project}/workflows/{name} schedules[].calendar": "within the project",
    "PUT /projects/{project}/workflows/{name} concurrency_group": "within the project",
    "PUT /projects/{project}/alert-rules/{name} workflows": "within the project",
    "POST /projects/{project}/alert-silences workflow": "within the project",
    "POST /projects/{project}/alert-previews rule.workflows": "within the project",
    "POST /projects/{project}/alert-previews alert_id": "place",
    "PUT /projects/{project}/data-sources/{name} shared_with": "gives, takes nothing",
}
#: Parameters of queries that may name a thing: they filter what is visible.
QUERIES = frozenset(
    {
        "project",
        "workflow",
        "worker",
        "instance_id",
        "event_id",
        "schedule_id",
        "backfill_id",
        "parent_id",
    }
)


def places_in_paths() -> Iterator[tuple[str, Place]]:
    """Yield the place of each path that names a thing by a key of its own."""
    for route in NEEDS:
        for name in SUBJECTS:
            if f"{{{name}}}" in route[1]:
                yield f"{route[0]} {route[1]}", Place(name, _in_path(route, name))


def _in_path(route: Route, name: str) -> Callable[[Made, Any], Ask]:
    return lambda own, key: ask(route, {**own, name: key})
