"""By which ids and names everything of a task is known in its cluster.

Both are made of the task's tag and the number of the attempt, before anything is submitted. So
what an attempt has left is found without a record of it, and Flink refuses a job that is
submitted a second time.
"""

import hashlib
import re

_TAG_DIGITS = 24  # of the 32 hexadecimal digits of a job's id; the others are the attempt's number


def job_id(tag: str, attempt: int) -> str:
    """Return the id of an attempt's job, in hexadecimal digits as Flink writes it."""
    return f"{_digest(tag)}{attempt:08x}"


def attempt_of_job(tag: str, found: str) -> int | None:
    """Return which attempt of the task a job belongs to; None if it is none of the task's."""
    return int(found[_TAG_DIGITS:], 16) if found.startswith(_digest(tag)) else None


def jar_name(tag: str, attempt: int) -> str:
    """Return the name under which an attempt's jar is uploaded."""
    return f"{tag}-{attempt}.jar"


def attempt_of_jar(tag: str, found: str) -> int | None:
    """Return which attempt of the task a jar belongs to; None if it is none of the task's."""
    match = re.fullmatch(rf"{re.escape(tag)}-([0-9]+)\.jar", found)
    return int(match[1]) if match else None


def _digest(tag: str) -> str:
    return hashlib.sha256(tag.encode()).hexdigest()[:_TAG_DIGITS]
