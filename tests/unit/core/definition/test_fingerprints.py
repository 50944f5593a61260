"""The same failure of two runs has one fingerprint, another failure has another one."""

import string
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.runs.why.fingerprints import FINGERPRINT, fingerprint, normalised
from tests.support.growth import keeps, shortest_s

# A failure in two runs.
SAME = [
    (
        "2026-11-26 10:00:00,123 ERROR [main] load: 5 rows refused",
        "2026-12-01 23:59:59,001 ERROR [main] load: 27,004 rows refused",
    ),
    ("KeyError: 'day_2026'", "KeyError: 'month'"),
    (
        "[Errno 2] No such file or directory: '/tmp/tmpab12cd_3/in.csv'",
        "[Errno 2] No such file or directory: '/tmp/tmpzz98yx_k/in.csv'",
    ),
    (
        "open /data/2026/11/26/part-00001.parquet: permission denied",
        "open /data/2026/11/27/part-00093.parquet: permission denied",
    ),
    (
        'OperationalError: connection to server at "10.0.0.1", port 5432 failed: timeout expired',
        'OperationalError: connection to server at "10.9.8.7", port 6000 failed: timeout expired',
    ),
    ("connect to 10.0.0.1:9092 refused", "connect to 192.168.7.255:19092 refused"),
    ("bind to [fe80::1]:80 refused", "bind to [2001:db8::8a2e:370:7334]:443 refused"),
    (
        "job 123e4567-e89b-12d3-a456-426614174000 lost",
        "job 00000000-0000-4000-8000-00000000000f lost",
    ),
    ("object at 0x7fae12 is closed", "object at 0xdeadbeef is closed"),
    ("commit a1b2c3d4e5f6 is not there", "commit 99bbccddee00 is not there"),
    ("pod etl-7d9f8b6c5d-x2x4z evicted", "pod etl-68cbb7d4f9-a8k2m evicted"),
    ("application_1700000000000_0001 died", "application_1711111111111_0420 died"),
    ("An error occurred while calling o45.collect", "An error occurred while calling o7.collect"),
    ("values [1, 2, 3] are not unique", "values [7] are not unique"),
    ("took 1.5e-3 s, at most 1 s", "took 12 s, at most 10 s"),
    ("C:\\Users\\ada\\in.csv is locked", "C:\\Temp\\x7\\in.csv is locked"),
    ("https://example.org/a?b=1 does not answer", "https://example.org/c/d does not answer"),
    ("file 'a" + "b" * 400 + "…", "file 'c" + "d" * 300 + "…"),  # cut
]
DIFFERENT = [
    *(one for one, _ in SAME),
    "HTTP 404 for https://example.org/a",
    "HTTP 500 for https://example.org/a",
    "ORA-00942: table or view does not exist",
    "ORA-01017: invalid username/password",
    "exit code 1",
    "exit code 137",
    "ended by signal 9",
    "ended by signal 15",
    "TypeError: 'a'",
    "[Errno 28] No space left on device",
    "[Errno 13] Permission denied",
    "read and write failed",
    "read and/or write failed",
    "the user's file isn't there",
    "the user's folder isn't there",
    "java.lang.OutOfMemoryError: Java heap space",
    "java.lang.OutOfMemoryError: GC overhead limit exceeded",
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_failure_of_two_runs_has_one_fingerprint(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)
    assert fingerprint(one) == fingerprint(other)


def test_different_failures_have_different_fingerprints() -> None:
    for one, other in combinations(DIFFERENT, 2):
        assert fingerprint(one) != fingerprint(other), (one, other)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            "2026-11-26T10:00:00.5Z  ERROR\t[thread-1] 3 of 4 at 10.0.0.1:5432",
            "<time> ERROR [thread-<n>] <n> of <n> at <address>",
        ),
        ("KeyError: 'a'", "KeyError: <text>"),
        ("can't open '/a b/c'", "can't open <text>"),
        ("cannot open /a/b/c.csv: HTTP 404", "cannot open <path> HTTP 404"),
        ("26/11/21 10:00:00 WARN s3://a/b 12ms", "<time> WARN <path> <n>ms"),
        ("std::vector::at: 5 >= 3", "std::vector::at: <n> >= <n>"),
        ("py4j.Py4JError", "py<n>j.Py<n>JError"),
        ("", ""),
    ],
)
def test_what_people_read_of_it(line: str, shown: str) -> None:
    assert normalised(line) == shown


_NUMBERS = st.integers(0, 10**18).map(str)
_HOSTS = st.ip_addresses(v=4).map(str)
_VALUES = {
    "n": _NUMBERS,
    "uuid": st.uuids().map(str),
    "time": st.datetimes().map(lambda at: at.isoformat(timespec="microseconds")),
    "path": st.lists(st.text(string.ascii_letters + string.digits + "._-", min_size=1), min_size=2)
    .map(lambda parts: "/" + "/".join(parts))
    .filter(lambda path: path[-1].isalnum()),
    "address": st.builds(lambda host, port: f"{host}:{port}", _HOSTS, st.integers(0, 65535)),
    "text": st.text(st.characters(exclude_characters='"…'), max_size=30).map(lambda t: f'"{t}"'),
    "id": st.integers(2**20, 2**64).map(hex),
}
# Letters alone, and none of the words behind which a number says what went wrong.
_WORDS = st.lists(st.text("ghijklmpquvwxyzGHIJKLMPQUVWXYZ", min_size=1), min_size=1)


@given(words=_WORDS, data=st.data())
def test_what_differs_from_run_to_run_makes_no_other_fingerprint(
    words: list[str], data: st.DataObject
) -> None:
    def line() -> str:
        return " ".join(f"{word} {data.draw(_VALUES[kind])}" for word, kind in given_parts)

    given_parts = [(word, data.draw(st.sampled_from(sorted(_VALUES)))) for word in words]
    shown = " ".join(f"{word} <{kind}>" for word, kind in given_parts)
    assert normalised(line()) == shown
    assert fingerprint(line()) == fingerprint(line())


@given(one=_WORDS, other=_WORDS)
def test_other_words_make_another_fingerprint(one: list[str], other: list[str]) -> None:
    assert (fingerprint(" ".join(one)) == fingerprint(" ".join(other))) is (one == other)


@given(st.text(st.characters(), max_size=200))
def test_any_text_has_a_fingerprint(text: str) -> None:
    assert FINGERPRINT.fullmatch(fingerprint(text))


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "0",
        "-",
        "/",
        "'",
        '"',
        "`",
        "a.",
        "a/",
        "0,",
        "0:",
        "::",
        "0-",
        "a1",
        "x://",
        "code ",
        "…",
    ],
)
def test_a_long_line_takes_a_time_that_grows_with_it(piece: str) -> None:
    short, long = ((piece * size)[:size] for size in (10_000, 80_000))
    once_s = shortest_s(lambda: normalised(short))
    assert keeps(max(0.05, 24 * once_s), lambda: normalised(long))  # 8 is linear, 64 square
