"""Ids and names by which a task's jobs and jars are found again."""

import re

from hypothesis import given
from hypothesis import strategies as st

from shoal.worker.types.flink.names import attempt_of_jar, attempt_of_job, jar_name, job_id

TAGS = st.from_regex(r"[a-z0-9-]{1,40}", fullmatch=True)
ATTEMPTS = st.integers(1, 2**31 - 1)


@given(tag=TAGS, attempt=ATTEMPTS)
def test_they_tell_the_attempt_of_their_own_task(tag: str, attempt: int) -> None:
    assert re.fullmatch(r"[0-9a-f]{32}", job_id(tag, attempt))
    assert attempt_of_job(tag, job_id(tag, attempt)) == attempt
    assert attempt_of_jar(tag, jar_name(tag, attempt)) == attempt


@given(tag=TAGS, other=TAGS, attempt=ATTEMPTS)
def test_they_are_nobody_elses(tag: str, other: str, attempt: int) -> None:
    if tag != other:
        assert attempt_of_job(other, job_id(tag, attempt)) is None


def test_a_tag_that_begins_like_another_is_another() -> None:
    assert attempt_of_jar("shoal-c", jar_name("shoal-c-1", 1)) is None
    assert attempt_of_jar("shoal-c", "job.jar") is None
