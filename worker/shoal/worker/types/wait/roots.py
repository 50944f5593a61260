"""Where the tasks of a worker may look: the worker's setting ``wait_roots``.

Folders of the worker, and URLs. Without folders any path may be looked at, as a SHELL task may.
A URL must be there: what lies at it is reached with the worker's own credentials.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from shoal.worker.types.child.outcome import WorkFailed

SETTING = "wait_roots"


@dataclass(frozen=True)
class Roots:
    """The folders and URLs of the setting."""

    folders: Sequence[str] = ()
    urls: Sequence[str] = ()

    @classmethod
    def of(cls, setting: str) -> "Roots":
        """Read the setting, whose parts are separated by spaces."""
        parts = setting.split()
        return cls(
            [part for part in parts if "://" not in part],
            [part.rstrip("/") for part in parts if "://" in part],
        )

    def require_path(self, path: str) -> None:
        """Raise WorkFailed if an entry of the worker may not be looked at. Blocks."""
        if not self.allows(path):
            text = f"{path} is outside of the folders that this worker's tasks may look at"
            raise WorkFailed(f"{text}: see its setting {SETTING}", permanent=True)

    def allows(self, path: str) -> bool:
        """Return whether an entry of the worker, behind all links, may be looked at. Blocks."""
        if not self.folders:
            return True
        real = PurePosixPath(os.path.realpath(path))
        return any(real.is_relative_to(os.path.realpath(root)) for root in self.folders)

    def require_url(self, url: str) -> None:
        """Raise WorkFailed if a URL may not be looked at."""
        is_plain = not {".", ".."} & set(url.split("/"))
        if is_plain and any(url == root or url.startswith(f"{root}/") for root in self.urls):
            return
        text = f"this worker's tasks may not look at {url}: its administrator names what they may"
        raise WorkFailed(f"{text} in the setting {SETTING}", permanent=True)
