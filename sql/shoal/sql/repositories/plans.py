"""The workflow versions that this process has read and parsed."""

import asyncio
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Text, and_, or_, select, type_coerce

from shoal.core.definition import long_json
from shoal.core.definition.model import TaskSpec, WorkflowSpec
from shoal.core.definition.selection import Selection
from shoal.core.runs.quarantine import reason_of
from shoal.core.runs.run import WorkflowPlan
from shoal.runtime.plugins import load_task_type
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.errors import NotFound, SqlError, UnusableDefinition
from shoal.sql.schema.tables import workflow, workflow_version
from shoal.sql.statements.rows import check_values

VersionKey = tuple[int, int]  # (workflow id, version)

# A plan of 1,000 tasks takes some 2 MB; the bound is on tasks, not on versions.
MAX_CACHED_TASKS = 100_000
_KEYS_PER_QUERY = 100
MOST_TASKS_AT_ONCE = 200  # of a definition that the event loop's own thread works with
_LONG_TEXT = 50_000  # characters of a definition that is read in another thread


@dataclass(frozen=True)
class StoredPlan:
    """A plan and where it belongs."""

    project_id: int
    plan: WorkflowPlan  # ``plan.tasks`` is in the order of the definition

    def selected(self, selection: Selection | None) -> frozenset[str] | None:
        """Return the tasks that a selection means; None: all."""
        if selection is None:
            return None
        return selection.of(self.plan.upstream, self.plan.downstream)


class PlanCache:
    """Versions never change, so what was parsed once stays right. Least recently used goes."""

    def __init__(self, max_tasks: int = MAX_CACHED_TASKS) -> None:
        self._max_tasks = max_tasks
        self._tasks = 0
        self._plans: OrderedDict[VersionKey, StoredPlan] = OrderedDict()

    async def get(
        self, connection: Connection, keys: Collection[VersionKey]
    ) -> dict[VersionKey, StoredPlan]:
        """Return the plans of all ``keys``.

        Raises NotFound naming a version that is missing, UnusableDefinition one that is unusable.
        """
        found, errors = await self.sound(connection, keys)
        for error in errors.values():
            raise error
        return found

    async def sound(
        self, connection: Connection, keys: Collection[VersionKey]
    ) -> tuple[dict[VersionKey, StoredPlan], dict[VersionKey, SqlError]]:
        """Return the plans that there are, and why each of the other ``keys`` has none.

        What cannot be read is not kept: it may be repaired.
        """
        found = {key: self._plans[key] for key in set(keys) if key in self._plans}
        errors: dict[VersionKey, SqlError] = {}
        for key in found:
            self._plans.move_to_end(key)
        if missing := set(keys) - found.keys():
            read, errors = await _read(connection, missing)
            for key, plan in read.items():
                found[key] = plan
                if key not in connection.unsettled_versions:
                    self._keep(key, plan)
        for key in keys:
            if key not in found and key not in errors:
                errors[key] = NotFound("workflow version", f"{key[1]} of workflow {key[0]}")
        return found, errors

    def _keep(self, key: VersionKey, plan: StoredPlan) -> None:
        if key in self._plans:
            return
        self._plans[key] = plan
        self._tasks += len(plan.plan.tasks)
        while self._tasks > self._max_tasks and len(self._plans) > 1:
            _, dropped = self._plans.popitem(last=False)
            self._tasks -= len(dropped.plan.tasks)


async def _read(
    connection: Connection, keys: Collection[VersionKey]
) -> tuple[dict[VersionKey, StoredPlan], dict[VersionKey, SqlError]]:
    v = workflow_version.c
    query = select(
        v.workflow_id, v.version, type_coerce(v.spec, Text).label("spec"), workflow.c.project_id
    ).join_from(workflow_version, workflow)
    found: dict[VersionKey, StoredPlan] = {}
    errors: dict[VersionKey, SqlError] = {}
    for chunk in batched(sorted(keys), _KEYS_PER_QUERY):
        these = or_(*(and_(v.workflow_id == i, v.version == n) for i, n in chunk))
        for row in await connection.rows(query.where(these)):
            key = (row.workflow_id, row.version)
            try:
                check_values(row)
                if len(row.spec) > _LONG_TEXT:
                    plan = await asyncio.to_thread(_plan, row.spec)
                else:
                    plan = _plan(row.spec)
            except Exception as error:  # noqa: BLE001 - of another version, or of another's hand
                errors[key] = UnusableDefinition(*key, reason_of(error))
            else:
                found[key] = StoredPlan(row.project_id, plan)
    return found, errors


def _plan(text: str) -> WorkflowPlan:
    """Return the plan of a stored definition. On any thread."""
    try:
        spec = long_json.read(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"column spec: {error}") from None
    made = WorkflowSpec.model_validate(spec)
    return WorkflowPlan.of(made, frozenset(task.name for task in made.tasks if not _repeats(task)))


def _repeats(task: TaskSpec) -> bool:
    """Say whether a task is run again by itself when its worker is lost."""
    try:
        return load_task_type(task.type).repeats_after_loss(task.params)
    except Exception:  # noqa: BLE001 - a plugin's mistake makes no plan unreadable
        return False
