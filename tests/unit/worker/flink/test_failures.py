"""Which of Flink's exceptions is the reason, and whether it would come again."""

import pytest

from shoal.worker.types.flink.failures import (
    cause,
    chain,
    errors_of,
    is_of_the_jar,
    refusal,
    traces_of,
)
from tests.support.servers.flink_rest import FAILURE, MAIN_FAILED, NO_CLASS


@pytest.mark.parametrize(
    ("trace", "said", "permanent"),
    [
        (NO_CLASS, "The program's entry point class 'Nope' was not found in the jar file.", True),
        (MAIN_FAILED, "java.lang.IllegalArgumentException: no such table", False),
        (
            "org.apache.flink.runtime.rest.handler.RestHandlerException: No jobs included in "
            "application.\n\tat x.y(Z.java:1)",
            "the program has no job: it never calls execute()",
            True,
        ),
        ("", "", False),
        ("Not found: /jars", "Not found: /jars", False),
    ],
)
def test_why_a_job_was_not_started(trace: str, said: str, permanent: bool) -> None:
    assert refusal(trace) == said
    assert is_of_the_jar(trace) is permanent


def test_cause_of_all_others_is_the_reason() -> None:
    assert cause(FAILURE) == "java.lang.IllegalStateException: the third number is wrong"
    assert len(chain(FAILURE)) == 2


def test_message_of_several_lines_is_one() -> None:
    trace = "a.FirstException: one\n\nCaused by: b.SecondError: two\n  and three\n\tat c.d(E.java)"
    assert cause(trace) == "b.SecondError: two and three"


def test_long_message_is_cut() -> None:
    assert len(cause("a.LongException: " + "x" * 5_000)) == 500


@pytest.mark.parametrize("body", [{}, {"errors": None}, {"errors": []}, {"exceptionHistory": []}])
def test_answers_that_say_nothing(body: dict[str, object]) -> None:
    assert errors_of(body) == ""
    assert list(traces_of(body)) == []


def test_newest_exception_comes_first_and_flink_1_has_one_place_more() -> None:
    entries = [{"stacktrace": "new"}, {"stacktrace": "old"}, {}]
    body = {"exceptionHistory": {"entries": entries}, "root-exception": "root"}
    assert list(traces_of(body)) == ["new", "old", "root"]
