"""An answer: its status and headers, and its body in a file until it is read."""

import codecs
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from shoal.worker.types.http import json_path
from shoal.worker.types.http.values import AnswerPart, Source

# Encodings of texts as servers name them. Others that Python knows can be slow, or are none.
_CHARSET = re.compile(
    r"utf-8|utf-16(?:-[bl]e)?|ascii|iso8859-\d{1,2}|cp\d{3,4}|koi8-[ru]|shift_jis|euc_(?:jp|kr)"
    r"|gb2312|gbk|gb18030|big5"
)


class Unusable(ValueError):
    """What is asked of the answer is not in it; the text says what."""


@dataclass(frozen=True)
class HttpAnswer:
    """``headers``: by names in lower case, of several with one name all values. ``body`` is the
    file with ``size`` bytes; ``sha256`` is set for a download.
    """

    status: int
    reason: str
    headers: Mapping[str, str]
    body: Path
    size: int
    sha256: str = ""

    @cached_property
    def text(self) -> str:
        """The body as text; what is not text in its charset becomes U+FFFD. Raises OSError."""
        return self.body.read_bytes().decode(self._charset, "replace")

    @cached_property
    def json(self) -> Any:
        """The body's JSON value. Raises Unusable, OSError."""
        try:
            return json.loads(self.body.read_bytes(), parse_constant=_no_number)
        except RecursionError:
            raise Unusable("the body is JSON with more levels than can be read") from None
        except ValueError as error:  # of JSON, of UTF-8, or a number of too many digits
            raise Unusable(f"the body is not JSON: {error}") from None

    @property
    def _charset(self) -> str:
        found = re.search(
            r"charset\s*=\s*\"?([\w.:-]{1,40})", self.headers.get("content-type", ""), re.IGNORECASE
        )
        try:
            name = codecs.lookup(found[1]).name if found else "utf-8"
        except LookupError:
            return "utf-8"
        return name if _CHARSET.fullmatch(name) else "utf-8"

    def at(self, path: str) -> Any:
        """Return the JSON value at ``path``. Raises Unusable, OSError."""
        try:
            return json_path.find(self.json, path)
        except LookupError:
            raise Unusable(f"the answer has nothing at {path}") from None

    def value(self, source: Source, file: Path) -> Any:
        """Return what ``source`` names; ``file`` is where a download is. Raises Unusable."""
        match source.kind:
            case AnswerPart.STATUS:
                return self.status
            case AnswerPart.BODY:
                return self.text
            case AnswerPart.JSON:
                return self.at(source.detail)
            case AnswerPart.HEADER:
                if source.detail.lower() not in self.headers:
                    raise Unusable(f"the answer has no header {source.detail}")
                return self.headers[source.detail.lower()]
            case AnswerPart.FILE:
                return str(file)
            case AnswerPart.SIZE:
                return self.size
            case AnswerPart.SHA256:
                return self.sha256


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")


def as_text(value: Any) -> str:
    """Return a JSON value as an output: texts as they are, null as the empty text.

    Raises Unusable for a number that JSON cannot write.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        raise Unusable("a number in the body is too large") from None
