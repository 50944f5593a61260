"""What a mutation is: a safety check that is taken out, and the tests that must notice."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Promise(StrEnum):
    """What Shoal promises, and a mutation breaks. See "Always true" in docs/architecture.md."""

    FENCED_OWNERSHIP = "only the present owner of a partition writes its state"
    ONE_LIVE_ATTEMPT = "at most one process tree of a task is alive"
    NOTHING_LOST = "nothing accepted is lost"
    ONE_INSTANCE = "one instance per request and per (schedule, fire time)"
    GUARDED_STATES = "terminal states are final, late events change nothing"
    DURABLE_RESULTS = "results are durable before they are reported, and kept until committed"
    SELF_FENCE = "who cannot prove its session stops before anybody else may begin"
    KILLED_MEANS_DEAD = "killed means dead, with all descendants and nothing else"
    PROGRESS = "what can run is run; nothing in front blocks what is behind"
    ROOM = "no more is started than a workflow or a master has room for"
    COMMIT_FIRST = "decisions commit before memory changes"
    TEXT_STAYS_TEXT = "what others have written steers no program"
    SECRETS_STAY = "secrets never leave"
    AUDITED = "every change has an entry that stays as it is"
    AUTHORISED = (
        "objects are authorised through their own project, credentials end when they should"
    )
    RUNS_STAY = "nothing changes under a run that goes on by itself"
    SENT_ONCE = "what may have been carried out elsewhere is sent again only if that does no harm"


class DoesNotApply(Exception):
    """The code has changed, and the mutation with it must."""


@dataclass(frozen=True)
class Edit:
    """Replace ``old``, which stands in ``file`` exactly once, by ``new``."""

    file: str
    old: str
    new: str

    def mutated(self, root: Path) -> str:
        """Return the changed content of the file below ``root``. Raises DoesNotApply."""
        path = root / self.file
        if not path.is_file():
            raise DoesNotApply(f"there is no {self.file} any more")
        text = path.read_text()
        if (count := text.count(self.old)) != 1:
            raise DoesNotApply(f"{self.file} has this text {count} times, not once: {self.old!r}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Mutation:
    """A safety check that is gone. ``killers`` are pytest ids of tests that must fail then.

    ``limit_s`` bounds their run; a test that merely hangs does not count, so it only guards the
    machine. ``possible`` says whether this machine has what the killers need.
    """

    name: str
    breaks: Promise
    edits: tuple[Edit, ...]
    killers: tuple[str, ...]
    limit_s: float = 300.0
    possible: Callable[[], bool] = lambda: True

    def check(self, root: Path) -> None:
        """Raise DoesNotApply unless every edit fits the tree at ``root``."""
        for edit in self.edits:
            try:
                edit.mutated(root)
            except DoesNotApply as error:
                raise DoesNotApply(
                    f"mutation {self.name!r} no longer applies: {error}; adapt it in "
                    "tests/mutations/catalogue"
                ) from None

    def apply(self, root: Path) -> None:
        """Change the copy of the tree at ``root``. Raises DoesNotApply."""
        self.check(root)
        for edit in self.edits:
            (root / edit.file).write_text(edit.mutated(root))


def mutation(
    name: str,
    breaks: Promise,
    file: str,
    change: tuple[str, str],
    killers: tuple[str, ...],
    also: Mapping[str, tuple[str, str]] | None = None,
    possible: Callable[[], bool] = lambda: True,
) -> Mutation:
    """Return a mutation of one place, and of one place in each of the files in ``also``."""
    edits = [Edit(file, *change), *(Edit(path, *other) for path, other in (also or {}).items())]
    return Mutation(name, breaks, tuple(edits), killers, possible=possible)
