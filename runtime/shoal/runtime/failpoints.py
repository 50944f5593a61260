"""Named points in the code at which tests may kill, pause or fail a process.

A point costs one lookup in an empty dictionary unless ``SHOAL_FAILPOINTS`` arms it when the
process starts::

    SHOAL_FAILPOINTS="claim.after_multi=kill@3;report.before_reply=raise%5"

``name=action`` acts at every hit, ``@N`` at the N-th hit alone, ``%N`` at every N-th one.

=============  =================================================================
``kill``       SIGKILL to this process: nothing after this point happens
``pause:S``    the thread that comes here stands still for S seconds, which it
               says on standard error: as a rule the event loop, and all on it
``raise``      raises FailpointReached: as if what follows had failed, or as if
               the answer about what has just been done were lost
=============  =================================================================
"""

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from shoal.core.errors import ShoalError

VARIABLE = "SHOAL_FAILPOINTS"

# Every point, by the role whose process passes it, and what is at stake there.
MASTER: Mapping[str, str] = {
    "start.before_commit": "instances of a batch of commands are written, not committed",
    "start.after_commit": "instances are committed, not in memory yet",
    "store.before_commit": "a batch of decisions is written, not committed",
    "store.after_commit": "decisions are committed, their actions not begun",
    "finish.before_commit": "the end of an instance is written, not committed",
    "finish.after_commit": "the end of an instance is committed, no process was notified",
    "admit.before_commit": "the end of an instance lets another one start, not committed",
    "admit.after_commit": "an instance that waited may start, no process was notified",
    "dispatch.before_put": "attempts are QUEUED in the database, not in the queue",
    "dispatch.after_put": "attempts are in the queue, too",
    "fetch.before_reply": "attempts are CLAIMED in the database, the worker has no payload",
    "report.before_reply": "a result is committed, the worker does not know",
    "publish.before_reserve": "what an attempt may hand over is noted, not committed",
    "publish.after_reserve": "what an attempt may hand over is noted, the worker has no payload",
    "publish.before_commit": "files of an attempt and its success are written, not committed",
    "publish.after_commit": "files of an attempt are resources, no process was notified",
    "kill.before_call": "a task is to be killed, its worker does not know",
    "takeover.before_commit": "the owner znodes are ours, the epochs not raised yet",
    "takeover.after_commit": "the epochs are ours, no run is loaded",
    "takeover.after_load": "everything is loaded, nothing decided",
    "fire.before_commit": "a schedule has fired, not committed",
    "fire.after_commit": "a fire time is a command, no notification was sent",
    "message.before_commit": "messages between a sub-workflow and its parent are written",
    "message.after_commit": "messages are committed, no notification was sent",
    "backfill.before_commit": "a step of a backfill is written, not committed",
    "backfill.after_commit": "a step of a backfill is committed, no process was notified",
    "slot.before_commit": "slots are given to waiting attempts, not committed",
    "slot.after_commit": "slots are given, no process was notified",
    "watch.before_look": "runs that wait for others are stored, the others not checked",
    "watch.before_post": "other runs were judged, no process was notified",
    "revoke.before_call": "an attempt's claim is gone, its worker was not asked",
    "revoke.after_call": "no worker holds an attempt, the loss is not decided",
    "purge.before_commit": "history is deleted, not committed",
    "purge.after_commit": "a part of what is to be purged has gone",
    "lose.before_post": "an attempt's claim is gone, the loss is not decided",
    "release.after_drop": "partitions are given up in memory, their owner znodes may stand",
}
WORKER: Mapping[str, str] = {
    "claim.before_multi": "slots are free, nothing is claimed",
    "claim.after_multi": "tasks are claimed, nothing is fetched",
    "fetch.before_call": "tasks are claimed, the master was not asked",
    "fetch.after_call": "the master has granted tasks, none has started",
    "fetch.before_give_up": "no master answers about claimed tasks, their claims stand",
    "requeue.before_report": "granted tasks are not to begin here, the master does not know",
    "requeue.before_put": "tasks are QUEUED again in the database, their claims stand",
    "requeue.after_put": "tasks are in the queue again",
    "revoke.before_reply": "tasks without claims are being ended, the master does not know",
    "launch.before_start": "a task is granted, the launcher was not asked",
    "launch.after_start": "a process runs, its start is not reported",
    "publish.before_upload": "an attempt has ended well, nothing of its files is in the storage",
    "publish.after_upload": "an attempt's files are in the storage, its record does not say so",
    "publish.after_record": "an attempt's record names its files, it is not reported",
    "record.after_exit": "an exit record is durable, not reported",
    "report.before_call": "a result is about to be sent",
    "report.after_call": "the master has answered, the result is not settled here",
    "eager.before_multi": "tasks came with an answer, the claims before them stand for them",
    "eager.after_multi": "tasks that came with an answer have claims of their own",
    "claim.before_release": "a result is committed, the claim stands",
    "claim.after_release": "the claim is gone",
}

