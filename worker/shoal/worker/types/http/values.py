"""Where a value of an answer comes from: ``status``, ``body``, ``headers.ETag``, ``$.job.id``.

Of a download also ``file``, ``size`` and ``sha256``.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from shoal.worker.types.http import json_path

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")  # a token of RFC 9110
_HEADERS = "headers."


class AnswerPart(StrEnum):
    """What of an answer is meant."""

    STATUS = "status"
    BODY = "body"  # as text
    HEADER = "header"
    JSON = "json"  # of the body
    FILE = "file"  # the path of what was downloaded
    SIZE = "size"  # its bytes
    SHA256 = "sha256"


_PLAIN = {str(kind) for kind in AnswerPart} - {AnswerPart.HEADER, AnswerPart.JSON}
_NEEDS_BODY = {AnswerPart.BODY, AnswerPart.JSON}
_NEEDS_DOWNLOAD = {AnswerPart.FILE, AnswerPart.SIZE, AnswerPart.SHA256}


@dataclass(frozen=True)
class Source:
    """One value of an answer. ``detail``: the header's name, or the JSON path."""

    kind: AnswerPart
    detail: str = ""

    @classmethod
    def read(cls, text: str) -> Self:
        """Return what ``text`` names. Raises ValueError."""
        if text in _PLAIN:
            return cls(AnswerPart(text))
        if text.startswith("$"):
            json_path.parse(text)
            return cls(AnswerPart.JSON, text)
        name = text.removeprefix(_HEADERS)
        if name != text and HEADER_NAME.fullmatch(name):
            return cls(AnswerPart.HEADER, name)
        raise ValueError(
            f"{text!r} is nothing of an answer; expected status, body, headers.NAME, a JSON path "
            "such as $.job.id, or of a download file, size, sha256"
        )

    @property
    def needs_body(self) -> bool:
        """Whether the body has to be read as text."""
        return self.kind in _NEEDS_BODY

    @property
    def needs_download(self) -> bool:
        """Whether there is such a value of a download alone."""
        return self.kind in _NEEDS_DOWNLOAD
