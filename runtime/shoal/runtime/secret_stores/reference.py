"""References: ``STORE:PATH#FIELD``, and which project may read which paths."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from shoal.runtime.secret_stores.errors import InvalidReference

STORE_NAME = r"[a-z][a-z0-9-]{0,31}"
EVERY_PROJECT = "*"
OWN = "{project}"

LONGEST = 500  # characters
_SEGMENT = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9_.@-]+"
_PATH = rf"{_SEGMENT}(?:/{_SEGMENT})*"
_REFERENCE = re.compile(
    rf"(?P<store>{STORE_NAME}):(?P<path>{_PATH})(?:#(?P<field>[A-Za-z0-9_.@-]{{1,100}}))?"
)
_FOLDER = re.compile(rf"(?:{_PATH}/?)")


@dataclass(frozen=True)
class SecretReference:
    """Where a secret is. ``field``: of the things that a store has at one path; None: it is one."""

    store: str
    path: str
    field: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what a text refers to. Raises InvalidReference."""
        found = _REFERENCE.fullmatch(text) if len(text) <= LONGEST else None
        if found is None:
            raise InvalidReference(
                "is not a reference: write STORE:PATH or STORE:PATH#FIELD, such as "
                "vault:shoal/flights/db#password; of a path, letters, digits and _ . - @ between "
                f"slashes, at most {LONGEST} characters"
            )
        return cls(found["store"], found["path"], found["field"])

    def __str__(self) -> str:
        field = f"#{self.field}" if self.field is not None else ""
        return f"{self.store}:{self.path}{field}"


def open_paths(
    paths: Iterable[str], projects: Mapping[str, Iterable[str]], project: str
) -> Iterator[str]:
    """Yield what a project may read in a store: folders, which end with /, and single paths.

    ``paths`` are templates with ``{project}`` in them; ``projects`` says more by name.
    """
    for template in paths:
        yield template.replace(OWN, project)
    yield from projects.get(project, ())
    yield from projects.get(EVERY_PROJECT, ())


def is_within(path: str, opened: Iterable[str]) -> bool:
    """Say whether a path is one of those that are open, or in a folder of them."""
    return any(path.startswith(one) if one.endswith("/") else path == one for one in opened)


def path_problem(text: str) -> str | None:
    """Return why a text opens nothing in a store; None if it does."""
    if _FOLDER.fullmatch(text):
        return None
    return f"{text!r} is not a path: write folder/, or folder/name of a single one"


def template_problem(text: str) -> str | None:
    """Return why a text cannot be a template of paths; None if it can.

    The project has to be a whole part of the path: with ``team_{project}/``, or a template that
    ends in the middle of a name, one project would read what is another one's.
    """
    if text.split("/").count(OWN) != 1 or text.count("{") != 1:
        return (
            f"{text!r} does not have {OWN} as one whole part of it, such as shoal/{OWN}/; what "
            "single projects read besides stands in `projects`"
        )
    return path_problem(text.replace(OWN, "p"))
