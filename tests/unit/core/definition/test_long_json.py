"""Texts of any length, written and read piece by piece, are those that ``json`` makes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.definition import long_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_texts_are_those_of_json(value: Any) -> None:
    said = json.dumps(value, sort_keys=True, ensure_ascii=False)
    assert "".join(long_json.pieces(value)) == said
    short = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert long_json.compact(value) == short
    assert long_json.read(short) == json.loads(short)


def test_others_have_their_turn_at_each_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python lets other threads run when one of its functions is called."""
    value = [{"name": f"t{number}"} for number in range(50)]
    calls = 0

    def counted(members: dict[str, Any]) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        return members

    monkeypatch.setattr(long_json, "_as_it_is", counted)
    assert long_json.read(json.dumps(value)) == value
    assert calls == 50
    assert max(len(piece) for piece in long_json.pieces(value)) < 20


@pytest.mark.parametrize("text", ["", "{", "[1,]", "nul"])
def test_broken_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="line 1"):
        long_json.read(text)
