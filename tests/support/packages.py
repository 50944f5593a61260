"""Packages that are installed for the time of a test, as pip would: modules and entry points."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from shoal.runtime import plugins, source_kinds


def forget() -> None:
    """Forget what was found before."""
    plugins.forget()
    source_kinds.forget()


@contextmanager
def installed(
    folder: Path, group: str, points: Mapping[str, str], **modules: str
) -> Iterator[Path]:
    """Install modules, by name with their text, that provide entry points of a group.

    Yields the folder that was put on ``sys.path``; other processes need it in PYTHONPATH.
    """
    site = folder / "site"
    info = site / "plug_in-1.0.dist-info"
    info.mkdir(parents=True)
    for name, text in modules.items():
        (site / f"{name}.py").write_text(text)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-in\nVersion: 1.0\n")
    lines = [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    sys.path.insert(0, str(site))
    forget()
    try:
        yield site
    finally:
        sys.path.remove(str(site))
        for name in modules:
            sys.modules.pop(name, None)
        forget()
