"""What a mutation is: a safety check that is taken out, and the tests that must notice."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.mutations.place import DoesNotApply, Edit


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

    def broken_if(
        self,
        name: str,
        edits: Edit | tuple[Edit, ...],
        *killers: str,
        possible: Callable[[], bool] = lambda: True,
    ) -> "Mutation":
        """Return a mutation that breaks this promise. ``killers`` must notice it."""
        several = edits if isinstance(edits, tuple) else (edits,)
        return Mutation(name, self, several, killers, possible=possible)


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

    @property
    def files(self) -> frozenset[str]:
        """The files of its tests, relative to the root of the tree."""
        return frozenset(killer.partition("::")[0] for killer in self.killers)

    def changed(self, root: Path) -> dict[Path, str]:
        """Return the changed files of the tree at ``root``. Raises DoesNotApply."""
        texts: dict[Path, str] = {}
        for edit in self.edits:
            try:
                file = edit.file(root)
                text = texts.get(file) or file.read_text()
                texts[file] = edit.changed(text, str(file.relative_to(root)))
            except DoesNotApply as error:
                raise DoesNotApply(
                    f"mutation {self.name!r} no longer applies: {error}; adapt it in "
                    "tests/mutations/catalogue"
                ) from None
        return texts

    def apply(self, root: Path) -> None:
        """Change the copy of the tree at ``root``. Raises DoesNotApply."""
        for file, text in self.changed(root).items():
            file.unlink()  # another copy may share the file
            file.write_text(text)
