"""Which files hold definitions, and their text.

A file that is named is a definition. In a folder (and the folders below it, hidden ones and
caches left out) ``.yaml``, ``.yml`` and ``.json`` files are definitions if they could be one, and
``.py`` files if they import what definitions are made of from ``shoal.client``; the programs and
data beside them are left alone, also those that speak to a cluster with its help.
"""

import ast
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from shoal.core.checks.workflow import DefinitionProblem

YAML_SUFFIXES = frozenset({".yaml", ".yml"})
SUFFIXES = YAML_SUFFIXES | {".json", ".py"}
MAX_BYTES = 16 * 2**20  # of a definition file

_LEFT_OUT = frozenset({"__pycache__", "node_modules"})
# A misspelt key is better reported than passed over, so this is a wide net.
_COULD_BE_WORKFLOW = re.compile(rb"task", re.IGNORECASE)
# With these alone nothing is defined: a program asks a cluster, and reading it would run it.
_OF_PROGRAMS = frozenset(
    {"ApiProblem", "ApiUnreachable", "Definition", "ShoalClient", "find_api", "load_definitions"}
)
# YAML's own rule, good for all kinds: no control characters.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class DefinitionFile:
    """A file to read. ``named``: given by the user, so it must hold a workflow."""

    path: Path
    named: bool

    @property
    def kind(self) -> str:
        """Its suffix in lower case, ".yml" as ".yaml"."""
        suffix = self.path.suffix.lower()
        return ".yaml" if suffix in YAML_SUFFIXES else suffix


def find_files(paths: Sequence[Path], problems: list[DefinitionProblem]) -> list[DefinitionFile]:
    """Return the files below ``paths``, each once, in order."""
    found: dict[Path, DefinitionFile] = {}
    for path in paths:
        if path.is_dir():
            files = [DefinitionFile(file, named=False) for file in _walk(path)]
            if not files:
                kinds = ", ".join(sorted(SUFFIXES))
                problems.append(
                    DefinitionProblem((), f"the folder holds no {kinds} file", str(path), 1)
                )
        elif not path.exists():
            problems.append(DefinitionProblem((), "there is no such file or folder", str(path), 1))
            continue
        elif path.suffix.lower() not in SUFFIXES:
            kinds = ", ".join(sorted(SUFFIXES))
            message = (
                f"{path.suffix or 'a file without suffix'} is not a kind of definition: {kinds}"
            )
            problems.append(DefinitionProblem((), message, str(path), 1))
            continue
        else:
            files = [DefinitionFile(path, named=True)]
        for file in files:
            real = file.path.resolve()
            if real not in found or file.named:
                found[real] = file
    return list(found.values())


def _walk(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _LEFT_OUT)
        for name in sorted(files):
            if not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES:
                yield Path(place, name)


def read_text(file: DefinitionFile, problems: list[DefinitionProblem]) -> str | None:
    """Return the text of a file. None: it is unusable, or is not a definition."""
    name = str(file.path)
    try:
        with file.path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        problems.append(DefinitionProblem((), f"cannot be read: {error.strerror}", name, 1))
        return None
    if not file.named and not _could_be_definition(file, content):
        return None
    if len(content) > MAX_BYTES:
        message = f"is larger than {MAX_BYTES // 2**20} MiB; no definition needs that much"
        problems.append(DefinitionProblem((), message, name, 1))
        return None
    return _decode(content, name, problems)


def _decode(content: bytes, name: str, problems: list[DefinitionProblem]) -> str | None:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"is not UTF-8 text: byte 0x{content[error.start]:02x} at offset {error.start}"
        problems.append(DefinitionProblem((), message, name, line))
        return None
    if found := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        message = f"is not text: it has the control character U+{ord(found[0]):04X}"
        problems.append(DefinitionProblem((), message, name, line))
        return None
    if not text.strip():
        problems.append(DefinitionProblem((), "is empty", name, 1))
        return None
    return text


def _could_be_definition(file: DefinitionFile, content: bytes) -> bool:
    if file.kind == ".py":
        return b"shoal" in content and _imports_shoal(content)
    return not content.strip() or _COULD_BE_WORKFLOW.search(content) is not None


def _imports_shoal(content: bytes) -> bool:
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return True  # reported when it is read
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), level=0, names=names) if _is_client(module):
                if not {name.name for name in names} <= _OF_PROGRAMS:
                    return True
            case ast.ImportFrom(module="shoal", names=names):
                return any(name.name == "client" for name in names)
            case ast.Import(names=names) if any(_is_client(name.name) for name in names):
                return True
    return False


def _is_client(module: str) -> bool:
    return module == "shoal.client" or module.startswith("shoal.client.")
