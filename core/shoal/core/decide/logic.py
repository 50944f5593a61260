"""What the master does for the tasks that it runs: section 3 of ``docs/semantics.md``."""

import json
from collections.abc import Callable, Collection, Mapping
from functools import cache
from itertools import islice
from zoneinfo import ZoneInfo

from shoal.core.decide import deadlines, endings
from shoal.core.decide.child_states import ChildState
from shoal.core.decide.children import Child, ChildRuns
from shoal.core.decide.draft import FAILURES, Draft
from shoal.core.definition.kinds import WITH_CHILDREN, LogicKind
from shoal.core.errors import ShoalError
from shoal.core.logic import conditions, switch
from shoal.core.logic.children import MapParams, SubWorkflowParams, items_of
from shoal.core.logic.conditions import ConditionOutcome
from shoal.core.logic.dependency_rules import question_of
from shoal.core.logic.dependent import DependentParams
from shoal.core.macros import placeholders
from shoal.core.runs.commands import CommandType
from shoal.core.runs.events import ChildChanged, DependencyJudged, DependencyVerdict
from shoal.core.runs.run import Attempt, Run, SkipCause, StartChild, Termination, Watch
from shoal.core.runs.scope import Levels, TaskScope, levels
from shoal.core.runs.states import TaskSignal, TaskState, WorkflowState
from shoal.core.runs.why.codes import Code
from shoal.core.runs.why.reasons import say

_T, _C = TaskState, ChildState
_RUNNING = frozenset({_C.RUNNING})
_STOPPABLE = frozenset({_C.QUEUED, _C.RUNNING, _C.PAUSING, _C.PAUSED, _C.STARTING})
_ON_THE_WAY_TO_REST = frozenset({_C.PAUSING, _C.STOPPING})


def start(draft: Draft, task: str) -> None:
    """Begin to work on a task that is ready."""
    goes_on = draft.attempt(task).started_at is not None  # after a pause
    attempt = draft.signal(task, TaskSignal.START, started_at=draft.at)
    deadlines.remind_of(draft, attempt)
    if goes_on and endings.must_end(draft, attempt):  # something else has failed meanwhile
        endings.end_early(draft, attempt, Termination.KILL)
        return
    try:
        match draft.kind(task):
            case LogicKind.CONDITIONS:
                chosen = conditions.choose(draft.spec(task).params, lambda t: _outcome(draft, t))
                endings.finish(draft, task, TaskSignal.SUCCEED, detail={"chosen": list(chosen)})
            case LogicKind.SWITCH:
                known = _scope(draft, attempt).named_parameters()
                chosen = switch.choose(draft.spec(task).params, known)
                endings.finish(draft, task, TaskSignal.SUCCEED, detail={"chosen": list(chosen)})
            case LogicKind.DEPENDENT:
                _check_question(draft, task)
                draft.act(Watch((task, attempt.number)))
            case _:
                _start_children(draft, attempt, goes_on)
    except ShoalError as error:
        endings.finish(draft, task, TaskSignal.FAIL, reason=str(error))


def _check_question(draft: Draft, task: str) -> None:
    """Raise DateOutOfRange if what the task waits for has no dates at the run's logical time."""
    when = DependentParams.model_validate(draft.spec(task).params).when
    base = draft.run.logical_time.astimezone(ZoneInfo(draft.run.timezone))
    question_of(when, base, draft.run.plan.spec.project)


def _outcome(draft: Draft, task: str) -> ConditionOutcome:
    attempt = draft.attempt(task)
    if attempt.state in FAILURES:
        return ConditionOutcome.FAILURE
    absent = attempt.skip_cause in (SkipCause.DISABLED, SkipCause.NOT_SELECTED)
    if attempt.state is _T.SKIPPED and not absent:
        return ConditionOutcome.SKIPPED
    return ConditionOutcome.SUCCESS


def _scope(draft: Draft, attempt: Attempt) -> TaskScope:
    """Return what the texts of an attempt may refer to."""
    return TaskScope(draft.view(), attempt, within=draft.rendering)


# -- sub-workflows ------------------------------------------------------------------------------


def _start_children(draft: Draft, attempt: Attempt, goes_on: bool) -> None:
    children = ChildRuns(attempt)
    if children.items is None:
        children.items = _items(draft, attempt)
    if goes_on:
        children.continue_after_pause()
    else:
        children.continue_for_new_attempt()
    for index in children.moving():
        # It is being paused or stopped, or does not know of the new attempt.
        if not goes_on or children.state(index) in _ON_THE_WAY_TO_REST:
            endings.ask_child(draft, attempt, children, index, CommandType.RESUME)
    _advance(draft, attempt, children)


