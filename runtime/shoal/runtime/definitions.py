"""Checking definitions of workflows against the task types that are installed here."""

from typing import Any

from shoal.core.checks.workflow import check_workflow
from shoal.core.definition.model import WorkflowSpec
from shoal.runtime.plugins import load_task_type


def check_definition(raw: Any) -> WorkflowSpec:
    """Return the definition in ``raw``. Raises InvalidDefinition with the problems found."""
    return check_workflow(raw, load_task_type)
