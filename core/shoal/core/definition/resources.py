"""Resources: files of a project that its tasks use, by their path within the project.

A reference is ``PATH`` (the newest version), ``PATH@VERSION``, or ``FOLDER/`` for all files below a
folder; of another project, which shares it, ``PROJECT:PATH`` and so on. A task finds them in its
folder under ``resources/``, by the same path.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import AfterValidator

from shoal.core.definition.fields import NAME_PATTERN
from shoal.core.errors import shortened
from shoal.core.macros import placeholders

#: The folder in an attempt's own folder that holds the resources of its task.
RESOURCES = "resources"
LONGEST_PATH = 500  # characters, and bytes
DEEPEST = 20  # parts of a path
MOST_REFERENCES = 100  # of one task
MOST_PUBLISHED = 100  # files of one task
LARGEST_VERSION = 2**31 - 1

_LONGEST_PART = 200  # bytes; file systems have 255, and a copy under way has a longer name
_REFUSED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\\:*?\"<>|$@{}]")
_PROJECT = re.compile(NAME_PATTERN)
_VERSION = re.compile(r"[1-9][0-9]{0,9}")


def path_problem(path: str) -> str | None:
    """Return why no resource can have this path; None if one can."""
    shown = shortened(repr(path), 120)
    if not path:
        return "a path is empty; write one such as etl/clean.py"
    if len(path.encode("utf-8", "replace")) > LONGEST_PATH:
        return f"{shown} is longer than {LONGEST_PATH} bytes"
    if not path.isprintable() or _REFUSED.search(path):
        return f"{shown} holds a character that no path may have: control characters or one of " + (
            '\\ : * ? " < > | $ @ { }'
        )
    if unicodedata.normalize("NFC", path) != path:
        return f"{shown} is not in Unicode's normal form NFC: two paths could look the same"
    parts = path.split("/")
    if len(parts) > DEEPEST:
        return f"{shown} has more than {DEEPEST} parts"
    for part in parts:
        if part in ("", ".", ".."):
            return f"{shown} is not a path within a project: no part may be empty, '.' or '..'"
        if part != part.strip() or part.startswith("-") or len(part.encode()) > _LONGEST_PART:
            return (
                f"{shown}: the part {shortened(repr(part), 60)} begins with a dash, begins or ends "
                f"with a blank, or is longer than {_LONGEST_PART} bytes"
            )
    return None


@dataclass(frozen=True)
class ResourceLocator:
    """What a task asks for. ``version`` None: the newest; of a folder always.

    ``project`` None: of the project itself.
    """

    path: str  # of a folder without the slash at its end
    version: int | None = None
    is_folder: bool = False
    project: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read PATH, PATH@VERSION or FOLDER/, perhaps behind PROJECT:. Raises ValueError."""
        project, colon, rest = text.partition(":")
        if colon and _PROJECT.match(project) is None:
            raise ValueError(f"{shortened(repr(project), 60)} is not a project; write PROJECT:PATH")
        path, at, version = (rest if colon else text).partition("@")
        is_folder = path.endswith("/") and not at
        path = path.removesuffix("/") if is_folder else path
        if problem := path_problem(path):
            raise ValueError(problem)
        if at and not (_VERSION.fullmatch(version) and int(version) <= LARGEST_VERSION):
            raise ValueError(
                f"{shortened(repr(version), 60)} is not a version; write {path}@3, or {path} "
                "for the newest"
            )
        return cls(path, int(version) if at else None, is_folder, project if colon else None)

    def __str__(self) -> str:
        home = f"{self.project}:" if self.project is not None else ""
        if self.is_folder:
            return f"{home}{self.path}/"
        return f"{home}{self.path}" + (f"@{self.version}" if self.version is not None else "")


#: In what a project shares: all its files.
ALL_FILES = "*"


def shared_problem(text: str) -> str | None:
    """Return why a project cannot share this: a file, FOLDER/, or all files; None if it can."""
    return None if text == ALL_FILES else path_problem(text.removesuffix("/"))


def is_shared(shared: Iterable[str], wanted: ResourceLocator) -> bool:
    """Say whether what a task asks for is among what a project shares."""
    path = f"{wanted.path}/" if wanted.is_folder else wanted.path
    return any(
        one in (ALL_FILES, path) or (one.endswith("/") and path.startswith(one)) for one in shared
    )


def foreign(text: str) -> str | None:
    """Return the other project that a reference names, whose rest may be rendered later."""
    project, colon, _ = text.partition(":")
    return project if colon and _PROJECT.match(project) else None


def _reference(text: str) -> str:
    if not placeholders.is_open(text):  # else it is read when it has been rendered
        ResourceLocator.parse(text)
    return text


def _file(text: str) -> str:
    if not placeholders.is_open(text) and ResourceLocator.parse(text).is_folder:
        raise ValueError(f"{shortened(text, 120)} is a folder; name one file of it")
    return text


def _plain_path(text: str) -> str:
    if not placeholders.is_open(text) and (problem := path_problem(text)):
        raise ValueError(problem)
    return text


#: A file in an attempt's own folder, or one that becomes a resource: neither folder nor version.
PlainPath = Annotated[str, AfterValidator(_plain_path)]
#: A file or a folder.
ResourceReference = Annotated[str, AfterValidator(_reference)]
#: One file.
FileReference = Annotated[str, AfterValidator(_file)]


def local_path(reference: str) -> str:
    """Return where an attempt finds the file of a reference, in its folder. Raises ValueError."""
    return f"{RESOURCES}/{ResourceLocator.parse(reference).path}"
