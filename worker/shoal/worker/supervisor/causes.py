"""Why an attempt ended: what decisions are taken on. The *reason* beside it is text for people."""

from __future__ import annotations

from enum import StrEnum


class EndCause(StrEnum):
    """The cause of one end. It travels from the launcher to the record and to the agent."""

    EXITED = "EXITED"  # its main process exited; or its task type returned an exit code
    SIGNALLED = "SIGNALLED"  # a signal ended its main process that was not sent by the launcher
    TIMEOUT = "TIMEOUT"  # it ran for longer than its timeout
    KILL = "KILL"  # a kill that is its result: by request, or its task type failed beside it
    INTERRUPT = "INTERRUPT"  # the agent gave it up: session or claim lost, worker stopped …
    LEASE_LOST = "LEASE_LOST"  # the lease that the agent extends ran out
    SHUTDOWN = "SHUTDOWN"  # the launcher ends: the agent, or a watchdog, has ended
    STARVED = "STARVED"  # not started: the machine has no descriptor, process or memory for it
    NOT_STARTED = "NOT_STARTED"  # it has had no process, for another reason


#: Causes that lie with the worker. Such an end says nothing about the task: it is not a result, the
#: claim is released, and the master declares the attempt LOST.
INTERRUPTIONS = frozenset({EndCause.INTERRUPT, EndCause.LEASE_LOST, EndCause.SHUTDOWN})
