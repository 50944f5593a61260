"""The texts of tokens: a form that scanners know, a checksum, and no two alike."""

import re

from hypothesis import given
from hypothesis import strategies as st

from shoal.api.access.tokens import digest, is_token, new_session, new_token


def test_new_token_has_the_form_that_scanners_look_for() -> None:
    texts = {new_token() for _ in range(100)}
    assert len(texts) == 100
    for text in texts:
        assert re.fullmatch(r"shoal_pat_[0-9a-f]{64}_[0-9a-f]{8}", text)
        assert is_token(text)


def test_token_with_one_digit_changed_is_none() -> None:
    text = new_token()
    for index in range(len(text)):
        other = "0" if text[index] != "0" else "1"
        assert not is_token(text[:index] + other + text[index + 1 :])


@given(st.text(min_size=1))
def test_other_texts_are_no_tokens(text: str) -> None:
    assert not is_token(text)
    assert not is_token(f"shoal_pat_{text}_00000000")


def test_digest_is_one_way_and_sessions_are_no_tokens() -> None:
    session = new_session()
    assert len(session) >= 43  # 256 bits
    assert not is_token(session)
    assert digest(session) != session
    assert re.fullmatch(r"[0-9a-f]{64}", digest(session))