def _items(draft: Draft, attempt: Attempt) -> list[str | None]:
    if draft.kind(attempt.task) is not LogicKind.MAP:
        return [None]
    items = MapParams.model_validate(draft.spec(attempt.task).params).items
    return list(items_of(_scope(draft, attempt).render(items) if isinstance(items, str) else items))


def _advance(draft: Draft, attempt: Attempt, children: ChildRuns) -> None:
    """Continue and start children while there is room, and end the task with the last of them."""
    raw = draft.spec(attempt.task).params
    is_map = draft.kind(attempt.task) is LogicKind.MAP
    params = (MapParams if is_map else SubWorkflowParams).model_validate(raw)
    room = params.parallel if isinstance(params, MapParams) else 1
    room -= len(children.with_place())
    for index, request in islice(children.to_continue(), max(room, 0)):
        endings.ask_child(draft, attempt, children, index, request)
        room -= 1

    @cache  # a thousand items may start in one decision, and in most decisions none does
    def common() -> tuple[Run, Levels]:
        view = draft.view()
        return view, levels(view, attempt.task)

    def scope(own: Mapping[str, str]) -> TaskScope:
        view, known = common()
        return TaskScope(view, attempt, own=[*known, own], within=draft.rendering)

    items = children.items or []
    for new in children.to_start():
        if room <= 0:
            break
        try:
            child = _start_child(draft, attempt, params, new, items[new], scope)
        except ShoalError as error:
            if not draft.has_room_for_texts and children.moving():
                break  # others have used the budget; a child's report brings a new one
            if not children.any_started():
                raise  # of most tasks all items have the same texts
            children.refuse(new, str(error))
            continue
        children.add(new)
        draft.send(child)
        room -= 1
    attempt = draft.note(attempt.task, detail=children.detail)
    if children.all_ended():
        _complete(draft, attempt, children)


def _start_child(
    draft: Draft,
    attempt: Attempt,
    params: SubWorkflowParams | MapParams,
    index: int,
    item: str | None,
    scope: Callable[[Mapping[str, str]], TaskScope],
) -> StartChild:
    """Return what starts the child of an item. ``scope`` is given the item's own parameters."""
    own: dict[str, str] = {}
    given: dict[str, str] = {}
    if isinstance(params, MapParams) and item is not None:
        given = {params.parameter: item}
        own = {params.parameter: placeholders.escape(item), "index": str(index)}
    if params.parameters:
        within = scope(own)
        given |= {name: within.render(text) for name, text in params.parameters.items()}
    return StartChild(
        (attempt.task, attempt.number),
        index,
        params.project or draft.run.plan.spec.project,
        params.workflow,
        params.version,
        given,
    )


def child_changed(draft: Draft, event: ChildChanged) -> None:
    """An instance that works for a task of this one reports its state."""
    attempt = draft.newest(event.task_instance_id)
    if attempt is None or draft.kind(attempt.task) not in WITH_CHILDREN:
        return
    if attempt.finished or attempt.started_at is None:
        return  # while a pause holds it, or it waits for its slot after one, it listens
    children = ChildRuns(attempt)
    if children.of(event.index) is None:
        return
    before = children.state(event.index)
    if event.is_quarantined is None:
        is_new = children.take(event.index, event)
    else:
        children.quarantine(event.index, event.instance_id, is_quarantined=event.is_quarantined)
        is_new = event.is_quarantined  # only that makes room
    if attempt.state is _T.PAUSED and before is _C.QUEUED and is_new:
        _ask_all(draft, attempt, children, _RUNNING, CommandType.PAUSE)  # it may start only now
    attempt = draft.note(attempt.task, detail=children.detail)
    if attempt.state is _T.RUNNING and is_new:
        _go_on(draft, attempt, children)


def _go_on(draft: Draft, attempt: Attempt, children: ChildRuns) -> None:
    """Do what follows from how the children stand, in whatever the instance is about to do."""
    if endings.must_end(draft, attempt):
        _ask_all(draft, attempt, children, _STOPPABLE, CommandType.STOP)
        if children.is_awaited():
            return
        if children.not_succeeded():
            endings.finish_terminated(draft, attempt)
        else:
            _complete(draft, attempt, children)
    elif draft.state is not WorkflowState.PAUSING:
        _advance(draft, attempt, children)
    elif children.all_ended():
        _complete(draft, attempt, children)
    else:
        _ask_all(draft, attempt, children, _RUNNING, CommandType.PAUSE)
        if not children.working():
            draft.signal(attempt.task, TaskSignal.HOLD)


