"""Reasons are made of sentences that are read back to codes, whatever stands in them."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.core.decide.draft import Draft
from shoal.core.errors import LONGEST_REASON, shortened
from shoal.core.runs.run import Decision
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.core.runs.why import reasons
from shoal.core.runs.why.codes import Argument, Code, Said
from shoal.core.runs.why.reasons import NOT_AGAIN, SENTENCES, of_attempt, of_instance, say, stopped
from tests.unit.core.decide.reference.campaign import run_cases

ROOT = Path(__file__).parents[4]
T, W = TaskState, WorkflowState
VALUES: dict[str, Argument] = {
    "task": "load.v-2_x",
    "upstream": "all",
    "project": "failed",
    "workflow": "task",
    "from": "2026-03-29 02:30",
    "date": "last1Days",
    "state": "UP_FOR_RETRY",
    "after": "2h 03m",
    "worker": "host-1f2e.example.org:7",
    "by": "ada lovelace",
    "why": "timed out: after [2] tries; and 3 more",
    "answer": "no file (yet)\nat all",
    "output": "KeyError: 'a': b",
    "instance": 17,
    "backfill": 3,
    "tasks": 2,
    "failed": 1,
    "items": 40,
    "more": 2,
    "exit_code": -11,
    "signal": 9,
}
# Files in which every reason comes from ``say``.
SPEAKERS = (
    *sorted((ROOT / "core/shoal/core/decide").glob("*.py")),
    *(ROOT / "master/shoal/master" / name for name in ("dispatch/revocation.py",)),
    *(ROOT / "master/shoal/master/services" / name for name in ("admission.py", "backfills.py")),
)


def read(text: str) -> Iterator[Said]:
    """Yield what is read of a sentence in the states that it can explain."""
    for state in TaskState:
        if (said := of_attempt(state, text)) is not None:
            yield said
    for one in WorkflowState:
        for reason in (text, stopped(text)):
            if (said := of_instance(one, reason)) is not None:
                yield said


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda one: one.text)
@pytest.mark.parametrize("is_whole", [True, False])
def test_every_sentence_is_read_back(sentence: reasons._Sentence, is_whole: bool) -> None:
    must = set(re.findall(r"\{(\w+)\}", re.sub(r"\[.*?\]", "", sentence.text)))
    may = set(re.findall(r"\{(\w+)\}", sentence.text))
    given = {name: VALUES[name] for name in (may if is_whole else must)}
    arguments = {name + "_" * (name == "from"): value for name, value in given.items()}
    text = say(sentence.code, **arguments)
    found = list(read(text))
    assert found, text
    for said in found:
        assert said.code is sentence.code, text
        assert {k: v for k, v in said.arguments.items() if v is not None and k != "is_final"} == (
            given
        )
    assert "{" not in text.replace(str(VALUES["why"]), "")


def test_numbers_are_spoken_of_as_people_do() -> None:
    assert say(Code.REASON_TASKS_FAILED, tasks=1) == "1 task failed"
    assert say(Code.REASON_TASKS_FAILED, tasks=0) == "0 tasks failed"
    ignored = say(Code.REASON_FAILURES_IGNORED, tasks=2)
    assert ignored == "2 tasks failed, ignored as the workflow says"
    for state, text in ((W.FAILED, "1 task failed"), (W.SUCCEEDED, ignored)):
        said = of_instance(state, text)
        assert said is not None
        assert said.arguments == {"tasks": int(text[0])}


def test_a_sentence_needs_its_arguments_and_no_others() -> None:
    with pytest.raises(
        ValueError, match=r"no sentence of reason\.other_branch has the arguments no"
    ):
        say(Code.REASON_OTHER_BRANCH)
    with pytest.raises(ValueError, match=r"no sentence of reason\.disabled has the arguments task"):
        say(Code.REASON_DISABLED, task="a")


def test_losses_say_whether_another_attempt_follows() -> None:
    text = say(Code.REASON_WORKER_GONE, worker="w1")
    for reason, is_final in ((text, 0), (text + NOT_AGAIN, 1)):
        said = of_attempt(T.LOST, reason)
        assert said is not None
        assert (said.code, said.text) == (Code.REASON_WORKER_GONE, reason)
        assert said.arguments == {"worker": "w1", "is_final": is_final}
    said = of_attempt(T.LOST, say(Code.REASON_WORKER_GONE) + NOT_AGAIN)
    assert said is not None
    assert said.arguments == {"worker": None, "is_final": 1}


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (T.FAILED, None),
        (T.FAILED, ""),
        (T.FAILED, "disabled"),  # a program's own words
        (T.FAILED, "stopped by request"),
        (T.FAILED, "the table is empty"),
        (T.SKIPPED, "exit code 1"),
        (T.SKIPPED, "upstream task a b failed"),
        (T.RESCHEDULED, "timed out after 3s"),
        (T.DELAYED, "no run was found"),
        (T.LOST, "exit code 1" + NOT_AGAIN),
        (T.FAILED, "exit code " + "9" * 30),
    ],
)
def test_what_shoal_has_not_said_has_no_code(state: TaskState, reason: str | None) -> None:
    assert of_attempt(state, reason) is None


def test_reasons_of_instances_are_of_their_states() -> None:
    for state in WorkflowState:
        assert of_instance(state, "disabled") is None
        assert of_instance(state, stopped("out of mood")) is None
    assert of_instance(W.RUNNING, "1 task failed") is None
    said = of_instance(W.STOPPED, stopped(say(Code.REASON_RAN_LONGER, after="4h 00m")))
    assert said is not None
    assert said.text == "stopped: ran longer than 4h 00m"
    assert (said.code, said.arguments) == (Code.REASON_RAN_LONGER, {"after": "4h 00m"})


def test_a_reason_that_was_cut_keeps_its_code() -> None:
    text = say(Code.REASON_CHILD, instance=17, state="FAILED", why="x" * 2_000)
    said = of_attempt(T.FAILED, shortened(text, LONGEST_REASON))
    assert said is not None
    assert (said.code, said.arguments["instance"]) == (Code.REASON_CHILD, 17)


def test_whatever_is_decided_has_a_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random graphs, outcomes and requests; the world around them gives no reasons of its own."""
    decided, codes = Draft.decision, Counter[Code]()

    def decision(self: Draft) -> Decision:
        made = decided(self)
        said = [(of_attempt, one.state, one.reason) for one in made.attempts.values()]
        found = [(reason, read(state, reason)) for read, state, reason in said if reason]
        if made.state is not None and made.reason:
            found.append((made.reason, of_instance(made.state, made.reason)))
        for reason, one in found:
            assert one is not None, reason
            codes[one.code] += 1
        return made

    monkeypatch.setattr(Draft, "decision", decision)
    assert run_cases(7, 0, 400).cases == 400
    assert len(codes) >= 20, codes


