"""Drafts of definitions: texts that a user writes and has not published yet."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class DraftInfo:
    """A draft without its text. ``newest``: the workflow's newest version now; 0: there is none.

    ``base_version`` is the newest one when the draft was begun.
    """

    id: int
    project: str
    name: str
    editor: str
    base_version: int
    newest: int
    revision: int  # grows with each change
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class DefinitionDraft(DraftInfo):
    """A draft."""

    text: str