def _ask_all(
    draft: Draft,
    attempt: Attempt,
    children: ChildRuns,
    states: Collection[ChildState],
    request: CommandType,
) -> None:
    """Send a request to the children in ``states``."""
    indexes = [*children.moving(), *children.at_rest()]
    to_ask = [index for index in indexes if children.state(index) in states]
    for index in to_ask:
        endings.ask_child(draft, attempt, children, index, request)
    if to_ask:
        draft.note(attempt.task, detail=children.detail)


def _complete(draft: Draft, attempt: Attempt, children: ChildRuns) -> None:
    bad = children.not_succeeded()
    outputs = _outputs(draft, attempt, children)
    if not bad:
        endings.finish(draft, attempt.task, TaskSignal.SUCCEED, outputs=outputs)
        return
    first: Child = children.of(bad[0]) or {}
    told = first.get("reason") or "no reason is known"
    instance = first.get("instance")
    if first["state"] == _C.REFUSED:
        reason = say(Code.REASON_CHILD_REFUSED, instance=instance, why=told)
    else:
        state = str(first["state"])
        reason = say(Code.REASON_CHILD, instance=instance, state=state, why=told)
    if draft.kind(attempt.task) is LogicKind.MAP:
        items = len(children.items or ())
        reason = say(Code.REASON_ITEMS, failed=len(bad), items=items, why=reason)
    endings.finish(draft, attempt.task, TaskSignal.FAIL, reason=reason)


def _outputs(draft: Draft, attempt: Attempt, children: ChildRuns) -> Mapping[str, str]:
    """Of a SUB_WORKFLOW what its instance gave; of a MAP a JSON list for each name."""
    given = children.outputs()
    if draft.kind(attempt.task) is not LogicKind.MAP:
        return given[0] if given else {}
    names = sorted({name for one in given for name in one})
    return {
        name: json.dumps([one.get(name) for one in given], ensure_ascii=False) for name in names
    }


def hold(draft: Draft, attempt: Attempt) -> None:
    """Let a task that the master runs take part in a pause.

    A quarantined instance has the request too, and the pause does not wait for its answer.
    """
    if draft.kind(attempt.task) in WITH_CHILDREN:
        children = ChildRuns(attempt)
        for index in children.moving():
            endings.ask_child(draft, attempt, children, index, CommandType.PAUSE)
        attempt = draft.note(attempt.task, detail=children.detail)
        if children.is_awaited():
            return
    draft.signal(attempt.task, TaskSignal.HOLD)


def resume(draft: Draft, attempt: Attempt) -> None:
    """A pause is taken back before it was complete: so are the requests to the children."""
    if draft.kind(attempt.task) in WITH_CHILDREN:
        children = ChildRuns(attempt)
        for index in children.moving():
            endings.ask_child(draft, attempt, children, index, CommandType.RESUME)
        children.continue_after_pause()
        _advance(draft, attempt, children)


# -- other workflows ----------------------------------------------------------------------------


def dependency_judged(draft: Draft, event: DependencyJudged) -> None:
    """The runs that a DEPENDENT task waits for were searched and judged."""
    attempt = draft.newest(event.task_instance_id)
    if attempt is None or attempt.state is not _T.RUNNING:
        return
    if draft.kind(attempt.task) is not LogicKind.DEPENDENT:
        return
    task = attempt.task
    match event.verdict:
        case DependencyVerdict.WAIT:
            if attempt.detail != event.detail or attempt.reason != event.reason:
                draft.note(task, detail=event.detail, reason=event.reason)
        case DependencyVerdict.SUCCESS:
            fields = {"detail": event.detail, "reason": event.reason}
            endings.finish(draft, task, TaskSignal.SUCCEED, **fields)
        case DependencyVerdict.FAILURE:
            fields = {"detail": event.detail, "reason": event.reason}
            endings.finish(draft, task, TaskSignal.FAIL, **fields)
        case DependencyVerdict.SKIP:
            draft.note(task, detail=event.detail)
            draft.skip(task, SkipCause.BRANCH, event.reason or say(Code.REASON_NO_RUN))
