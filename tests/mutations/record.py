"""Verdicts in a file, so that an interrupted run continues and a later run repeats only a part.

Each verdict is one line of JSON. It holds as long as the mutated modules and the files of its
tests stay as they were; other code that the tests use may change. Only mutations that were noticed
are skipped: the others run again.
"""

import hashlib
import json
from pathlib import Path

from tests.mutations.mutation import Mutation
from tests.mutations.running import Result
from tests.mutations.verdict import Verdict


class Record:
    """The verdicts in ``file``; None keeps none. ``revision`` is written beside new ones."""

    def __init__(self, file: Path | None, revision: str) -> None:
        self._file, self._revision = file, revision
        self._noticed: dict[str, dict[str, str | float]] = {}  # by fingerprint
        for line in file.read_text().splitlines() if file and file.exists() else ():
            if not line.endswith("}"):
                continue  # cut off by the end of the run that wrote it
            entry = json.loads(line)
            if entry["verdict"] == Verdict.KILLED:
                self._noticed[entry["fingerprint"]] = entry

    def known(self, mutation: Mutation, root: Path) -> Result | None:
        """Return the result of an earlier run; None if the mutation has to run."""
        entry = self._noticed.get(fingerprint(mutation, root))
        if entry is None:
            return None
        return Result(mutation, Verdict.KILLED, str(entry["why"]), float(entry["took_s"]), "")

    def add(self, result: Result, root: Path) -> None:
        """Append a verdict, at once: the next line may never be written."""
        if self._file is None:
            return
        entry = {
            "mutation": result.mutation.name,
            "verdict": result.verdict,
            "why": result.why,
            "took_s": round(result.took_s, 1),
            "revision": self._revision,
            "fingerprint": fingerprint(result.mutation, root),
        }
        with self._file.open("a") as file:
            file.write(json.dumps(entry) + "\n")


def fingerprint(mutation: Mutation, root: Path) -> str:
    """Return a hash of the mutated modules, the names of the tests and the files of the tests."""
    content = hashlib.sha256()
    for file, text in sorted(mutation.changed(root).items()):
        content.update(f"{file.relative_to(root)}\0{text}\0".encode())
    for killer in sorted(mutation.killers):
        content.update(f"{killer}\0".encode())
    for name in sorted(mutation.files):
        content.update((root / name).read_bytes())
    return content.hexdigest()
