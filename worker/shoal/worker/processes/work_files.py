"""The files of one attempt: its folder, made and removed. Everything here blocks.

Imported by the task types, so it imports little.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

#: In the folder of an attempt: its parameters, and where its program may write outputs.
PARAMETERS_FILE, OUTPUT_FILE = "parameters.json", "output"
#: What a helper has to say, in its folder; see ``helpers.py``.
ANSWER_FILE = "answer"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_USUAL = (PARAMETERS_FILE, "script.sh")  # most folders hold nothing else
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_folder(folder: Path) -> None:
    """Make an empty folder (0700), in the place of an old one if there is one. Raises OSError."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        remove_tree(folder)
        folder.mkdir(mode=0o700)


def write_new(path: Path, content: bytes, mode: int) -> None:
    """Write a file that was not there before. Raises OSError."""
    fd = os.open(path, _NEW, mode)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(fd, left) :]
    finally:
        os.close(fd)


def remove_tree(folder: Path) -> bool:
    """Remove a folder with everything in it; return whether nothing of it is left."""
    try:
        _remove_flat(folder)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()
    return True


def _remove_flat(folder: Path) -> None:
    """Remove a folder that holds files only, as most do; a link in its place is not followed.

    The usual ones go unseen: to list them costs more than all else. Raises OSError.
    """
    fd = os.open(folder, _FOLDER)
    try:
        for name in _USUAL:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=fd)
        try:
            os.rmdir(folder)
        except OSError:
            for name in os.listdir(fd):
                os.unlink(name, dir_fd=fd)
            os.rmdir(folder)
    finally:
        os.close(fd)
