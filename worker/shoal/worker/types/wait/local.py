"""What is at a path of the worker."""

import glob
import os
import stat

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.wait.kind import WILD
from shoal.worker.types.wait.roots import Roots
from shoal.worker.types.wait.verdict import Found

MOST_MATCHES = 100_000  # entries that one look examines


def entries(path: str, roots: Roots) -> list[Found]:
    """Return what is at a path, or matches it. Links count as what they lead to. Blocks.

    Raises WorkFailed for what no later look can mend.
    """
    if WILD.search(path) is None:
        roots.require_path(path)
        one = _entry(path, _may_not_look)
        return [] if one is None else [one]
    folder = fixed_part(path)
    roots.require_path(folder)
    if os.path.isdir(folder) and not os.access(folder, os.R_OK | os.X_OK):
        raise _may_not_look(folder)
    found: list[Found] = []
    for number, name in enumerate(glob.iglob(path, recursive=True, include_hidden=False)):
        if number >= MOST_MATCHES:
            text = f"{path} matches more than {MOST_MATCHES:,} names; say more exactly what counts"
            raise WorkFailed(text, permanent=True)
        one = _entry(name) if roots.allows(name) else None
        if one is not None:
            found.append(one)
    return found


def fixed_part(path: str) -> str:
    """Return the folder before the first part of a pattern that is one."""
    parts = path.split("/")
    fixed = next(number for number, part in enumerate(parts) if WILD.search(part))
    return "/".join(parts[:fixed]) or "/"


def _entry(path: str, on_denied: object = None) -> Found | None:
    try:
        known = os.stat(path)
    except PermissionError:
        if on_denied is not None:
            raise _may_not_look(path) from None
        return None
    except OSError:  # it is not there, or a link to nothing
        return None
    return Found(path, known.st_size, known.st_mtime, stat.S_ISDIR(known.st_mode))


def _may_not_look(path: str) -> WorkFailed:
    text = f"the worker's user may not look at {path}: it needs the rights to list and enter"
    return WorkFailed(f"{text} the folders on the way", permanent=True)
