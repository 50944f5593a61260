"""Secrets in a stream of bytes: none gets through, and nothing else is touched."""

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.worker.logs.secret_forms import SHORTEST, forms
from shoal.worker.supervisor.shim.masks import Masker


def masked(secrets: list[str], pieces: list[bytes]) -> bytes:
    masker = Masker(secrets)
    return b"".join([*(masker.feed(piece) for piece in pieces), masker.flush()])


def naive(secrets: list[str], text: bytes) -> bytes:
    """From left to right, the longest secret that stands at each place."""
    by_length = sorted((s.encode() for s in secrets if s), key=len, reverse=True)
    done, position = b"", 0
    while position < len(text):
        here = next((s for s in by_length if text.startswith(s, position)), None)
        done += b"***" if here else text[position : position + 1]
        position += len(here) if here else 1
    return done


TEXTS = st.text("abx", max_size=12)


@given(st.lists(st.text("ab", min_size=1, max_size=5), max_size=4), st.lists(TEXTS, max_size=8))
def test_stream_is_masked_as_the_whole_text_however_it_is_cut(
    secrets: list[str], pieces: list[str]
) -> None:
    whole = "".join(pieces).encode()
    assert masked(secrets, [piece.encode() for piece in pieces]) == naive(secrets, whole)
    assert Masker(secrets).mask("".join(pieces)).encode() == naive(secrets, whole)


def test_only_what_may_be_part_of_a_secret_is_held_back() -> None:
    masker = Masker(["secret"])
    assert masker.feed(b"sec") == b""
    assert masker.feed(b"ond prompt: ") == b"second prompt: "
    assert masker.feed(b"x s") == b"x "
    assert masker.feed(b"ecret!") == b"***!"
    assert masker.feed(b"secre") == b""
    assert masker.flush() == b"secre"


def test_secret_that_begins_another_is_masked_alone_as_well() -> None:
    masker = Masker(["abcd", "abcdef"])
    assert masker.feed(b"abcd") == b""
    assert masker.feed(b"x abcdef") == b"***x ***"
    assert masker.feed(b"abcd") == b""
    assert masker.flush() == b"***"


def test_every_byte_may_be_part_of_a_secret() -> None:
    value = "p.[*]+\\(é\n\x01"
    assert masked([value], [b"<", value.encode(), b"\xff\xfe>"]) == b"<***\xff\xfe>"
    assert masked([], [b"\xff anything"]) == b"\xff anything"


SECRET = 'päss "word"/+?\nsecond line\nx'


@pytest.mark.parametrize(
    "shown",
    [
        SECRET,
        "second line",
        'päss "word"/+?',
        json.dumps({"key": SECRET}),
        json.dumps({"key": SECRET}, ensure_ascii=False),
        f"https://u:{quote(SECRET, safe='')}@host",
        f"https://u:{quote(SECRET)}@host",
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
    ],
)
def test_secret_is_masked_in_all_its_forms(shown: str) -> None:
    result = Masker(forms([SECRET])).mask(f"before {shown} after")
    assert result.startswith("before ")
    assert result.endswith(" after")
    assert "***" in result
    for part in ("word", "second", "%22", base64.b64encode(SECRET.encode()).decode()[:8]):
        assert part not in result


def test_what_is_too_short_to_be_told_apart_is_left() -> None:
    assert all(len(form) >= SHORTEST for form in forms([SECRET, "12345\nabc"]))
    assert Masker(forms(["12345\nabc"])).mask("abc 12345") == "abc ***"
