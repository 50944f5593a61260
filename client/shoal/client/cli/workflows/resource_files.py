"""Local files and folders that become resources, or that resources become."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import typer

from shoal.client.errors import EditorFailed
from shoal.core.definition.resources import ResourceLocator, path_problem

_NAMED = 5  # things that were skipped


@dataclass(frozen=True)
class FolderFiles:
    """What of a folder can be uploaded, by its path in the project, and what cannot, in words."""

    files: dict[str, Path]
    skipped: list[str]


def files_of(local: Path, path: str) -> FolderFiles:
    """Return the files to upload. Raises BadParameter.

    A folder is taken with all that is in it. A link to a file is followed only within it: what lies
    elsewhere would be made known by accident. Other links, and what is not a file, are skipped.
    """
    if not local.is_dir():
        if not local.is_file():
            kind = "" if not os.path.lexists(local) else f"; {_kind(local)}"
            raise typer.BadParameter(f"there is no file or folder {local}{kind}")
        target = f"{path}{local.name}" if path.endswith("/") else path or local.name
        return FolderFiles({_checked(target): local}, [])
    base = path.removesuffix("/") or local.resolve().name
    found: list[Path] = []
    skipped: list[str] = []
    _walk(local, local.resolve(), found, skipped)
    files = {_checked(f"{base}/{one.relative_to(local).as_posix()}"): one for one in sorted(found)}
    if not files:
        more = f"; skipped: {', '.join(skipped[:_NAMED])}" if skipped else ""
        raise typer.BadParameter(f"the folder {local} holds no files{more}")
    return FolderFiles(files, sorted(skipped))


def _walk(folder: Path, root: Path, found: list[Path], skipped: list[str]) -> None:
    try:
        entries = list(folder.iterdir())
    except OSError as error:
        raise typer.BadParameter(f"the folder {folder} cannot be read: {error.strerror}") from None
    for entry in entries:
        is_link = entry.is_symlink()
        if is_link and entry.exists() and root not in entry.resolve().parents:
            raise typer.BadParameter(
                f"{entry} is a link that leads out of the folder; upload its target by itself"
            )
        if entry.is_dir() and not is_link:
            _walk(entry, root, found, skipped)
        elif entry.is_file():
            found.append(entry)
        else:
            skipped.append(f"{entry}: {_kind(entry)}")


def _kind(entry: Path) -> str:
    """Return why something is not a file."""
    if entry.is_symlink():
        target = os.readlink(entry)
        if entry.is_dir():
            return f"a link to the folder {target}; upload that folder by itself"
        return f"a link to {target}, {'not a file' if entry.exists() else 'which does not exist'}"
    for is_one, name in (
        (entry.is_fifo, "a pipe"),
        (entry.is_socket, "a socket"),
        (entry.is_block_device, "a device"),
        (entry.is_char_device, "a device"),
    ):
        if is_one():
            return f"{name}, not a file"
    return "not a file"


def _checked(path: str) -> str:
    if problem := path_problem(path):
        raise typer.BadParameter(problem)
    return path


def reference_of(text: str) -> ResourceLocator:
    """Read PATH, PATH@VERSION or FOLDER/ of a command line. Raises BadParameter."""
    try:
        found = ResourceLocator.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if found.project is not None:
        raise typer.BadParameter(f"{text}: name the project with --project {found.project}")
    return found


def edited(text: str, name: str) -> str:
    """Let a person change a text in the editor that the environment names; return it.

    Raises EditorFailed.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="shoal-edit-") as folder:
        file = Path(folder) / name
        file.write_text(text, encoding="utf-8", newline="")
        try:
            code = subprocess.run([*shlex.split(editor), str(file)], check=False).returncode
        except (OSError, ValueError) as error:
            raise EditorFailed(f"the editor {editor!r} cannot be started: {error}") from None
        if code:
            raise EditorFailed(f"the editor {editor!r} ended with status {code}")
        try:
            return file.read_bytes().decode()
        except UnicodeDecodeError:
            raise EditorFailed("what the editor has written is not UTF-8 text") from None


def write(target: Path, pieces: Iterator[bytes]) -> None:
    """Write a file in one step: it is there whole, or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.part")
    try:
        with unfinished.open("wb") as file:
            for piece in pieces:
                file.write(piece)
        unfinished.rename(target)
    finally:
        unfinished.unlink(missing_ok=True)
