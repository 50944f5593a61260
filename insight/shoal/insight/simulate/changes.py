"""What one may ask about: other slots, another workflow, a schedule that fires at another time."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from difflib import get_close_matches

from shoal.core.definition.model import WorkflowSpec
from shoal.core.errors import ShoalError
from shoal.insight.simulate.model import GroupModel, Model, TaskHistory, WorkflowModel


class UnknownName(ShoalError, LookupError):
    """A change speaks of what the model does not have."""


def full_name(model: Model, name: str) -> str:
    """Return NAME or PROJECT/NAME of a workflow as PROJECT/NAME. Raises UnknownName."""
    known = [one.name for one in model.workflows]
    if name in known:
        return name
    found = [one for one in known if one.rpartition("/")[2] == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownName(f"several projects have a workflow {name!r}: write {' or '.join(found)}")
    close = get_close_matches(name, [*known, *(one.rpartition("/")[2] for one in known)], n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "`shoal workflows` lists them"
    raise UnknownName(f"the model has no workflow {name!r}; {hint}")


def with_slots(model: Model, slots: Mapping[str, int]) -> Model:
    """Return the model with other numbers of slots, by worker group; a new group may be named."""
    groups = dict(model.groups)
    for name, count in slots.items():
        groups[name] = groups.get(name, GroupModel(slots=0)).model_copy(update={"slots": count})
    return model.model_copy(update={"groups": groups})


def with_workflows(model: Model, definitions: Iterable[WorkflowSpec]) -> Model:
    """Return the model with workflows added, or with other definitions of those it has.

    One that it has keeps the history of the tasks whose names stay.
    """
    workflows = {one.name: one for one in model.workflows}
    parameters = {one.definition.project: one.parameters for one in model.workflows}
    for spec in definitions:
        name = f"{spec.project}/{spec.name}"
        before = workflows.get(name)
        if before is not None:
            workflows[name] = before.model_copy(update={"definition": spec})
        else:
            given = parameters.get(spec.project, {})
            workflows[name] = WorkflowModel(definition=spec, parameters=given)
    return model.model_copy(update={"workflows": tuple(workflows.values())})


def with_durations(model: Model, seconds: Mapping[str, float]) -> Model:
    """Return the model with tasks that last so long, each time.

    By WORKFLOW, which are all its tasks, or WORKFLOW:TASK; the workflow as NAME or PROJECT/NAME.
    Raises UnknownName.
    """
    workflows = {one.name: one for one in model.workflows}
    for what, length in seconds.items():
        workflow, _, task = what.partition(":")
        one = workflows[full_name(model, workflow)]
        names = [each.name for each in one.definition.tasks]
        if task and task not in names:
            known = ", ".join(names[:10])
            raise UnknownName(f"the workflow {one.name} has no task {task!r}; it has {known}")
        tasks = dict(one.tasks)
        for name in [task] if task else names:
            before = tasks.get(name, TaskHistory())
            tasks[name] = before.model_copy(update={"seconds": (length,), "failed_seconds": ()})
        workflows[one.name] = one.model_copy(update={"tasks": tasks})
    return model.model_copy(update={"workflows": tuple(workflows.values())})


def shifts_of(model: Model, shifts: Mapping[str, timedelta]) -> dict[str, timedelta]:
    """Return shifts of schedules by PROJECT/NAME. Raises UnknownName."""
    found = {full_name(model, name): shift for name, shift in shifts.items()}
    for name in found:
        one = model.workflow(name)
        if one is None or not any(schedule.enabled for schedule in one.definition.schedules):
            raise UnknownName(f"the workflow {name} has no schedule that fires, so none to shift")
    return found
