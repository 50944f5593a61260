"""Secrets as files in a folder: what Kubernetes, docker and systemd mount."""

import os
import stat
from pathlib import Path

from pydantic import field_validator

from shoal.runtime.secret_stores.errors import SecretRefused, StoreUnavailable
from shoal.runtime.secret_stores.store import SecretStore, StoreSettings

_MOST_BYTES = 64 * 1024


class FilesSettings(StoreSettings):
    """``folder``: the same on every master and API."""

    folder: Path

    @field_validator("folder")
    @classmethod
    def _folder_is_absolute(cls, value: Path) -> Path:
        if not value.is_absolute():
            raise ValueError("must be an absolute path")
        return value


class Files(SecretStore[FilesSettings]):
    """A file is a secret; one line end at its end is not part of it."""

    Settings = FilesSettings

    def read(self, path: str, field: str | None) -> str:
        """Return the text of a file. Links lead where they like within the folder."""
        folder = self.settings.folder
        try:
            root = folder.resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise StoreUnavailable(
                self._about(path, f"its folder {folder} is not there")
            ) from error
        try:
            # Mounts of Kubernetes are links to links: what counts is where they end.
            target = (root / path).resolve(strict=True)
            if not target.is_relative_to(root):
                raise SecretRefused(self._about(path, f"the file is outside of {folder}"))
            content = _content(target)
        except FileNotFoundError as error:
            raise SecretRefused(self._about(path, f"there is no such file in {folder}")) from error
        except PermissionError as error:
            raise SecretRefused(self._about(path, "the file may not be read")) from error
        except (NotADirectoryError, IsADirectoryError, RuntimeError) as error:  # a loop of links
            raise SecretRefused(self._about(path, f"it is not a file in {folder}")) from error
        except OSError as error:
            said = error.strerror or str(error)
            raise StoreUnavailable(self._about(path, f"the file cannot be read: {said}")) from error
        except ValueError as error:
            raise SecretRefused(self._about(path, str(error))) from error
        return content

    def _about(self, path: str, what: str) -> str:
        return f"{self.name}:{path} cannot be read: {what}"


def _content(file: Path) -> str:
    """Return what is in a file. Raises OSError, ValueError."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # not on a pipe
    with os.fdopen(descriptor, "rb") as opened:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise IsADirectoryError
        if found.st_mode & stat.S_IWOTH:
            raise ValueError("every user may write the file, so its content cannot be trusted")
        raw = opened.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise ValueError(f"the file has more than {_MOST_BYTES:,} bytes")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise ValueError("the file is not UTF-8") from None
    return text.removesuffix("\n").removesuffix("\r")
