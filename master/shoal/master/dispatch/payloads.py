"""What a worker is to run: the task's params, the parameters it sees, its secrets.

Params are rendered with the parameters, except fields marked ``Verbatim``: those are programs in
another language, so parameter values are never pasted into them. Date expressions and
``${system.…}`` are rendered everywhere.

A task gets the secrets that its rendered texts use (``${secret.NAME}``), and those whose variable
``SHOAL_SECRET_NAME`` its programs name. Their values exist in the payload alone: nothing rendered
here is stored, logged or made an event.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from shoal.core.definition.model import TaskSpec, TimeoutAction
from shoal.core.errors import ShoalError
from shoal.core.macros.placeholders import SECRETS_PREFIX
from shoal.core.runs.run import Attempt, Run
from shoal.core.runs.scope import Levels, Scope, levels, undeclared
from shoal.core.task_types import Verbatim, fields_marked
from shoal.proto import shoal_pb2 as pb
from shoal.runtime.plugins import load_task_type
from shoal.runtime.vault import Vault
from shoal.sql.repositories.definitions.secrets import StoredSecret

_WORD = re.compile(r"\b[A-Za-z_][A-Za-z0-9_]*")
_VARIABLE = re.compile(r"\bSHOAL_SECRET_([A-Za-z_][A-Za-z0-9_]{0,99})\b")


class UnknownSecret(ShoalError):
    """A task refers to a secret that its project does not have."""

    def __init__(self, project: str, name: str) -> None:
        self.project, self.name = project, name
        super().__init__(
            f"project {project} has no secret {name}; set it with "
            f"`shoal secret set {name} --project {project}`"
        )


class ProjectSecrets:
    """The secrets of one project, decrypted one by one as they are asked for.

    Those that are kept in other stores are not read here: they are in ``missing`` when they have
    been asked for, and ``resolved`` has to bring them before somebody uses what was rendered.
    """

    def __init__(self, vault: Vault, project: str, stored: Mapping[str, StoredSecret]) -> None:
        self._vault, self.project, self._stored = vault, project, stored
        self._resolved: dict[str, str] = {}
        self.missing: dict[str, str] = {}  # references, by the names of secrets
        self.used: dict[str, str] = {}

    @property
    def has_references(self) -> bool:
        """Whether any secret is kept elsewhere."""
        return any(one.reference is not None for one in self._stored.values())

    def resolved(self, name: str, value: str) -> None:
        """Take the value of one that was ``missing``; what was made without it counts no more."""
        self._resolved[name] = value
        self.missing.pop(name, None)
        self.used.clear()

    def __call__(self, name: str) -> str:
        """Return the value of a secret. Raises UnknownSecret, VaultError. May read a file."""
        if name not in self.used:
            self.used[name] = self.value(name)
        return self.used[name]

    def value(self, name: str) -> str:
        """Do the same for what the task itself is not given: the password of a data source."""
        if name not in self._stored:
            raise UnknownSecret(self.project, name)
        stored = self._stored[name]
        if stored.reference is None:
            return self._vault.open(self.project, name, stored.ciphertext)
        if name not in self._resolved:
            self.missing[name] = stored.reference
        return self._resolved.get(name, "")


def may_use_secrets(spec: TaskSpec, own: Levels) -> bool:
    """Say whether a task that sees ``own`` may refer to a secret; most do not."""
    if any(_VARIABLE.search(text) for text in _programs(spec)):
        return True
    values = (value for level in own for value in level.values())
    return any(SECRETS_PREFIX in text for text in (*_texts(spec.params), *values))


def payload(
    run: Run,
    attempt: Attempt,
    epoch: int,
    secrets: ProjectSecrets | None = None,
    own: Levels | None = None,
    sources: Mapping[str, pb.DataSource] | None = None,
    cluster: str = "",
) -> pb.Payload:
    """Return the payload of a stored attempt. ``own``: see Scope. ``cluster``: the uid.

    Raises InvalidMacro if it cannot be rendered, UnknownSecret, VaultError.
    """
    assert attempt.id is not None
    spec = run.plan.tasks[attempt.task]
    own = levels(run, attempt.task) if own is None else own
    scope = Scope(run, attempt, secrets, own)
    params = scope.params(load_task_type(spec.type).Params)
    parameters = scope.parameters()
    if secrets is not None:
        for program in _programs(spec):
            for name in _VARIABLE.findall(program):
                secrets(name)
    warns_only = spec.timeout_action is TimeoutAction.WARN  # which the master sees to
    return pb.Payload(
        workflow_instance_id=run.id,
        task_instance_id=attempt.id,
        partition=run.partition,
        project=run.plan.spec.project,
        workflow=run.plan.spec.name,
        version=run.version,
        task=attempt.task,
        type=spec.type,
        attempt=attempt.number,
        params_json=json.dumps(params, ensure_ascii=False),
        parameters=parameters,
        timeout_s=0.0 if warns_only else spec.timeout or 0.0,
        logical_time=run.logical_time.timestamp(),
        epoch=epoch,
        timezone=run.timezone,
        secrets=secrets.used if secrets is not None else {},
        queued_at=attempt.queued_at.timestamp() if attempt.queued_at else 0.0,
        undeclared=_unnamed(spec, own),
        outputs_from_log=spec.outputs_from_log,
        tag=tag(run, attempt.task, cluster),
        cluster=cluster,
        data_sources=sources,
        looks=attempt.looks,
        waiting_since=attempt.waiting_since.timestamp() if attempt.waiting_since else 0.0,
    )


def tag(run: Run, task: str, cluster: str = "") -> str:
    """Return what marks the work of all attempts of a task in one run; see TaskContext.

    ``cluster``: a name that no other cluster has.
    """
    digest = hashlib.sha256(json.dumps([cluster, run.id, task]).encode()).hexdigest()
    return f"shoal-{digest[:24]}"


def _unnamed(spec: TaskSpec, own: Levels) -> list[str]:
    """Return the parameters that no definition declares and no program of the task names.

    Variables of such names would let a task upstream, or text that it passes on, steer whatever
    programs this one starts: ``GIT_SSH_COMMAND``, ``http_proxy``, ``OPENSSL_CONF`` …
    """
    names = undeclared(own)
    for program in _programs(spec) if names else ():
        names -= set(_WORD.findall(program))
    return sorted(names)


def _programs(spec: TaskSpec) -> Iterator[str]:
    for name in fields_marked(load_task_type(spec.type).Params, Verbatim):
        yield from _texts(spec.params.get(name))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
