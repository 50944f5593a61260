"""Files that tasks hand over: each success has made one version, and nothing else has made any."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.chaos.judging.evidence import Attempt, Evidence, Version
from tests.chaos.judging.verdict import Kind, Offence
from tests.chaos.workload.task import left_text


def judge(evidence: Evidence) -> Iterator[Offence]:
    """Yield successes without their version or with several, and versions of anything else."""
    made = Counter(version.sha256 for version in evidence.versions)
    expected = {_sha256(attempt): attempt for attempt in _handing_over(evidence)}
    for sha256, attempt in expected.items():
        if made[sha256] != 1:
            yield Offence(
                Kind.LOST if made[sha256] == 0 else Kind.RERUN,
                "one version of a success",
                f"{made[sha256]} versions of what it handed over",
                attempt.instance,
                attempt.task,
                attempt.number,
            )
    for version in evidence.versions:
        by = expected.get(version.sha256)
        if by is None:
            text = f"{version.path}@{version.number} is of no attempt that has succeeded"
            yield Offence(Kind.ILLEGAL, "version of a success", text, version.instance)
        elif by.instance != version.instance:
            text = f"{version.path}@{version.number} is said to be of instance {version.instance}"
            yield Offence(Kind.ILLEGAL, "run of a version", text, by.instance, by.task, by.number)


def judge_contents(evidence: Evidence, storage: Path) -> Iterator[Offence]:
    """Yield versions whose content is not in the storage, or is another one."""
    for version in evidence.versions:
        if (problem := _problem(version, storage)) is not None:
            text = f"{version.path}@{version.number}, {version.object}: {problem}"
            yield Offence(Kind.LOST, "content of a version", text, version.instance)


def judged(evidence: Evidence) -> int:
    """Count the successes that have handed something over."""
    return len(_handing_over(evidence))


def _problem(version: Version, storage: Path) -> str | None:
    try:
        content = (storage / version.object).read_bytes()
    except OSError as error:
        return str(error)
    same = hashlib.sha256(content).hexdigest() == version.sha256
    return None if same else f"{len(content)} other bytes"


def _handing_over(evidence: Evidence) -> list[Attempt]:
    return [
        attempt
        for attempt in evidence.attempts
        if attempt.state == "SUCCEEDED"
        and (task := evidence.task_of(attempt)) is not None
        and task.hands_over
    ]


def _sha256(attempt: Attempt) -> str:
    return hashlib.sha256(left_text(attempt.instance, attempt.task, attempt.number)).hexdigest()
