"""Runs that the database may have purged, on the screen: out of the exported history."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import (
        PastAttemptOut,
        PastInstanceDetail,
        PastInstanceOut,
        WorkflowState,
    )

T = TypeVar("T")
_MOST_BYTES = 1 << 20  # of a log, in one request


def or_past(
    client: "ShoalClient", instance_id: int, ask: Callable[[], T]
) -> "tuple[T, None] | tuple[None, PastInstanceDetail]":
    """Return an answer about an instance, or the past run if the database has no such instance."""
    from shoal.client.errors import ApiProblem

    try:
        return ask(), None
    except ApiProblem as problem:
        if problem.kind != "not-found":
            raise
        try:
            return None, client.get_past_instance(instance_id)
        except ApiProblem:
            raise problem from None


def show_past(found: "PastInstanceDetail") -> None:
    """Print a past run with its attempts."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock, lasted, one_line, state_text
    from shoal.client.cli.terminal.output import out
    from shoal.client.cli.terminal.tables import TextTable

    now, console = datetime.now(UTC), out()
    head = Text.assemble(
        (f"{found['project']}/", "dim"),
        (found["workflow"], "bold"),
        f"  instance {found['id']}  version {found['version']}  ",
        state_text(found["state"]),
        f"  {lasted(found['started_at'], found['finished_at'], now)}",
    )
    console.print(head)
    facts = [f"ended {clock(found['finished_at'], now)}", f"by {found['trigger']}"]
    facts += [f"label {key}={value}" for key, value in found["labels"].items()]
    if not found["in_database"]:
        facts.append("purged: out of the exported history")
    console.print(Text("  ".join(facts), "dim"), soft_wrap=True)
    if found["reason"]:
        console.print(Text(found["reason"]))
    console.print()
    shown = TextTable(["id>", "task", "attempt>", "state", "started", "lasted>", "worker", "~"])
    for one in found["attempts"]:
        shown.add(
            str(one["id"]),
            one["task"],
            str(one["attempt"]),
            state_text(one["state"]),
            clock(one["started_at"], now) if one["started_at"] else "",
            lasted(one["started_at"], one["finished_at"], now),
            one["worker"] or "",
            Text(one_line(one["error_line"] or one["reason"] or ""), "dim"),
        )
    console.print(shown.table(console.width, ("worker", "started", "id")))
    if left_out := found["attempts_left_out"]:
        console.print(Text(f"{left_out:,} earlier attempts are not shown", "dim"))


def list_past(found: "list[PastInstanceOut]") -> None:
    """Print past runs."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock, lasted, state_text
    from shoal.client.cli.terminal.output import out, say
    from shoal.client.cli.terminal.tables import TextTable

    if not found:
        say("no such past runs; the exported history has what has ended some minutes ago")
        return
    now = datetime.now(UTC)
    shown = TextTable(["id>", "workflow", "state", "ended", "lasted>", "purged", "~"])
    for item in found:
        shown.add(
            str(item["id"]),
            Text.assemble(
                (f"{item['project']}/", "dim"), item["workflow"], (f" v{item['version']}", "dim")
            ),
            state_text(item["state"]),
            clock(item["finished_at"], now),
            lasted(item["started_at"], item["finished_at"], now),
            "" if item["in_database"] else "yes",
            Text(item["reason"] or "", "dim"),
        )
    out().print(shown.table(out().width, ("purged", "ended", "lasted")))


def some_past(
    client: "ShoalClient",
    limit: int,
    project: str | None,
    workflow: str | None,
    states: "list[WorkflowState]",
    days: tuple[datetime | None, datetime | None],
) -> "list[PastInstanceOut]":
    """Return the newest past runs that fulfil the filters; ``days``: of the end."""
    first, last = (one and one.date() for one in days)
    listed = client.pages(
        client.list_past_instances,
        project=project,
        workflow=workflow,
        state=states,
        from_=first,
        to=last,
    )
    return list(islice(listed, limit))


def past_attempt(run: "PastInstanceDetail", task: str) -> "PastAttemptOut":
    """Return the newest attempt of a task. Raises NotFound."""
    from shoal.client.cli.terminal.options import no_task

    attempts = {one["task"]: one for one in run["attempts"]}
    if task not in attempts:
        raise no_task(run["id"], task, attempts)
    return attempts[task]


@contextmanager
def past_log(
    client: "ShoalClient", run: int, attempt: int
) -> Iterator[tuple[int, Iterator[bytes]]]:
    """Give how many bytes a log in the archive has, and its text in UTF-8. Raises ApiProblem."""
    first = client.get_past_log(run, attempt, offset=0, limit=_MOST_BYTES)

    def chunks() -> Iterator[bytes]:
        part = first
        while part["data"]:
            yield part["data"].encode()
            if part["next_offset"] >= part["size"]:
                return
            part = client.get_past_log(run, attempt, offset=part["next_offset"], limit=_MOST_BYTES)

    yield first["size"], chunks()