# Of the rotation of keys; the key file is the runtime's, but no other role changes it.
API: Mapping[str, str] = {
    "rotate.before_key_file": "a new key is made, it is in no file",
    "rotate.after_key_file": "the new key is in the file, the database does not know",
    "rotate.before_begin": "the id of the new key is written, not committed",
    "rotate.after_begin": "the new key is the next one, nothing uses it",
    "rotate.before_promote": "masters have the new key, that it encrypts is not committed",
    "rotate.after_promote": "the new key encrypts, all older values are under the old one",
    "rotate.before_store": "some values are encrypted anew, not committed",
    "rotate.after_store": "some values are under the new key, others under the old one",
    "rotate.before_retire": "nothing uses the old keys, that is not committed",
    "rotate.after_retire": "the old keys are retired, they stand in the file",
    "rotate.between_key_files": "retired keys are in both files",
    "rotate.after_key_files": "retired keys are out of the file, no process was notified",
}

# Of the process that exports the history.
EXPORT: Mapping[str, str] = {
    "export.before_commit": "the files of an export are written, the database does not know",
    "export.after_commit": "an export counts, its manifest is not in the storage",
    "export.before_verified": "files of the history are whole, the database does not know",
    "export.after_verified": "the purge may take what an export has, the next step has not begun",
    "export.before_removal": "a full manifest is in the storage, those before it as well",
}

# Of the process that loads roll-ups.
LOAD: Mapping[str, str] = {
    "load.in_batch": "some rows of a result are in the database, none count",
    "load.before_publish": "all rows of a result are in the database, none count",
    "load.after_publish": "the rows of a result count, those before them are still there",
    "load.before_marks_go": "all results count, the marks that named them are still there",
    "load.in_removal": "some of the rows that do not count have gone",
}


class InvalidFailpoint(ShoalError):
    """``SHOAL_FAILPOINTS`` cannot be understood."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(
            f"{VARIABLE}: {text!r} {why}; write name=kill|pause:SECONDS|raise, each perhaps with "
            "@N (the N-th hit) or %N (every N-th hit), separated by semicolons"
        )


class FailpointReached(ShoalError):
    """Raised by a point that is armed with ``raise``."""

    retriable = True

    def __init__(self, name: str) -> None:
        super().__init__(f"failpoint {name} was reached, which {VARIABLE} makes an error")


@dataclass
class _Armed:
    """What one point does. ``at`` and ``every`` count hits from 1; 0: not set."""

    name: str
    act: Callable[[], None]
    at: int = 0
    every: int = 0
    hits: int = 0

    def hit(self) -> None:
        self.hits += 1
        if self.at and self.hits != self.at:
            return
        if self.every and self.hits % self.every:
            return
        self.act()


_KNOWN = MASTER.keys() | WORKER.keys() | API.keys() | EXPORT.keys() | LOAD.keys()


def parse(text: str) -> dict[str, _Armed]:
    """Return what ``text`` arms. Raises InvalidFailpoint."""
    found = {}
    for item in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, action = item.partition("=")
        if not equals or name not in _KNOWN:
            raise InvalidFailpoint(item, "names no known point")
        found[name] = _armed(item, name, action)
    return found


def _armed(item: str, name: str, action: str) -> _Armed:
    at = every = 0
    for mark in "@%":
        action, found, number = action.partition(mark)
        if not found:
            continue
        if not number.isdecimal() or int(number) < 1:
            raise InvalidFailpoint(item, f"has no number after {mark}")
        at, every = (int(number), every) if mark == "@" else (at, int(number))
    verb, _, argument = action.partition(":")
    match verb:
        case "kill" if not argument:
            act = _kill
        case "raise" if not argument:
            act = _raiser(name)
        case "pause":
            act = _pauser(item, name, argument)
        case _:
            raise InvalidFailpoint(item, "names no known action")
    return _Armed(name, act, at, every)


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _raiser(name: str) -> Callable[[], None]:
    def act() -> None:
        raise FailpointReached(name)

    return act


def _pauser(item: str, name: str, seconds: str) -> Callable[[], None]:
    try:
        duration_s = float(seconds)
    except ValueError:
        raise InvalidFailpoint(item, "has no seconds after pause:") from None
    if not 0 <= duration_s < float("inf"):
        raise InvalidFailpoint(item, "has no seconds after pause:")

    def act() -> None:
        os.write(2, f"failpoint {name}: standing still for {duration_s:g} s\n".encode())
        time.sleep(duration_s)

    return act


_armed_points = parse(os.environ.get(VARIABLE, ""))


def arm(environment: Mapping[str, str]) -> None:
    """Arm the points that ``environment`` names, and no others.

    For a process that was forked, and has another environment than its parent. Raises
    InvalidFailpoint.
    """
    global _armed_points
    _armed_points = parse(environment.get(VARIABLE, ""))


def hit(name: str) -> None:
    """Pass the point ``name``. Raises FailpointReached if it is armed so."""
    if name in _armed_points:
        _armed_points[name].hit()


def armed() -> list[str]:
    """Return the names of the points that are armed in this process."""
    return sorted(_armed_points)
