"""Labels: what people sort workflows and their runs by, each a key with a value."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from shoal.core.definition.fields import scalar_text

MOST_LABELS = 32  # that one definition, start or change names
MOST_OF_RUN = 64
LONGEST_KEY = LONGEST_VALUE = 63
KEY_PATTERN = rf"^[a-z0-9._/-]{{1,{LONGEST_KEY}}}$"
_KEY = re.compile(KEY_PATTERN)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _texts(value: Any) -> Any:
    return {k: scalar_text(v) for k, v in value.items()} if isinstance(value, dict) else value


def _usable(labels: dict[str, str]) -> dict[str, str]:
    for key, value in labels.items():
        if _KEY.fullmatch(key) is None:
            raise ValueError(
                f"{key[:80]!r} is not a key of a label: 1 to {LONGEST_KEY} of a-z, 0-9, '.', '_', "
                "'/', '-'"
            )
        if _CONTROL.search(value):
            raise ValueError(f"the label {key} holds a control character")
    return labels


#: At most ``MOST_LABELS``; a value is one line, and may be empty.
Labels = Annotated[
    dict[str, Annotated[str, Field(max_length=LONGEST_VALUE)]],
    BeforeValidator(_texts, json_schema_input_type=dict[str, str | int | float | bool]),
    AfterValidator(_usable),
    Field(max_length=MOST_LABELS),
]


def inherited(*levels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a run; the first level that has one says its value.

    Levels: what the start says, what the parent's run has, what the workflow has. A run has
    ``MOST_OF_RUN`` at most: those of the later levels give way, the last keys first.
    """
    found: dict[str, str] = {}
    for level in levels:
        for key, value in sorted(level.items()):
            if len(found) < MOST_OF_RUN:
                found.setdefault(key, value)
    return found


def parse_filter(text: str) -> tuple[str, str | None]:
    """Return what ``KEY`` or ``KEY=VALUE`` asks for; None: any value. Raises ValueError."""
    key, separator, value = text.partition("=")
    if _KEY.fullmatch(key) is None or len(value) > LONGEST_VALUE:
        raise ValueError(f"{text[:80]!r} must be KEY or KEY=VALUE, such as team=flights")
    return key, value if separator else None
