"""What a definition says about environments, checked as people wrote it.

Whether an environment exists, and for which worker groups, is judged where they are stored.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from shoal.core.checks.parameters import Finding
from shoal.core.definition.environments import NO_ENVIRONMENT
from shoal.core.task_types import TaskKind


def environment_findings(task: Mapping[str, Any], kind: type[TaskKind[Any]]) -> Iterator[Finding]:
    """Check the environment that a task names; ``kind`` is its type."""
    named = task.get("environment")
    if isinstance(named, str) and named != NO_ENVIRONMENT and not kind.uses_environment:
        text = f"tasks of the type {task.get('type')} start no program, so they have none"
        yield ("environment",), f"{text}; leave it out"
