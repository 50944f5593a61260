"""What happens next in a workflow instance: one pure function.

``decide(run, event)`` reads the run, never changes it, and returns the rows to store, the messages
to store with them, and the actions to perform after they are stored. A crash between the two is
healed by ``Begun``, which derives the actions again from the stored state. Normal flow, requests,
takeover and replay all come through here. The rules are written in ``docs/semantics.md``.

``draft`` is the working copy; ``readiness`` says which tasks may start, ``starts`` what they
wait for then, ``endings`` what follows from results, ``logic`` what the tasks do that the master
runs, ``requests`` what people may ask for, ``clock`` what time brings.
"""

import sys

from shoal.core.decide import clock, endings, logic, readiness, requests, starts
from shoal.core.decide.draft import Draft, LongDecision
from shoal.core.decide.endings import MAX_LOSSES, settle
from shoal.core.runs.events import (
    Admitted,
    Begun,
    ChildChanged,
    DependencyJudged,
    Event,
    ForceRequested,
    KillRequested,
    PauseRequested,
    RecoverRequested,
    RerunRequested,
    ResumeRequested,
    SlotGranted,
    StopRequested,
    TaskClaimed,
    TaskEnded,
    TaskRequeued,
    TaskStarted,
    TimeReached,
)
from shoal.core.runs.run import Decision, Run

__all__ = ["MAX_LOSSES", "LongDecision", "decide"]


def decide(run: Run, event: Event, most: int = sys.maxsize) -> Decision:
    """Return what ``event`` changes and what to do next. No IO, no clock, ``run`` untouched.

    Raises LongDecision as soon as it is about more than ``most`` attempts, or has long texts to
    render; then it may be asked again where it may take its time, without ``most``.
    """
    draft = Draft(run, event.at, most)
    match event:
        case Begun():
            starts.begin(draft, event.without_slot)
        case Admitted():
            starts.admit(draft)
        case TimeReached():
            clock.advance(draft)
        case TaskClaimed():
            endings.claim(draft, event)
        case TaskRequeued():
            endings.requeue(draft, event)
        case TaskStarted():
            endings.start(draft, event)
        case TaskEnded():
            endings.end(draft, event)
        case SlotGranted():
            starts.take_slot(draft, event)
        case ChildChanged():
            logic.child_changed(draft, event)
        case DependencyJudged():
            logic.dependency_judged(draft, event)
        case PauseRequested():
            requests.pause(draft, event)
        case ResumeRequested():
            requests.resume(draft, event)
        case StopRequested():
            requests.stop(draft, event)
        case RecoverRequested():
            requests.recover(draft, event)
        case RerunRequested():
            requests.rerun(draft, event)
        case KillRequested():
            requests.kill(draft, event)
        case ForceRequested():
            requests.force(draft, event)
    if draft.refusal is None:
        readiness.judge(draft)
        settle(draft)
    return draft.decision()
