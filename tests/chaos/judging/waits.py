"""What each project waited for: its commands, its runs in the queue, its tasks on their way."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence

from tests.chaos.cluster.queries import Select, instant

PREFIX = "wait of "  # of the samples' names: "wait of default: task QUEUED"
_WAITS = frozenset({"QUEUED", "BLOCKED", "CLAIMED"})  # states in which the cluster has to act
_CHANGES = """SELECT project, workflow_instance_id, kind, data, at FROM event
    WHERE kind IN ('instance.state', 'task.state') ORDER BY id"""
_COMMANDS = """SELECT p.name AS project, c.created_at, c.handled_at FROM command c
    JOIN workflow w ON w.id = c.workflow_id JOIN project p ON p.id = w.project_id
    WHERE c.handled_at IS NOT NULL AND c.schedule_id IS NULL"""


def waits(select: Select) -> Mapping[str, Sequence[float]]:
    """Return samples in seconds, by project and by what was waited for."""
    found: dict[str, list[float]] = defaultdict(list)
    for row in select(_COMMANDS):
        asked, handled = instant(row["created_at"]), instant(row["handled_at"])
        assert asked is not None
        assert handled is not None
        found[f"{PREFIX}{row['project']}: command PENDING"].append(
            max(0.0, (handled - asked).total_seconds())
        )
    since: dict[tuple[object, ...], tuple[str, float]] = {}
    for row in select(_CHANGES):
        data, at = json.loads(row["data"]), instant(row["at"])
        assert at is not None
        key = row["workflow_instance_id"], data.get("task"), data.get("attempt")
        state, from_s = since.get(key, ("", 0.0))
        if state in _WAITS:
            what = "run" if row["kind"] == "instance.state" else "task"
            found[f"{PREFIX}{row['project']}: {what} {state}"].append(
                max(0.0, at.timestamp() - from_s)
            )
        since[key] = data["state"], at.timestamp()
    return found
