"""What a worker is told to run: the task's params and the run's parameters, rendered.

Params are rendered with the run's parameters, except fields marked ``Verbatim``: those are
programs in another language, so parameter values are never pasted into them. Date expressions
and ``${system.…}`` are rendered everywhere.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from shoal.core import macros
from shoal.core.run import Attempt, Run
from shoal.core.task_types import Verbatim, load_task_type
from shoal.proto import shoal_pb2 as pb


def payload(run: Run, attempt: Attempt, epoch: int) -> pb.Payload:
    """Return the payload of a stored attempt. Raises InvalidMacro if it cannot be rendered."""
    assert attempt.id is not None
    spec = run.plan.tasks[attempt.task]
    base = run.logical_time.astimezone(ZoneInfo(run.timezone))
    parameters = {
        name: macros.render(value, base=base, parameters=run.parameters)
        for name, value in run.parameters.items()
    }
    params = render_params(spec.type, spec.params, base, parameters)
    return pb.Payload(
        workflow_instance_id=run.id,
        task_instance_id=attempt.id,
        partition=run.partition,
        project=run.plan.spec.project,
        workflow=run.plan.spec.name,
        version=run.version,
        task=attempt.task,
        type=spec.type,
        attempt=attempt.number,
        params_json=json.dumps(params, ensure_ascii=False),
        parameters=parameters,
        timeout_s=spec.timeout or 0.0,
        logical_time=run.logical_time.timestamp(),
        epoch=epoch,
        timezone=run.timezone,
    )


def render_params(
    task_type: str, params: Mapping[str, Any], base: datetime, parameters: Mapping[str, str]
) -> dict[str, Any]:
    """Return ``params`` with every text rendered, programs without the parameters."""
    fields = load_task_type(task_type).Params.model_fields
    rendered = {}
    for name, value in params.items():
        verbatim = name in fields and any(isinstance(m, Verbatim) for m in fields[name].metadata)
        rendered[name] = _render(value, base, {} if verbatim else parameters)
    return rendered


def _render(value: Any, base: datetime, parameters: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return macros.render(value, base=base, parameters=parameters)
    if isinstance(value, Mapping):
        return {key: _render(item, base, parameters) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_render(item, base, parameters) for item in value]
    return value
