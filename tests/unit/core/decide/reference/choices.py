"""What CONDITIONS and SWITCH tasks choose: section 3 of docs/semantics.md."""

from collections.abc import Mapping
from typing import Any

from tests.unit.core.decide.reference.cases import TRUTH
from tests.unit.core.decide.reference.model import FAILURES, OPEN, Instance


def choice(instance: Instance, task: str) -> list[str] | None:
    """The tasks that ``task`` chooses; None: it fails."""
    params = instance.tasks[task]["params"]
    if instance.kind(task) == "CONDITIONS":
        return list(params["then" if holds(instance, params["when"]) else "else"])
    for case in params["cases"]:
        truth = TRUTH[case["when"]]
        if truth is None:
            return None
        if truth:
            return list(case["then"])
    return list(params["default"])


def holds(instance: Instance, condition: Mapping[str, Any]) -> bool:
    """Whether a CONDITIONS task's ``when`` is true."""
    if "all" in condition:
        return all(holds(instance, part) for part in condition["all"])
    if "any" in condition:
        return any(holds(instance, part) for part in condition["any"])
    if "not" in condition:
        return not holds(instance, condition["not"])
    last = instance.last(condition["task"])
    return {
        "success": last.state == "SUCCEEDED" or last.cause in ("DISABLED", "NOT_SELECTED"),
        "failure": last.state in FAILURES,
        "skipped": last.cause in ("BRANCH", "UPSTREAM", "FAILING"),
        "done": last.state not in OPEN,
    }[condition["is"]]
