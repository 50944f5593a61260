"""Failpoints do nothing unless armed, and every registered name stands in the code once."""

import re
import subprocess
import sys
from collections import Counter

import pytest

from shoal.runtime import failpoints
from shoal.runtime.failpoints import FailpointReached, InvalidFailpoint
from tests.support.parts import PARTS, ROOT
from tests.support.waiting import START_S

CALL = re.compile(r'failpoints\.hit\("([^"]+)"\)')


def calls_in(*folders: str) -> Counter[str]:
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    return Counter(name for file in files for name in CALL.findall(file.read_text()))


def test_every_point_of_a_master_is_passed_at_one_place_in_its_code() -> None:
    assert calls_in("master") == Counter(dict.fromkeys(failpoints.MASTER, 1))


def test_every_point_of_a_worker_is_passed_at_one_place_in_its_code() -> None:
    assert calls_in("worker") == Counter(dict.fromkeys(failpoints.WORKER, 1))


def test_every_point_of_an_api_is_passed_at_one_place_in_its_code() -> None:
    key_file = "runtime/shoal/runtime/key_file.py"
    found = calls_in("api") + Counter(CALL.findall((ROOT / key_file).read_text()))
    assert found == Counter(dict.fromkeys(failpoints.API, 1))


def test_every_point_of_insight_is_passed_at_one_place_in_its_code() -> None:
    points = [*failpoints.EXPORT, *failpoints.LOAD]
    assert calls_in("insight") == Counter(dict.fromkeys(points, 1))


def test_no_other_part_passes_failpoints() -> None:
    assert not calls_in(*PARTS - {"master", "worker", "api"} - {"insight", "runtime"})


def test_unarmed_points_do_nothing() -> None:
    assert failpoints.armed() == []
    of_insight = [*failpoints.EXPORT, *failpoints.LOAD]
    for name in [*failpoints.MASTER, *failpoints.WORKER, *failpoints.API, *of_insight]:
        failpoints.hit(name)


def test_raise_acts_at_every_hit() -> None:
    point = failpoints.parse("claim.after_multi=raise")["claim.after_multi"]
    for _ in range(3):
        with pytest.raises(FailpointReached, match=r"claim\.after_multi"):
            point.hit()


def test_one_hit_can_be_chosen() -> None:
    point = failpoints.parse("claim.after_multi=raise@2")["claim.after_multi"]
    point.hit()
    with pytest.raises(FailpointReached):
        point.hit()
    point.hit()


def test_every_nth_hit_can_be_chosen() -> None:
    point = failpoints.parse("fetch.before_reply=raise%2")["fetch.before_reply"]
    seen = []
    for number in range(1, 7):
        try:
            point.hit()
        except FailpointReached:
            seen.append(number)
    assert seen == [2, 4, 6]


def run_armed(text: str, program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", f"from shoal.runtime import failpoints\n{program}"],
        env={"SHOAL_FAILPOINTS": text},
        capture_output=True,
        text=True,
        timeout=START_S,
    )


def test_kill_ends_the_process_at_the_chosen_hit() -> None:
    done = run_armed(
        "claim.after_multi=kill@3; fire.after_commit=pause:0",
        "for n in range(5):\n"
        "    print(n, flush=True)\n"
        "    failpoints.hit('fire.after_commit')\n"
        "    failpoints.hit('claim.after_multi')",
    )
    assert (done.returncode, done.stdout) == (-9, "0\n1\n2\n")


def test_a_process_tells_which_points_are_armed() -> None:
    done = run_armed(
        "claim.after_multi=kill@3;fire.after_commit=raise", "print(failpoints.armed())"
    )
    assert done.stdout == "['claim.after_multi', 'fire.after_commit']\n"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("claim.after_nothing=kill", "no known point"),
        ("claim.after_multi", "no known point"),
        ("claim.after_multi=explode", "no known action"),
        ("claim.after_multi=kill:3", "no known action"),
        ("claim.after_multi=kill@0", "no number after @"),
        ("claim.after_multi=kill%x", "no number after %"),
        ("claim.after_multi=pause", "no seconds"),
        ("claim.after_multi=pause:-1", "no seconds"),
        ("claim.after_multi=pause:nan", "no seconds"),
    ],
)
def test_a_mistake_is_told_in_words(text: str, part: str) -> None:
    with pytest.raises(InvalidFailpoint, match=part):
        failpoints.parse(text)
