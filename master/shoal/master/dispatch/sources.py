"""The data sources that a task's params name, as its payload holds them.

The texts of a data source are rendered with the parameters of the task. One that another project
shares has none to render: the task could otherwise choose where that project's password goes.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from shoal.core.data_sources.references import Path, is_source_name, names_sources, sources_named
from shoal.core.data_sources.resolution import UnusableDataSource, rendered
from shoal.core.data_sources.spec import EVERY_PROJECT, StoredDataSource, texts_of
from shoal.core.errors import ShoalError, shortened
from shoal.core.hints import Hints
from shoal.core.macros.placeholders import SECRETS_PREFIX
from shoal.core.runs.run import Attempt, Run
from shoal.core.runs.scope import Levels, SecretUnusable, TaskScope
from shoal.master.dispatch.secrets import ProjectSecrets
from shoal.proto import shoal_pb2 as pb
from shoal.proto.data_sources import to_message
from shoal.runtime.plugins import load_task_type
from shoal.runtime.source_kinds import load_source_kind
from shoal.runtime.vault import Vault, password_of_source

_LONGEST_NAME = 210  # characters that are shown


class UnknownDataSource(ShoalError):
    """A task names a data source that its project does not have and is not given."""

    def __init__(self, wanted: "WantedSource", project: str, known: Iterable[str] = ()) -> None:
        self.project, self.name = project, wanted.name
        if wanted.home == project:
            hint = Hints().of(wanted.plain, known)
            command = f"shoal data-source set {wanted.plain} --project {project} --kind …"
            text = f"project {project} has no data source {wanted.plain}{hint or ';'}"
            super().__init__(f"params.{wanted.field}: {text} make it with `{command}`")
        else:
            command = f"shoal data-source set {wanted.plain} --project {wanted.home} --share-with"
            super().__init__(
                f"params.{wanted.field}: project {wanted.home} shares no data source "
                f"{wanted.plain} with {project}; who may change it does so with "
                f"`{command} {project}`"
            )


class WrongKind(ShoalError):
    """A task names a data source of a kind that it can do nothing with."""

    def __init__(self, wanted: "WantedSource", kind: str) -> None:
        self.name, self.kind = wanted.name, kind
        fit = ", ".join(sorted(wanted.kinds))
        super().__init__(
            f"params.{wanted.field}: the data source {wanted.name} is of the kind {kind}; what "
            f"fits here: {fit}; name another one, or make one with `shoal data-source set`"
        )


class BadSourceName(ShoalError):
    """What a field renders to is not a name of a data source."""

    def __init__(self, field: str, name: str) -> None:
        shown = shortened(repr(name), _LONGEST_NAME)
        super().__init__(
            f"params.{field}: {shown} is not a name of a data source; write NAME, or PROJECT/NAME "
            "of one that another project shares; `shoal data-source list` shows them"
        )


@dataclass(frozen=True)
class WantedSource:
    """A data source that one field of a task's params names."""

    field: str
    name: str  # as it is written
    home: str  # the project that has it
    kinds: frozenset[str]  # that fit; empty: all

    @property
    def plain(self) -> str:
        """The name within its project."""
        return self.name.rpartition("/")[2]

    @property
    def key(self) -> tuple[str, str]:
        """Project and name."""
        return self.home, self.plain


def wanted_sources(run: Run, attempt: Attempt, own: Levels) -> list[WantedSource]:
    """Return the data sources that a task's params name; of most types none.

    Raises InvalidMacro and BadSourceName.
    """
    spec = run.plan.tasks[attempt.task]
    model = load_task_type(spec.type).Params
    if not names_sources(model):
        return []
    scope = TaskScope(run, attempt, _refuse_secret, own)
    found = []
    for path, text, mark in sources_named(model, spec.params):
        field, name = _written(path), scope.render(text)
        if not name:  # an optional field
            continue
        if not is_source_name(name):
            raise BadSourceName(field, name)
        home = name.rpartition("/")[0] or run.plan.spec.project
        found.append(WantedSource(field, name, home, mark.kinds))
    return found


def _written(path: Path) -> str:
    first, *rest = path
    parts = (f"[{one}]" if isinstance(one, int) else f".{one}" for one in rest)
    return f"{first}{''.join(parts)}"


def _refuse_secret(name: str) -> NoReturn:
    raise SecretUnusable("", 0, f"the secret {name} cannot be the name of a data source")


def uses_secrets(source: StoredDataSource) -> bool:
    """Say whether a data source may refer to secrets of its project by itself."""
    texts = texts_of(source.spec).values()
    return source.password.secret is not None or any(SECRETS_PREFIX in text for text in texts)


class SourceMaker:
    """Makes the data sources of one attempt.

    ``secrets``: by project, where there are any to be used; those of the task's own project are
    among them if a parameter may refer to one.
    """

    def __init__(
        self,
        run: Run,
        attempt: Attempt,
        own: Levels,
        vault: Vault,
        secrets: Mapping[str, ProjectSecrets],
    ) -> None:
        self._project = run.plan.spec.project
        self._scope = TaskScope(run, attempt, secrets.get(self._project), own)
        self._vault, self._secrets = vault, secrets

    def make(
        self, wanted: Collection[WantedSource], stored: Mapping[tuple[str, str], StoredDataSource]
    ) -> dict[str, pb.DataSource]:
        """Return what the payload holds, by the name as it is written.

        All of ``wanted`` are in ``stored``. Raises WrongKind, UnknownSourceKind,
        UnusableDataSource, InvalidMacro, UnknownSecret, VaultError.
        """
        found = {}
        for each in wanted:
            source = stored[each.key]
            if each.kinds and source.spec.kind not in each.kinds:
                raise WrongKind(each, source.spec.kind)
            if each.name not in found:
                found[each.name] = self._made(source)
        return found

    def _made(self, source: StoredDataSource) -> pb.DataSource:
        is_ours = source.project == self._project
        whole = f"{source.project}/{source.name}"

        def refuse(text: str) -> NoReturn:
            raise UnusableDataSource(whole, text, "is not rendered for other projects")

        render = self._scope.render if is_ours else refuse
        password = self.password_of(source)
        return to_message(
            rendered(
                whole,
                source.spec,
                load_source_kind(source.spec.kind),
                render,
                password=password,
                version=source.version,
            )
        )

    def password_of(self, source: StoredDataSource) -> str:
        """Return the password of a data source. Raises UnknownSecret, VaultError."""
        password = source.password
        if password.secret is not None:
            return self._secrets[source.project].value(password.secret)
        if password.ciphertext is None:
            return ""
        bound = password_of_source(source.name)
        return self._vault.open(source.project, bound, password.ciphertext)


def is_shared_with(source: StoredDataSource, project: str) -> bool:
    """Say whether tasks of a project may use a data source."""
    shared = source.spec.shared_with
    return source.project == project or project in shared or EVERY_PROJECT in shared
