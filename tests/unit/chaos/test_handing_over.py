"""The checker compares the versions that tasks hand over with their successes.

Without these tests a lost or a repeated version could pass unnoticed.
"""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.judging.checker import judge
from tests.chaos.judging.evidence import Evidence, Version
from tests.chaos.judging.handing_over import judge_contents, judged
from tests.chaos.judging.verdict import Kind
from tests.chaos.workload.task import left_text
from tests.unit.chaos.evidence import CLEAN

TASKS = {name: replace(task, hands_over=True) for name, task in CLEAN.instances[1].tasks.items()}


def version(number: int, task: str, attempt: int, instance: int = 1) -> Version:
    sha256 = hashlib.sha256(left_text(1, task, attempt)).hexdigest()
    return Version("handed/3.txt", number, sha256, f"default/{number}", instance)


FIRST, SECOND = version(1, "first", 1), version(2, "second", 2)


def handing_over(*versions: Version) -> Evidence:
    return replace(
        CLEAN, instances={1: replace(CLEAN.instances[1], tasks=TASKS)}, versions=versions
    )


def test_a_version_of_each_success_is_clean() -> None:
    evidence = handing_over(FIRST, SECOND)
    assert list(judge(evidence)) == []
    assert judged(evidence) == 2
    assert judged(CLEAN) == 0


@pytest.mark.parametrize(
    ("kind", "rule", "versions"),
    [
        (Kind.LOST, "one version of a success", (FIRST,)),
        (Kind.RERUN, "one version of a success", (FIRST, SECOND, replace(SECOND, number=3))),
        (Kind.ILLEGAL, "version of a success", (FIRST, SECOND, version(3, "second", 1))),
        (Kind.ILLEGAL, "run of a version", (FIRST, replace(SECOND, instance=2))),
    ],
)
def test_planted_offence_is_found(kind: Kind, rule: str, versions: tuple[Version, ...]) -> None:
    found = list(judge(handing_over(*versions)))
    assert [(offence.kind, offence.rule) for offence in found] == [(kind, rule)]


def test_content_is_what_was_left(tmp_path: Path) -> None:
    evidence = handing_over(FIRST, SECOND)
    (tmp_path / "default").mkdir()
    (tmp_path / "default/1").write_bytes(left_text(1, "first", 1))
    (tmp_path / "default/2").write_bytes(left_text(1, "second", 2))
    assert list(judge_contents(evidence, tmp_path)) == []
    (tmp_path / "default/1").write_bytes(left_text(1, "first", 2))
    (tmp_path / "default/2").unlink()
    found = list(judge_contents(evidence, tmp_path))
    assert [(one.kind, one.rule) for one in found] == [(Kind.LOST, "content of a version")] * 2