def test_masters_explain_what_they_decide_with_sentences_that_have_codes() -> None:
    """Nobody writes a reason where it is needed: it would have no code."""
    found = [f"{path.name}:{node.lineno}" for path in SPEAKERS for node in written(path)]
    assert found == []


def written(path: Path) -> Iterator[ast.expr]:
    """Yield texts that are given as a reason, or as what a skip is for."""
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(call, ast.Dict):
            pairs = zip(call.keys, call.values, strict=True)
            given = [v for k, v in pairs if isinstance(k, ast.Constant) and k.value == "reason"]
        elif isinstance(call, ast.Call):
            given = [one.value for one in call.keywords if one.arg in ("reason", "why")]
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            given += call.args[2:3] if name == "skip" else []
            given += call.args[1:2] if name in ("stop_because", "move") else []
        elif isinstance(call, ast.Assign):
            names = {one.id for one in call.targets if isinstance(one, ast.Name)}
            given = [call.value] if names & {"reason", "why"} else []
        else:
            given = []
        for one in given:
            parts = [node for node in ast.walk(one) if not isinstance(node, ast.Call)]
            if isinstance(one, ast.Call):
                continue
            yield from (
                node
                for node in parts
                if isinstance(node, ast.JoinedStr)
                or (isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value)
            )


@pytest.mark.parametrize(
    ("kind", "data", "code"),
    [
        (
            "instance.state",
            {"state": "FAILED", "reason": "2 tasks failed"},
            Code.REASON_TASKS_FAILED,
        ),
        ("task.state", {"state": "FAILED", "reason": "exit code 3"}, Code.REASON_EXIT_CODE),
        ("task.state", {"state": "FAILED", "reason": "out of luck"}, None),
        ("task.state", {"state": "A_LATER_ONE", "reason": "exit code 3"}, None),
        ("task.state", {"state": 3, "reason": ["exit code 3"]}, None),
        ("task.state", {"state": "FAILED"}, None),
        ("task.detail", {"state": "FAILED", "reason": "exit code 3"}, None),
    ],
)
def test_reasons_of_events_are_those_of_what_they_tell(
    kind: str, data: dict[str, object], code: Code | None
) -> None:
    said = reasons.of_event(kind, data)
    assert (said and said.code) == code
