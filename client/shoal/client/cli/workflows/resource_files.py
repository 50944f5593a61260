"""Local files and folders that become resources, or that resources become."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import typer

from shoal.client.errors import EditorFailed
from shoal.core.definition.resources import ResourceLocator, path_problem


def files_of(local: Path, path: str) -> dict[str, Path]:
    """Return the files to upload, by their paths in the project. Raises BadParameter.

    A folder is taken with all that is in it. A link is followed only within it: what lies
    elsewhere would be made known by accident.
    """
    if not local.is_dir():
        if not local.is_file():
            raise typer.BadParameter(f"there is no file or folder {local}")
        target = f"{path}{local.name}" if path.endswith("/") else path or local.name
        return {_checked(target): local}
    base = path.removesuffix("/") or local.resolve().name
    found = {}
    for file in sorted(_walk(local, local.resolve())):
        found[_checked(f"{base}/{file.relative_to(local).as_posix()}")] = file
    if not found:
        raise typer.BadParameter(f"the folder {local} holds no files")
    return found


def _walk(folder: Path, root: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.is_symlink() and root not in entry.resolve().parents:
            raise typer.BadParameter(
                f"{entry} is a link that leads out of the folder; upload its target by itself"
            )
        if entry.is_dir() and not entry.is_symlink():
            yield from _walk(entry, root)
        elif entry.is_file():
            yield entry


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
