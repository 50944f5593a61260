"""What a pod is doing, read from what the API server says of it."""

from dataclasses import dataclass
from typing import Any

#: Reasons of waiting that no time will change.
HOPELESS = frozenset({"InvalidImageName", "ErrImageNeverPull"})
#: How a container ends that has a program: what its last message is, is the program's.
_BY_ITSELF = frozenset({"", "Completed", "Error"})


@dataclass(frozen=True)
class PodState:
    """A pod with one container."""

    name: str
    waiting: str = ""  # for what, before it runs
    is_hopeless: bool = False
    has_started: bool = False
    code: int | None = None  # set when it has ended
    reason: str = ""  # such as OOMKilled or Evicted; empty if the program ended by itself
    message: str = ""  # of the program, if it ended by itself


def state_of(pod: Any) -> PodState:
    """Return the state of a V1Pod."""
    name, status = str(pod.metadata.name), pod.status
    container = (status.container_statuses or [None])[0]
    state = container.state if container is not None else None
    if state is not None and state.terminated is not None:
        ended = state.terminated
        reason = str(ended.reason or "")
        return PodState(
            name,
            has_started=True,
            code=int(ended.exit_code),
            reason="" if reason in _BY_ITSELF else reason,
            message=str(ended.message or ""),
        )
    if status.phase in ("Failed", "Succeeded"):  # evicted, or never begun on its node
        reason = str(status.reason or status.phase)
        return PodState(name, code=1, reason=reason, message=str(status.message or ""))
    if state is not None and state.running is not None:
        return PodState(name, has_started=True)
    if state is not None and state.waiting is not None:
        reason = str(state.waiting.reason or "")
        text = _joined(reason, state.waiting.message)
        return PodState(name, waiting=text, is_hopeless=reason in HOPELESS)
    for condition in status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return PodState(name, waiting=_joined(condition.reason, condition.message))
    return PodState(name, waiting=str(status.phase or "Pending"))


def _joined(reason: object, message: object) -> str:
    return ": ".join(str(text) for text in (reason, message) if text)
