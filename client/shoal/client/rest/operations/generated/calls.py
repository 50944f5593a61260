"""What is sent for each operation.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from collections.abc import Sequence
from typing import Literal
from uuid import uuid4

from shoal.client.rest.operations.call import Call, StreamCall
from shoal.client.rest.operations.generated import types
from shoal.client.rest.paths import part


def acknowledge_alert(project: str, alert_id: int) -> Call[types.AlertOut]:
    """Acknowledge an alert.

    Says that you have it in hand: nobody is reminded any more. The first one to say so stays.
    """
    return Call(
        "POST", f"/projects/{part(str(project))}/alerts/{part(str(alert_id))}/acknowledgement"
    )


def archive_workflow(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[types.WorkflowOut]:
    """Archive a workflow.

    Nothing of it starts any more, by schedule, by request or as a sub-workflow.

    What runs goes on, and its history stays. Lists leave it out unless they are asked for it.
    """
    return Call(
        "POST",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/archive",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def begin(
    provider: str,
    *,
    return_to: str | None = None,
    port: int | None = None,
    state: str | None = None,
    challenge: str | None = None,
) -> Call[None]:
    """Begin to sign in at a provider.

    Leads a browser to the provider. A cookie makes sure that the same one comes back.
    """
    return Call(
        "GET",
        f"/login/oidc/{part(str(provider))}",
        query={"return_to": return_to, "port": port, "state": state, "challenge": challenge},
    )


def change_group(
    name: str,
    body: types.GroupChange,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.GroupOut]:
    """Change a group.

    Changes what it is for.
    """
    return Call(
        "PATCH",
        f"/groups/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def change_labels(instance_id: int, body: types.LabelChanges) -> Call[types.LabelsOut]:
    """Change the labels of an instance.

    Sets the labels that are named, and removes those whose value is null; others stay.

    So two who change different labels at the same time do not undo each other.
    """
    return Call("PATCH", f"/instances/{part(str(instance_id))}/labels", body=body)


def change_password(body: types.PasswordIn) -> Call[None]:
    """Change one's password.

    Needs the present one. All other sessions end, and all tokens unless they are kept.
    """
    return Call("PUT", "/me/password", body=body)


def change_user(
    name: str,
    body: types.UserChange,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.AccountOut]:
    """Change a user.

    Disabling ends all sessions and tokens of the user within a second.

    At least one administrator remains, and nobody disables the account that asks.
    """
    return Call(
        "PATCH",
        f"/users/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def compare(instance_id: int, other_instance_id: int) -> Call[types.Comparison]:
    """Compare two instances.

    How the other run differs from this one: parameters, labels, and each task.

    They may be of different versions, or of different workflows: tasks are matched by name.
    """
    return Call(
        "GET", f"/instances/{part(str(instance_id))}/comparison/{part(str(other_instance_id))}"
    )


def copy_workflow(project: str, name: str, body: types.CopyIn) -> Call[types.PublishOut]:
    """Make a copy of a workflow.

    Publishes, under the name in the path, what another workflow says, of any project.

    What it names without a project is meant in its own project: what the copy names has to be
    there. A workflow that has the name already is never changed (409).
    """
    return Call(
        "POST", f"/projects/{part(str(project))}/workflows/{part(str(name))}/copy", body=body
    )


def count_instances(
    *,
    project: str | None = None,
    workflow: str | None = None,
    state: Sequence[types.WorkflowState] | None = None,
    label: Sequence[str] | None = None,
    schedule_id: int | None = None,
    backfill_id: int | None = None,
    parent_id: int | None = None,
    rerun_of: int | None = None,
    version: int | None = None,
    priority: Sequence[Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]] | None = None,
    since: str | None = None,
    until: str | None = None,
    logical_since: str | None = None,
    logical_until: str | None = None,
    started_since: str | None = None,
    started_until: str | None = None,
    finished_since: str | None = None,
    finished_until: str | None = None,
    shortest: float | None = None,
    longest: float | None = None,
    text: str | None = None,
    late: bool | None = None,
) -> Call[types.InstanceCounts]:
    """Count workflow instances by state.

    How many instances fulfil all filters, in all and in each state.

    Nothing is counted beyond 1,000 (`is_more`). What no index serves is counted among the newest
    2,000 that the other filters leave.
    """
    return Call(
        "GET",
        "/instance-counts",
        query={
            "project": project,
            "workflow": workflow,
            "state": state,
            "label": label,
            "schedule_id": schedule_id,
            "backfill_id": backfill_id,
            "parent_id": parent_id,
            "rerun_of": rerun_of,
            "version": version,
            "priority": priority,
            "since": since,
            "until": until,
            "logical_since": logical_since,
            "logical_until": logical_until,
            "started_since": started_since,
            "started_until": started_until,
            "finished_since": finished_since,
            "finished_until": finished_until,
            "shortest": shortest,
            "longest": longest,
            "text": text,
            "late": late,
        },
    )


def count_task_instances(
    *,
    project: str | None = None,
    workflow: str | None = None,
    state: Sequence[types.TaskState] | None = None,
    label: Sequence[str] | None = None,
    worker: str | None = None,
    instance_id: int | None = None,
    task: str | None = None,
    type_: str | None = None,
    worker_group: str | None = None,
    environment: str | None = None,
    fingerprint: str | None = None,
    started_since: str | None = None,
    started_until: str | None = None,
    finished_since: str | None = None,
    finished_until: str | None = None,
    shortest: float | None = None,
    longest: float | None = None,
    text: str | None = None,
) -> Call[types.TaskCounts]:
    """Count task instances by state.

    How many attempts fulfil all filters, in all and in each state, among the newest 2,000.
    """
    return Call(
        "GET",
        "/task-instance-counts",
        query={
            "project": project,
            "workflow": workflow,
            "state": state,
            "label": label,
            "worker": worker,
            "instance_id": instance_id,
            "task": task,
            "type": type_,
            "worker_group": worker_group,
            "environment": environment,
            "fingerprint": fingerprint,
            "started_since": started_since,
            "started_until": started_until,
            "finished_since": finished_since,
            "finished_until": finished_until,
            "shortest": shortest,
            "longest": longest,
            "text": text,
        },
    )


def create_alert_silence(project: str, body: types.AlertSilenceIn) -> Call[types.AlertSilenceOut]:
    """Silence alerts.

    Nobody is told of what it covers. What is open still when it ends is told then.
    """
    return Call("POST", f"/projects/{part(str(project))}/alert-silences", body=body)


def create_backfill(
    body: types.BackfillIn, *, dry_run: bool | None = None, idempotency_key: str | None = None
) -> Call[types.BackfillAccepted]:
    """Run a workflow for many dates.

    Stores the request durably; a master plans and starts the backfill a moment later.

    The plan is made twice: here, to see what is wrong with it, and by the master, which counts. The
    master refuses it if the caller may not run all that it reaches then.
    """
    return Call(
        "POST",
        "/backfills",
        query={"dry_run": dry_run},
        headers={"idempotency-key": idempotency_key or str(uuid4())},
        body=body,
    )


def create_bulk(
    body: types.BulkIn,
    *,
    dry_run: bool | None = None,
    project: str | None = None,
    workflow: str | None = None,
    state: Sequence[types.WorkflowState] | None = None,
    label: Sequence[str] | None = None,
    schedule_id: int | None = None,
    backfill_id: int | None = None,
    parent_id: int | None = None,
    rerun_of: int | None = None,
    version: int | None = None,
    priority: Sequence[Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]] | None = None,
    since: str | None = None,
    until: str | None = None,
    logical_since: str | None = None,
    logical_until: str | None = None,
    started_since: str | None = None,
    started_until: str | None = None,
    finished_since: str | None = None,
    finished_until: str | None = None,
    shortest: float | None = None,
    longest: float | None = None,
    text: str | None = None,
    late: bool | None = None,
    idempotency_key: str | None = None,
) -> Call[types.BulkOut]:
    """Ask the same of many runs or tasks.

    Stores a command for each of the ids, 500 at most, or of what the filters mean.

    The filters are those of `GET /instances`; they need the `digest` of a preview (`dry_run`),
    and if they mean others by now nothing is done (412). Each is authorised by itself and has a
    result of its own: what one may not touch does not keep the others. The same idempotency key
    stores no second command for any of them.
    """
    return Call(
        "POST",
        "/bulk-commands",
        query={
            "dry_run": dry_run,
            "project": project,
            "workflow": workflow,
            "state": state,
            "label": label,
            "schedule_id": schedule_id,
            "backfill_id": backfill_id,
            "parent_id": parent_id,
            "rerun_of": rerun_of,
            "version": version,
            "priority": priority,
            "since": since,
            "until": until,
            "logical_since": logical_since,
            "logical_until": logical_until,
            "started_since": started_since,
            "started_until": started_until,
            "finished_since": finished_since,
            "finished_until": finished_until,
            "shortest": shortest,
            "longest": longest,
            "text": text,
            "late": late,
        },
        headers={"idempotency-key": idempotency_key or str(uuid4())},
        body=body,
    )


def create_bulk_schedules(
    body: types.BulkSchedulesIn,
    *,
    project: str | None = None,
    workflow: str | None = None,
    dry_run: bool | None = None,
) -> Call[types.BulkSchedulesOut]:
    """Pause or resume many schedules.

    Of each of the ids, 500 at most, or of all of a project or a workflow.

    Each is authorised by itself, and has a result of its own; one that is paused already, or is
    not, stays as it is.
    """
    return Call(
        "POST",
        "/bulk-schedules",
        query={"project": project, "workflow": workflow, "dry_run": dry_run},
        body=body,
    )


def create_command(
    body: types.CommandIn, *, idempotency_key: str | None = None
) -> Call[types.CommandOut]:
    """Start a workflow, or change what runs.

    Stores the command durably; a master carries it out a moment later.

    Read the outcome with `GET /commands/{id}?wait=30`.
    """
    return Call(
        "POST", "/commands", headers={"idempotency-key": idempotency_key or str(uuid4())}, body=body
    )


def create_group(body: types.GroupIn) -> Call[types.GroupOut]:
    """Make a group.

    A group without members; owners of projects give it roles.
    """
    return Call("POST", "/groups", body=body)


def create_prune(body: types.AuditPruneIn) -> Call[types.AuditPrunedOut]:
    """Remove old entries of the audit.

    Removes some thousand of the oldest entries; repeat it until `removed` is 0.

    An entry says up to where, so that the rest can still be verified. Entries of the last day stay.
    """
    return Call("POST", "/audit-prunes", body=body)


def create_purge(body: types.PurgeIn) -> Call[types.PurgeOut]:
    """Let history go.

    Stores the request durably; each master sees to its own partitions within seconds.

    What is not finished, or needed by something that is not, stays, and so do the newest
    instances of each workflow (`keep_newest_instances`), whatever is asked for.
    """
    return Call("POST", "/purges", body=body)


def create_service_account(project: str, body: types.ServiceAccountIn) -> Call[types.AccountOut]:
    """Make a service account.

    It has a role in this project from the start, and can be given some in others.
    """
    return Call("POST", f"/projects/{part(str(project))}/service-accounts", body=body)


def create_service_account_token(
    project: str, name: str, body: types.TokenIn
) -> Call[types.NewTokenOut]:
    """Make a token of a service account.

    It may do what the account may at that moment, within its own limits.
    """
    return Call(
        "POST",
        f"/projects/{part(str(project))}/service-accounts/{part(str(name))}/tokens",
        body=body,
    )


def create_sign_in_code() -> Call[types.OneTimeCodeOut]:
    """Make a one-time code.

    For a program that has the token of the data folder, on the machine of the API.

    A browser signs in with it once, within a minute: `shoal ui` does both.
    """
    return Call("POST", "/sign-in-codes")


def create_step(body: types.RotationIn) -> Call[types.RotationOut]:
    """Take a step of a rotation.

    Ask for steps until the phase is not `working`; what was done stays done.

    A new key encrypts only when every live master has it. No value is lost, whatever dies.
    """
    return Call("POST", "/secrets-keys/rotation", body=body)


def create_token(body: types.TokenIn) -> Call[types.NewTokenOut]:
    """Make a token.

    A token may do what its owner may at that moment, within its own limits.

    A token makes no tokens: sign in for that.
    """
    return Call("POST", "/me/tokens", body=body)


def create_user(body: types.UserIn) -> Call[types.NewUserOut]:
    """Make a user.

    The password is for the first sign-in alone: it has to be changed then.
    """
    return Call("POST", "/users", body=body)


def delete_alert_channel(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Delete a channel of alerts.

    Messages for it that wait fail.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/alert-channels/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_alert_receiver(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Delete a receiver of alerts.

    Rules that name it tell the others they name.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/alert-receivers/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_alert_rule(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Delete a rule of alerts.

    What it has found stays; nobody is told of it any more.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/alert-rules/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_calendar(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Delete a calendar.

    Refused while a schedule names it.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/calendars/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_concurrency_group(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Delete a concurrency group.

    Refused while the newest version of a workflow names it, or a task has or awaits a slot.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/concurrency-groups/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_data_source(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Delete a data source.

    Tasks that name it fail from now on, with the reason.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/data-sources/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_draft(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Discard a draft.

    Deletes the caller's draft; what is published stays.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/draft",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_environment(
    name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Delete an environment.

    Refused while the newest version of a workflow names it; the problem lists them.

    Tasks of older versions that are still run, and name it, fail from now on.
    """
    return Call(
        "DELETE",
        f"/environments/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_grant(
    project: str, taker: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Take a grant back.

    Nothing new is started; what runs goes on. Tasks that wait see no runs here any more.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/grants/{part(str(taker))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_group(
    name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Delete a group.

    Its members lose the roles that they had by it, within a second.
    """
    return Call(
        "DELETE",
        f"/groups/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_group_member(name: str, member: str) -> Call[None]:
    """Take somebody out of a group.

    It loses the roles that it had by the group alone, within a second.
    """
    return Call("DELETE", f"/groups/{part(str(name))}/members/{part(str(member))}")


def delete_identity(
    name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Let a user not sign in elsewhere any more.

    Its sessions and tokens end, and it leaves the groups that the issuer has put it into.

    `If-Match` takes the ETag of the user.
    """
    return Call(
        "DELETE",
        f"/users/{part(str(name))}/identity",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_member(
    project: str,
    kind: types.HolderKind,
    name: str,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[None]:
    """Take a role away.

    It counts within a second. Runs that were started go on.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/members/{part(str(kind))}/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_parameter(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Remove a project's parameter.

    Tasks that start from now on do not see it any more, but for those of earlier runs.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/parameters/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_resource(
    project: str, path: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[types.DeletedOut]:
    """Delete a resource.

    Deletes a file; with a slash at the end of the path, all files below the folder.

    A folder has no ETag: `If-Match: *` says that there is one.
    Runs that have started go on with it. Its versions can be downloaded by their numbers until
    masters remove them.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/resources/{part(str(path))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_resource_grant(
    project: str, taker: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Share nothing with another project any more.

    Tasks that start from now on get none of the files; those that run go on.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/resource-grants/{part(str(taker))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_restriction(
    what: types.Restricted,
    name: str,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[None]:
    """Open a worker group or an environment to all projects.

    Every project may use it then.
    """
    return Call(
        "DELETE",
        f"/restrictions/{part(str(what))}/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_secret(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Delete a secret.

    Tasks that refer to it fail from now on, with the reason.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/secrets/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_workflow(
    project: str,
    name: str,
    *,
    despite: Sequence[Literal["runs", "references", "backfills"]] | None = None,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[None]:
    """Delete a workflow.

    Deletes a workflow and its schedules. Its versions and its instances stay readable.

    Refused while an instance or a backfill has not ended, or another workflow names it, unless
    `despite` says so.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}",
        query={"despite": despite},
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def diff_versions(
    project: str, name: str, version: int, *, base: int | None = None
) -> Call[types.DiffOut]:
    """Compare two versions.

    What has to change in `base` to make it `version`: as a graph, by fields, and as text.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/versions/{part(str(version))}/diff",
        query={"base": base},
    )


def disable_service_account(project: str, name: str) -> Call[None]:
    """Disable a service account.

    All its tokens are worthless within a second. Its name is not given again.
    """
    return Call("DELETE", f"/projects/{part(str(project))}/service-accounts/{part(str(name))}")


def download_log(task_instance_id: int, *, range_: str | None = None) -> StreamCall:
    """Download a log.

    The bytes of a log, unchanged. What is written after the request came is left out.
    """
    return StreamCall(
        f"/task-instances/{part(str(task_instance_id))}/log/raw", all_headers={"Range": range_}
    )


def download_resource(project: str, path: str, *, version: int | None = None) -> StreamCall:
    """Download a resource.

    The content of a version of a file.
    """
    return StreamCall(
        f"/projects/{part(str(project))}/resource-contents/{part(str(path))}",
        query={"version": version},
    )


def end(
    provider: str,
    *,
    state: str | None = None,
    code: str | None = None,
    iss: str | None = None,
    error: str | None = None,
) -> StreamCall:
    """End a sign-in at a provider.

    Where providers lead back to. Begins a session, or gives a command line its code.
    """
    return StreamCall(
        f"/login/oidc/{part(str(provider))}/callback",
        query={"state": state, "code": code, "iss": iss, "error": error},
    )


def end_alert_silence(project: str, silence_id: int) -> Call[None]:
    """End a silence.

    What it has covered and is open still is told when its time would have been over.
    """
    return Call("DELETE", f"/projects/{part(str(project))}/alert-silences/{part(str(silence_id))}")


def end_session(session_id: int) -> Call[None]:
    """End a session of one's own.

    Signs a browser out, within a second.
    """
    return Call("DELETE", f"/me/sessions/{part(str(session_id))}")


def explain_instance(instance_id: int) -> Call[types.WhyOut]:
    """Explain what an instance waits for.

    What every layer says: overlap, partition, its open tasks and what each of them waits for.
    """
    return Call("GET", f"/instances/{part(str(instance_id))}/why")


def explain_task_instance(task_instance_id: int) -> Call[types.WhyOut]:
    """Explain what a task instance waits for.

    What every layer says about one attempt, or why it ended as it has.
    """
    return Call("GET", f"/task-instances/{part(str(task_instance_id))}/why")


def export_project(project: str, *, name: Sequence[str] | None = None) -> Call[types.ExportOut]:
    """Export workflows.

    The newest definitions as YAML, with the calendars and concurrency groups that they name.

    Secrets, passwords and runs are not part of it. Nothing says which project it was.
    """
    return Call("GET", f"/projects/{part(str(project))}/export", query={"name": name})


def follow_events(
    *,
    project: str | None = None,
    instance_id: int | None = None,
    kind: Sequence[types.EventKind] | None = None,
    about: Sequence[str] | None = None,
    coalesce: bool | None = None,
    last_event_id: str | None = None,
) -> StreamCall:
    """Follow what happens.

    What happens, as it is committed.

    `reset` says that some events are not kept any more: read the present state anew. Events are
    `instance.state`, `instance.overdue`, `instance.late`, `instance.labels`, `task.state`,
    `task.overdue`, `task.detail` (something about an attempt but its state), `backfill.state`,
    `schedule.state`, `alert.state`, `alert.delivery`, `alert.condition` (what a rule watches) and
    `workflow.published`, `workflow.renamed`, `workflow.archived`, `workflow.unarchived` and
    `workflow.deleted`. Overdue is beyond the timeout, late beyond the deadline.

    Every event comes once and in order. A client that reads too slowly is disconnected
    and comes back with Last-Event-ID, as browsers do by themselves. One stream can be about many
    things (`about`), some kinds of events (`kind`), and leave out what is outdated (`coalesce`).
    """
    return StreamCall(
        "/events",
        query={
            "project": project,
            "instance_id": instance_id,
            "kind": kind,
            "about": about,
            "coalesce": coalesce,
        },
        all_headers={"last-event-id": last_event_id},
    )


def follow_log(
    task_instance_id: int, *, offset: int | None = None, last_event_id: str | None = None
) -> StreamCall:
    """Follow a log.

    Events `log` with text as it is written, and `end` when the log is complete.

    Waits for an attempt that has not started. If the worker goes away, an event `problem` says
    so and the stream ends; come back with Last-Event-ID.
    """
    return StreamCall(
        f"/task-instances/{part(str(task_instance_id))}/log/follow",
        query={"offset": offset},
        all_headers={"last-event-id": last_event_id},
    )


def get_alert(project: str, alert_id: int) -> Call[types.AlertDetail]:
    """Show an alert.

    An alert, and who was told of it, or why not.
    """
    return Call("GET", f"/projects/{part(str(project))}/alerts/{part(str(alert_id))}")


def get_alert_channel(project: str, name: str) -> Call[types.AlertChannelOut]:
    """Show a channel of alerts.

    One channel.
    """
    return Call("GET", f"/projects/{part(str(project))}/alert-channels/{part(str(name))}")


def get_alert_delivery(project: str, delivery_id: int) -> Call[types.AlertDeliveryDetail]:
    """Show a message about alerts.

    A message with every attempt to send it.
    """
    return Call("GET", f"/projects/{part(str(project))}/alert-deliveries/{part(str(delivery_id))}")


def get_alert_receiver(project: str, name: str) -> Call[types.AlertReceiverOut]:
    """Show a receiver of alerts.

    One receiver.
    """
    return Call("GET", f"/projects/{part(str(project))}/alert-receivers/{part(str(name))}")


def get_alert_rule(project: str, name: str) -> Call[types.AlertRuleOut]:
    """Show a rule of alerts.

    One rule.
    """
    return Call("GET", f"/projects/{part(str(project))}/alert-rules/{part(str(name))}")


def get_backfill(backfill_id: int) -> Call[types.BackfillOut]:
    """Show a backfill.

    A backfill and how many of its dates are in which state.
    """
    return Call("GET", f"/backfills/{part(str(backfill_id))}")


def get_calendar(project: str, name: str) -> Call[types.CalendarOut]:
    """Show a calendar.

    One calendar with its days.
    """
    return Call("GET", f"/projects/{part(str(project))}/calendars/{part(str(name))}")


def get_cluster() -> Call[types.ClusterOut]:
    """Show the cluster.

    Live members, the owner and epoch of each partition, the group of masters, the work.
    """
    return Call("GET", "/cluster")


def get_command(command_id: int, *, wait: float | None = None) -> Call[types.CommandOut]:
    """Show a command.

    A command and its outcome. With `wait` it answers as soon as the state is not PENDING.
    """
    return Call("GET", f"/commands/{part(str(command_id))}", query={"wait": wait})


def get_concurrency_group(project: str, name: str) -> Call[types.ConcurrencyGroupDetail]:
    """Show a concurrency group.

    One group with the attempts that have its slots and those that wait for one.
    """
    return Call("GET", f"/projects/{part(str(project))}/concurrency-groups/{part(str(name))}")


def get_data_source(project: str, name: str) -> Call[types.DataSourceOut]:
    """Show a data source.

    One data source, without its password.
    """
    return Call("GET", f"/projects/{part(str(project))}/data-sources/{part(str(name))}")


def get_dependencies(project: str, name: str) -> Call[types.DependenciesOut]:
    """Show what a workflow names and what names it.

    The workflows that it runs or waits for, and those that run it or wait for it.

    By the newest definitions, in all projects that the caller sees; of others only how many.
    """
    return Call("GET", f"/projects/{part(str(project))}/workflows/{part(str(name))}/dependencies")


def get_dependency_graph(
    project: str, *, workflow: str | None = None, date: str | None = None, hops: int | None = None
) -> Call[types.DependencyGraphOut]:
    """Show which workflows wait for which on a day.

    Workflows with their runs, and what they wait for, by the newest definitions.

    A workflow waits for those that it runs (SUB_WORKFLOW, MAP), and for those whose runs its
    DEPENDENT tasks look for. What counts of a workflow are the runs that matter for the day: where
    one looks for `last1Days`, those of the day before. Around a project every workflow has its own
    day, and `edges` tell which runs of which day are waited for. 500 workflows at most;
    `is_cut` tells.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/dependency-graph",
        query={"workflow": workflow, "date": date, "hops": hops},
    )


def get_draft(project: str, name: str, *, editor: str | None = None) -> Call[types.DraftDetail]:
    """Show a draft.

    The draft of a workflow, of the caller or of somebody else.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/draft",
        query={"editor": editor},
    )


def get_environment(name: str) -> Call[types.EnvironmentDetail]:
    """Show an environment.

    One environment, and the workflows that name it, as far as the caller may see them.
    """
    return Call("GET", f"/environments/{part(str(name))}")


def get_grant(project: str, taker: str) -> Call[types.GrantOut]:
    """Show a grant.

    What the tasks of one other project may do with this one.
    """
    return Call("GET", f"/projects/{part(str(project))}/grants/{part(str(taker))}")


def get_group(name: str) -> Call[types.GroupOut]:
    """Show a group.

    One group with its members.
    """
    return Call("GET", f"/groups/{part(str(name))}")


def get_hanging(project: str, name: str) -> Call[types.HangingOut]:
    """Show what hangs on a workflow.

    Look at it before you delete or rename a workflow.
    """
    return Call("GET", f"/projects/{part(str(project))}/workflows/{part(str(name))}/hanging")


def get_head() -> Call[types.AuditHeadOut]:
    """Show the end of the audit's chain.

    Note it somewhere else: it proves later what the audit was.
    """
    return Call("GET", "/audit-head")


def get_health() -> Call[types.Health]:
    """State of the cluster.

    Says what works; the HTTP status is 200 in any case. Who may read the cluster is told why.
    """
    return Call("GET", "/health")


def get_insight_load(*, from_: str | None = None, to: str | None = None) -> Call[types.LoadOut]:
    """Show how full the cluster is.

    The hours of the week by worker group, the workers, and what the next days will need.
    """
    return Call("GET", "/insight/load", query={"from": from_, "to": to})


def get_insight_schedule_minutes() -> Call[types.ScheduleMinutesOut]:
    """Show hot minutes, and which schedules to move.

    In which minutes schedules fire, of the last 28 days, and moves that would relieve them.

    Moves are of schedules that the caller sees. The minutes, and how full they are, are of all
    projects, and so for who may see the cluster.
    """
    return Call("GET", "/insight/schedule-minutes")


def get_insight_summary(
    *,
    from_: str | None = None,
    to: str | None = None,
    project: str | None = None,
    workflow: str | None = None,
) -> Call[types.SummaryOut]:
    """Add up what has run.

    Runs and attempts of all workflows that the caller sees, by day and in all.

    Beside them those of the window before, which is as long. A day has what ended on it, UTC.
    """
    return Call(
        "GET",
        "/insight/summary",
        query={"from": from_, "to": to, "project": project, "workflow": workflow},
    )


def get_instance(
    instance_id: int, *, attempts: Literal["newest", "all"] | None = None
) -> Call[types.InstanceDetail]:
    """Show an instance.

    An instance with its tasks in the order of the definition.
    """
    return Call("GET", f"/instances/{part(str(instance_id))}", query={"attempts": attempts})


def get_instance_baseline(instance_id: int) -> Call[types.BaselineOut]:
    """Compare a run with what is usual for it.

    What the run and its tasks took and waited, beside earlier ones that started at such a time.

    Usual is what succeeded in the 60 days before the newest results: of the same weekday and hour
    if there were 20 or more, else of the same hour, else of the same weekday, else of any time.
    Tasks that made the run slower come first.
    """
    return Call("GET", f"/instances/{part(str(instance_id))}/baseline")


def get_keys() -> Call[types.KeysOut]:
    """Show the keys of the secrets.

    Their ids alone: which encrypts, what each has encrypted, and which masters have them.
    """
    return Call("GET", "/secrets-keys")


def get_layout(project: str, name: str) -> Call[types.LayoutOut]:
    """Show where tasks are.

    Places, groups and what is folded. Empty where nobody has arranged anything.
    """
    return Call("GET", f"/projects/{part(str(project))}/workflows/{part(str(name))}/layout")


def get_links(
    *, after: int | None = None, limit: int | None = None
) -> Call[Sequence[types.AuditLinkOut]]:
    """Export the audit.

    Entries with their hashes, the oldest first: enough to verify them without trusting us.
    """
    return Call("GET", "/audit-chain", query={"after": after, "limit": limit})


def get_liveness() -> Call[types.Live]:
    """Is the process there?.

    Answers as long as the process does; for supervisors. Needs no token.
    """
    return Call("GET", "/health/live")


def get_log(
    task_instance_id: int, *, offset: int | None = None, limit: int | None = None
) -> Call[types.LogOut]:
    """Read a range of a log.

    Text of a log. Offsets count bytes; a range never cuts a character of the next one.
    """
    return Call(
        "GET",
        f"/task-instances/{part(str(task_instance_id))}/log",
        query={"offset": offset, "limit": limit},
    )


def get_me() -> Call[types.MeOut]:
    """Show who one is.

    The caller, its roles, and what its token is limited to.
    """
    return Call("GET", "/me")


def get_member(project: str, kind: types.HolderKind, name: str) -> Call[types.MemberOut]:
    """Show a role.

    The role that somebody was given in a project, without those by groups.
    """
    return Call(
        "GET", f"/projects/{part(str(project))}/members/{part(str(kind))}/{part(str(name))}"
    )


def get_parameter(project: str, name: str) -> Call[types.ParameterOut]:
    """Show a project's parameter.

    One parameter of a project.
    """
    return Call("GET", f"/projects/{part(str(project))}/parameters/{part(str(name))}")


def get_past_instance(past_instance_id: int) -> Call[types.PastInstanceDetail]:
    """Show a past instance.

    A run that has ended, with its attempts and the plan of its version.
    """
    return Call("GET", f"/past-instances/{part(str(past_instance_id))}")


def get_past_log(
    past_instance_id: int, attempt_id: int, *, offset: int | None = None, limit: int | None = None
) -> Call[types.LogOut]:
    """Read a range of the log of a past attempt.

    Text of a log that the archive of logs still has: `keep_archived_logs_days`.
    """
    return Call(
        "GET",
        f"/past-instances/{part(str(past_instance_id))}/attempts/{part(str(attempt_id))}/log",
        query={"offset": offset, "limit": limit},
    )


def get_progress(instance_id: int) -> Call[Sequence[types.ProgressOut]]:
    """Show how far the running tasks are.

    What the work of running tasks says of itself, as far as it says anything.

    At most 1,000 tasks. A worker that does not answer within seconds is left out.
    """
    return Call("GET", f"/instances/{part(str(instance_id))}/progress")


def get_project(project: str) -> Call[types.ProjectOut]:
    """Show a project.

    One project.
    """
    return Call("GET", f"/projects/{part(str(project))}")


def get_purge(purge_id: int) -> Call[types.PurgeOut]:
    """Show a purge.

    How far the masters have come.
    """
    return Call("GET", f"/purges/{part(str(purge_id))}")


def get_readiness() -> Call[types.Health]:
    """Can requests be served?.

    As /health, with the HTTP status 503 while commands would be accepted in vain.

    That is while the database or ZooKeeper is away, while they are bound to different clusters, or
    while the database refuses the writes of the owners of all partitions.
    """
    return Call("GET", "/health/ready")


def get_resource(project: str, path: str, *, version: int | None = None) -> Call[types.ResourceOut]:
    """Show a resource.

    A version of a file, without its content; its ETag is that of the content.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/resources/{part(str(path))}",
        query={"version": version},
    )


def get_resource_grant(project: str, taker: str) -> Call[types.ResourceGrantOut]:
    """Show shared files.

    Which files of this project the tasks of one other project may use.
    """
    return Call("GET", f"/projects/{part(str(project))}/resource-grants/{part(str(taker))}")


def get_restriction(what: types.Restricted, name: str) -> Call[types.RestrictionOut]:
    """Show a restriction.

    Which projects may use it; 404: all may.
    """
    return Call("GET", f"/restrictions/{part(str(what))}/{part(str(name))}")


def get_secret(project: str, name: str) -> Call[types.SecretOut]:
    """Show a secret.

    Its age. The value is never shown.
    """
    return Call("GET", f"/projects/{part(str(project))}/secrets/{part(str(name))}")


def get_stores() -> Call[types.StoresOut]:
    """Show how large the history is.

    Rows and bytes of each table, as the database estimates them without counting.
    """
    return Call("GET", "/stores")


def get_task_instance(task_instance_id: int) -> Call[types.TaskDetail]:
    """Show a task instance.

    One attempt of one task, with its outputs.
    """
    return Call("GET", f"/task-instances/{part(str(task_instance_id))}")


def get_today(
    *,
    project: str | None = None,
    since: str | None = None,
    until: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.TodayOut]:
    """Show what happens around now.

    Runs that began in the window or are open, by workflow, with what fires until its end.

    Workflows with something late come first, then those with a run that has failed and that
    no newer one has made good, then those that wait. Late is a schedule that has not fired a
    minute after its time, and a run beyond its timeout or its deadline. Between two pages a
    workflow may move to another place.
    """
    return Call(
        "GET",
        "/today",
        query={
            "project": project,
            "since": since,
            "until": until,
            "limit": limit,
            "cursor": cursor,
        },
    )


def get_user(name: str) -> Call[types.AccountOut]:
    """Show a user.

    One user.
    """
    return Call("GET", f"/users/{part(str(name))}")


def get_version(project: str, name: str, version: int) -> Call[types.VersionDetail]:
    """Show a version.

    One version with its definition.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/versions/{part(str(version))}",
    )


def get_ways() -> Call[types.WayPage]:
    """List the ways of signing in.

    A password here, a directory's, and providers. No provider is asked.
    """
    return Call("GET", "/login")


def get_workflow(project: str, name: str) -> Call[types.WorkflowDetail]:
    """Show a workflow.

    A workflow with its newest definition.
    """
    return Call("GET", f"/projects/{part(str(project))}/workflows/{part(str(name))}")


def get_workflow_grid(
    project: str,
    name: str,
    *,
    sort: Literal["-logical_time", "-created_at"] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.GridOut]:
    """Show the runs of a workflow with the states of their tasks.

    Runs by tasks: one character for the newest attempt of each task, which `legend` explains.

    `tasks` are those of the newest version and then those that only the runs of this page have, so
    the place of a column belongs to its page. A page has 200,000 cells at most: of workflows with
    more than 2,000 tasks it has fewer runs. `next` leads to the runs before.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/grid",
        query={"sort": sort, "limit": limit, "cursor": cursor},
    )


def import_project(
    project: str, body: types.ImportIn, *, dry_run: bool | None = None
) -> Call[types.ImportOut]:
    """Import workflows.

    Stores all documents of a text, or none: workflows, calendars and concurrency groups.

    What has the same name is changed, workflows by a new version. With `dry_run` the answer has
    the reasons of what is refused; without, they are the errors of a 422.
    """
    return Call(
        "POST", f"/projects/{part(str(project))}/import", query={"dry_run": dry_run}, body=body
    )


def leave(provider: str) -> Call[None]:
    """End the session at a provider.

    Leads a browser to where the provider ends its own session. Sign out here first.
    """
    return Call("GET", f"/login/oidc/{part(str(provider))}/logout")


def list_alert_channel_kinds(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.AlertChannelKindPage]:
    """List kinds of channels.

    The kinds that are installed with the API, with the schema of their options.
    """
    return Call("GET", "/alert-channel-kinds", query={"limit": limit, "cursor": cursor})


def list_alert_channels(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.AlertChannelPage]:
    """List channels of alerts.

    The channels of a project by name.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/alert-channels",
        query={"limit": limit, "cursor": cursor},
    )


def list_alert_deliveries(
    project: str,
    *,
    state: Sequence[types.DeliveryState] | None = None,
    channel: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.AlertDeliveryPage]:
    """List messages about alerts.

    The messages of a project, newest first.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/alert-deliveries",
        query={"state": state, "channel": channel, "limit": limit, "cursor": cursor},
    )


def list_alert_explanations(
    project: str,
    *,
    instance_id: int | None = None,
    event_id: int | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.AlertExplanationPage]:
    """Explain why somebody was told, or nobody.

    What each rule of the project made of what has happened, the first event first.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/alert-explanations",
        query={"instance_id": instance_id, "event_id": event_id, "limit": limit, "cursor": cursor},
    )


def list_alert_receivers(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.AlertReceiverPage]:
    """List receivers of alerts.

    The receivers of a project by name.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/alert-receivers",
        query={"limit": limit, "cursor": cursor},
    )


def list_alert_rules(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.AlertRulePage]:
    """List rules of alerts.

    The rules of a project by name.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/alert-rules",
        query={"limit": limit, "cursor": cursor},
    )


def list_alert_silences(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.AlertSilencePage]:
    """List silences.

    The silences of a project that are not over, newest first.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/alert-silences",
        query={"limit": limit, "cursor": cursor},
    )


def list_alerts(
    project: str,
    *,
    state: Sequence[types.AlertState] | None = None,
    workflow: str | None = None,
    instance_id: int | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.AlertPage]:
    """List alerts.

    The alerts of a project, newest first.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/alerts",
        query={
            "state": state,
            "workflow": workflow,
            "instance_id": instance_id,
            "limit": limit,
            "cursor": cursor,
        },
    )


def list_audit(
    *,
    project: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    principal: str | None = None,
    action: str | None = None,
    outcome: types.Outcome | None = None,
    request: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> Call[types.AuditEntryPage]:
    """List who did what.

    Everything that was changed or refused, the newest first.
    """
    return Call(
        "GET",
        "/audit",
        query={
            "project": project,
            "limit": limit,
            "cursor": cursor,
            "principal": principal,
            "action": action,
            "outcome": outcome,
            "request": request,
            "since": since,
            "until": until,
        },
    )


def list_backfill_runs(
    backfill_id: int,
    *,
    state: Sequence[types.BackfillRunState] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.BackfillRunPage]:
    """List the dates of a backfill.

    The dates in the order in which they start.
    """
    return Call(
        "GET",
        f"/backfills/{part(str(backfill_id))}/runs",
        query={"state": state, "limit": limit, "cursor": cursor},
    )


def list_backfills(
    *,
    project: str | None = None,
    workflow: str | None = None,
    state: Sequence[types.BackfillState] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.BackfillPage]:
    """List backfills.

    Backfills, newest first, each with its progress.
    """
    return Call(
        "GET",
        "/backfills",
        query={
            "project": project,
            "workflow": workflow,
            "state": state,
            "limit": limit,
            "cursor": cursor,
        },
    )


def list_calendars(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.CalendarPage]:
    """List calendars.

    The calendars of a project by name.
    """
    return Call(
        "GET", f"/projects/{part(str(project))}/calendars", query={"limit": limit, "cursor": cursor}
    )


def list_concurrency_groups(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.ConcurrencyGroupPage]:
    """List concurrency groups.

    The concurrency groups of a project by name.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/concurrency-groups",
        query={"limit": limit, "cursor": cursor},
    )


def list_data_source_kinds(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.DataSourceKindPage]:
    """List kinds of data sources.

    What each kind takes, with the JSON Schema of its options.
    """
    return Call("GET", "/data-source-kinds", query={"limit": limit, "cursor": cursor})


def list_data_sources(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.DataSourcePage]:
    """List data sources.

    The data sources of a project by name, without those that others share with it.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/data-sources",
        query={"limit": limit, "cursor": cursor},
    )


def list_drafts(
    project: str, *, name: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[types.DraftPage]:
    """List drafts.

    Who works on what, by workflow and editor.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/drafts",
        query={"name": name, "limit": limit, "cursor": cursor},
    )


def list_environments(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.EnvironmentPage]:
    """List environments.

    Environments by name: those that a project which the caller may read may use.
    """
    return Call("GET", "/environments", query={"limit": limit, "cursor": cursor})


def list_grants(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.GrantPage]:
    """List grants.

    What the tasks of other projects may do with this one.
    """
    return Call(
        "GET", f"/projects/{part(str(project))}/grants", query={"limit": limit, "cursor": cursor}
    )


def list_groups(*, limit: int | None = None, cursor: str | None = None) -> Call[types.GroupPage]:
    """List groups.

    Groups by name, with their members.
    """
    return Call("GET", "/groups", query={"limit": limit, "cursor": cursor})


def list_history(
    *,
    kind: Sequence[types.HistoryKind] | None = None,
    project: str | None = None,
    workflow: str | None = None,
    instance_id: int | None = None,
    since: str | None = None,
    until: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.HappenedPage]:
    """List what has happened.

    Events, commands and takeovers, the latest first.

    A page looks through 5,000 of each, so it may be short or empty although more follow: the list
    is over when `next` is null. Takeovers of all partitions are for who may see the cluster. Events
    are kept for `keep_events_days`, commands for `keep_commands_days` and as long as their run, of
    takeovers the newest 10,000.
    """
    return Call(
        "GET",
        "/history",
        query={
            "kind": kind,
            "project": project,
            "workflow": workflow,
            "instance_id": instance_id,
            "since": since,
            "until": until,
            "limit": limit,
            "cursor": cursor,
        },
    )


def list_insight_costs(
    *,
    by: types.CostBy | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    from_: str | None = None,
    to: str | None = None,
    project: str | None = None,
    workflow: str | None = None,
) -> Call[types.CostsPage]:
    """Add up what was used.

    Processor time, memory and slots of the attempts that ended in the window; the most first.

    `label`: by each key and value of the labels of runs; a run counts for all that it has.
    """
    return Call(
        "GET",
        "/insight/costs",
        query={
            "by": by,
            "limit": limit,
            "cursor": cursor,
            "from": from_,
            "to": to,
            "project": project,
            "workflow": workflow,
        },
    )


def list_insight_failures(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    from_: str | None = None,
    to: str | None = None,
    project: str | None = None,
    workflow: str | None = None,
) -> Call[types.FailureGroupsPage]:
    """List what fails for the same cause.

    Attempts that failed in the window, by the fingerprint of their error line, most first.

    One group may have tasks of several workflows: of those that the caller sees.
    """
    return Call(
        "GET",
        "/insight/failures",
        query={
            "limit": limit,
            "cursor": cursor,
            "from": from_,
            "to": to,
            "project": project,
            "workflow": workflow,
        },
    )


def list_insight_rollup_rows(
    *,
    job: str | None = None,
    day: str | None = None,
    project: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.RollupRowsPage]:
    """List the rows of a result.

    The rows that one job has found about one day, workflow by workflow, of visible projects.

    Rows that are of no project come first, for who sees the cluster. A result that there is not is
    empty. Of a move of a schedule `place`, `highest_before` and `highest_after` tell of the
    schedules of all projects: they are null for who does not see the cluster.
    """
    return Call(
        "GET",
        "/insight/rollup-rows",
        query={"job": job, "day": day, "project": project, "limit": limit, "cursor": cursor},
    )


def list_insight_rollups(
    *, job: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[types.RollupPage]:
    """List which results of jobs there are.

    The newest day first. How many rows there are of all projects is for who sees the cluster.
    """
    return Call("GET", "/insight/rollups", query={"job": job, "limit": limit, "cursor": cursor})


def list_insight_tasks(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    from_: str | None = None,
    to: str | None = None,
    project: str | None = None,
    workflow: str | None = None,
) -> Call[types.TaskTrendsPage]:
    """List how the tasks of a workflow have changed.

    Tasks of one workflow, which `project` and `workflow` name, in the window and the one before.

    What was busy for longest in the window comes first. A workflow that the caller may not see has
    no tasks, as one that there is not.
    """
    return Call(
        "GET",
        "/insight/tasks",
        query={
            "limit": limit,
            "cursor": cursor,
            "from": from_,
            "to": to,
            "project": project,
            "workflow": workflow,
        },
    )


def list_insight_workflows(
    *,
    sort: types.WorkflowSort | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    from_: str | None = None,
    to: str | None = None,
    project: str | None = None,
    workflow: str | None = None,
) -> Call[types.WorkflowTrendsPage]:
    """List how workflows have changed.

    Workflows with runs that ended in the window or the one before, side by side.

    Counts, means and highest values are exact. Percentiles over several days are means of the
    days' percentiles, weighted by how many values each day had.
    """
    return Call(
        "GET",
        "/insight/workflows",
        query={
            "sort": sort,
            "limit": limit,
            "cursor": cursor,
            "from": from_,
            "to": to,
            "project": project,
            "workflow": workflow,
        },
    )


def list_instances(
    *,
    sort: Literal[
        "created_at",
        "-created_at",
        "logical_time",
        "-logical_time",
        "started_at",
        "-started_at",
        "finished_at",
        "-finished_at",
        "duration",
        "-duration",
        "priority",
        "-priority",
    ]
    | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    project: str | None = None,
    workflow: str | None = None,
    state: Sequence[types.WorkflowState] | None = None,
    label: Sequence[str] | None = None,
    schedule_id: int | None = None,
    backfill_id: int | None = None,
    parent_id: int | None = None,
    rerun_of: int | None = None,
    version: int | None = None,
    priority: Sequence[Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]] | None = None,
    since: str | None = None,
    until: str | None = None,
    logical_since: str | None = None,
    logical_until: str | None = None,
    started_since: str | None = None,
    started_until: str | None = None,
    finished_since: str | None = None,
    finished_until: str | None = None,
    shortest: float | None = None,
    longest: float | None = None,
    text: str | None = None,
    late: bool | None = None,
) -> Call[types.InstancePage]:
    """List workflow instances.

    Instances that fulfil all filters, newest first unless `sort` says otherwise.

    Project, workflow, state, time of creation, schedule, backfill, parent and the first label have
    indices. What else is asked for is looked for among what these leave, a part of the history for
    each page: a page may have fewer items than asked for, even none, although more follow. The list
    is over when `next` is null.
    """
    return Call(
        "GET",
        "/instances",
        query={
            "sort": sort,
            "limit": limit,
            "cursor": cursor,
            "project": project,
            "workflow": workflow,
            "state": state,
            "label": label,
            "schedule_id": schedule_id,
            "backfill_id": backfill_id,
            "parent_id": parent_id,
            "rerun_of": rerun_of,
            "version": version,
            "priority": priority,
            "since": since,
            "until": until,
            "logical_since": logical_since,
            "logical_until": logical_until,
            "started_since": started_since,
            "started_until": started_until,
            "finished_since": finished_since,
            "finished_until": finished_until,
            "shortest": shortest,
            "longest": longest,
            "text": text,
            "late": late,
        },
    )


def list_masters(*, limit: int | None = None, cursor: str | None = None) -> Call[types.MasterPage]:
    """List masters.

    Live masters with the partitions that each owns, by id.
    """
    return Call("GET", "/masters", query={"limit": limit, "cursor": cursor})


def list_members(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.MemberPage]:
    """List the members of a project.

    Users, service accounts and groups with their roles; administrators are not among them.
    """
    return Call(
        "GET", f"/projects/{part(str(project))}/members", query={"limit": limit, "cursor": cursor}
    )


def list_parameters(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.ParameterPage]:
    """List a project's parameters.

    The parameters of a project by name.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/parameters",
        query={"limit": limit, "cursor": cursor},
    )


def list_partitions(
    *, owner: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[types.PartitionPage]:
    """List partitions.

    Partitions with owner, epoch and what there is to do in each, by number.
    """
    return Call("GET", "/partitions", query={"owner": owner, "limit": limit, "cursor": cursor})


def list_past_instances(
    *,
    project: str | None = None,
    workflow: str | None = None,
    state: Sequence[types.WorkflowState] | None = None,
    from_: str | None = None,
    to: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.PastInstancePage]:
    """List past workflow instances.

    All runs that have ended and were exported, the newest end first.

    They stay here when the database has purged them; `in_database` says whether it has. The newest
    minutes may be missing. A page may have fewer items than asked for, even none, although more
    follow: the list is over when `next` is null.
    """
    return Call(
        "GET",
        "/past-instances",
        query={
            "project": project,
            "workflow": workflow,
            "state": state,
            "from": from_,
            "to": to,
            "limit": limit,
            "cursor": cursor,
        },
    )


def list_project_audit(
    project: str,
    *,
    limit: int | None = None,
    cursor: str | None = None,
    principal: str | None = None,
    action: str | None = None,
    outcome: types.Outcome | None = None,
    request: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> Call[types.AuditEntryPage]:
    """List who did what in a project.

    What was changed or refused in one project, the newest first.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/audit",
        query={
            "limit": limit,
            "cursor": cursor,
            "principal": principal,
            "action": action,
            "outcome": outcome,
            "request": request,
            "since": since,
            "until": until,
        },
    )


def list_projects(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.ProjectPage]:
    """List projects.

    Projects by name.
    """
    return Call("GET", "/projects", query={"limit": limit, "cursor": cursor})


def list_purges(*, limit: int | None = None, cursor: str | None = None) -> Call[types.PurgePage]:
    """List purges.

    Purges, newest first. They are forgotten after 30 days.
    """
    return Call("GET", "/purges", query={"limit": limit, "cursor": cursor})


def list_queue_entries(
    *, group: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[types.QueueEntryPage]:
    """List what waits for workers.

    Tasks of all projects, by worker group, in the order in which its workers claim them.

    Those of projects that the caller may not see count, and say no names. Near neighbours may
    overtake each other where several workers claim at once. A page may have fewer items than asked
    for although more follow: the list is over when `next` is null.
    """
    return Call("GET", "/queue-entries", query={"group": group, "limit": limit, "cursor": cursor})


def list_resource_grants(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.ResourceGrantPage]:
    """List shared files.

    Which files of this project the tasks of other projects may use.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/resource-grants",
        query={"limit": limit, "cursor": cursor},
    )


def list_resource_versions(
    project: str, path: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.ResourcePage]:
    """List the versions of a resource.

    The versions of a file, the newest first; those of a deleted file too, for a while.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/resource-versions/{part(str(path))}",
        query={"limit": limit, "cursor": cursor},
    )


def list_resources(
    project: str, *, folder: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[types.ResourcePage]:
    """List resources.

    The newest versions of a project's files, by path.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/resources",
        query={"folder": folder, "limit": limit, "cursor": cursor},
    )


def list_restrictions(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.RestrictionPage]:
    """List restrictions.

    Worker groups and environments that some projects alone may use.
    """
    return Call("GET", "/restrictions", query={"limit": limit, "cursor": cursor})


def list_schedules(
    *, project: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[types.SchedulePage]:
    """List all schedules.

    The schedules of all published workflows, oldest first.
    """
    return Call("GET", "/schedules", query={"project": project, "limit": limit, "cursor": cursor})


def list_secrets(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.SecretPage]:
    """List a project's secrets.

    Their names and ages. Values are never shown.
    """
    return Call(
        "GET", f"/projects/{part(str(project))}/secrets", query={"limit": limit, "cursor": cursor}
    )


def list_service_account_tokens(
    project: str, name: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.TokenPage]:
    """List a service account's tokens.

    Without their texts, the newest first.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/service-accounts/{part(str(name))}/tokens",
        query={"limit": limit, "cursor": cursor},
    )


def list_service_accounts(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.AccountPage]:
    """List service accounts.

    The service accounts of a project by name, disabled ones too.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/service-accounts",
        query={"limit": limit, "cursor": cursor},
    )


def list_sessions(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.SessionPage]:
    """List one's sessions.

    The browsers in which one is signed in, the newest first.
    """
    return Call("GET", "/me/sessions", query={"limit": limit, "cursor": cursor})


def list_takeovers(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.TakeoverPage]:
    """List takeovers.

    Changes of partitions' owners, newest first; the newest 10,000 are kept.
    """
    return Call("GET", "/takeovers", query={"limit": limit, "cursor": cursor})


def list_task_instances(
    *,
    sort: Literal[
        "created_at",
        "-created_at",
        "started_at",
        "-started_at",
        "finished_at",
        "-finished_at",
        "duration",
        "-duration",
    ]
    | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    project: str | None = None,
    workflow: str | None = None,
    state: Sequence[types.TaskState] | None = None,
    label: Sequence[str] | None = None,
    worker: str | None = None,
    instance_id: int | None = None,
    task: str | None = None,
    type_: str | None = None,
    worker_group: str | None = None,
    environment: str | None = None,
    fingerprint: str | None = None,
    started_since: str | None = None,
    started_until: str | None = None,
    finished_since: str | None = None,
    finished_until: str | None = None,
    shortest: float | None = None,
    longest: float | None = None,
    text: str | None = None,
) -> Call[types.TaskPage]:
    """List task instances.

    Attempts of all instances that fulfil all filters, newest first unless `sort` says otherwise.

    Looks that found nothing (RESCHEDULED) are listed only if they are asked for: of a long wait
    there may be thousands.

    State, worker and instance have indices; the rest is looked for among what these leave. A page
    may have fewer items than asked for, even none, although more follow: the list is over when
    `next` is null.
    """
    return Call(
        "GET",
        "/task-instances",
        query={
            "sort": sort,
            "limit": limit,
            "cursor": cursor,
            "project": project,
            "workflow": workflow,
            "state": state,
            "label": label,
            "worker": worker,
            "instance_id": instance_id,
            "task": task,
            "type": type_,
            "worker_group": worker_group,
            "environment": environment,
            "fingerprint": fingerprint,
            "started_since": started_since,
            "started_until": started_until,
            "finished_since": finished_since,
            "finished_until": finished_until,
            "shortest": shortest,
            "longest": longest,
            "text": text,
        },
    )


def list_task_types(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.TaskTypePage]:
    """List task types.

    The task types that this process can check definitions of, and their parameters.
    """
    return Call("GET", "/task-types", query={"limit": limit, "cursor": cursor})


def list_tokens(*, limit: int | None = None, cursor: str | None = None) -> Call[types.TokenPage]:
    """List one's tokens.

    One's tokens, without their texts, the newest first.
    """
    return Call("GET", "/me/tokens", query={"limit": limit, "cursor": cursor})


def list_user_tokens(
    name: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.TokenPage]:
    """List a user's tokens.

    Without their texts, the newest first.
    """
    return Call("GET", f"/users/{part(str(name))}/tokens", query={"limit": limit, "cursor": cursor})


def list_users(*, limit: int | None = None, cursor: str | None = None) -> Call[types.AccountPage]:
    """List users.

    All users by name, disabled ones too.
    """
    return Call("GET", "/users", query={"limit": limit, "cursor": cursor})


def list_versions(
    project: str, name: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.VersionPage]:
    """List versions.

    The history of a workflow, newest version first.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/versions",
        query={"limit": limit, "cursor": cursor},
    )


def list_worker_groups(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.WorkerGroupPage]:
    """List worker groups.

    Groups of workers, with what waits for each: also those that have no worker at all.
    """
    return Call("GET", "/worker-groups", query={"limit": limit, "cursor": cursor})


def list_workers(
    *,
    group: str | None = None,
    paused: bool | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.WorkerPage]:
    """List workers.

    Live workers with their slots and how many are taken, by id.
    """
    return Call(
        "GET",
        "/workers",
        query={"group": group, "paused": paused, "limit": limit, "cursor": cursor},
    )


def list_workflow_days(
    project: str,
    name: str,
    *,
    first: str | None = None,
    limit: int | None = None,
    timezone: str | None = None,
    cursor: str | None = None,
) -> Call[types.DayPage]:
    """List the days of a workflow's calendar.

    Day by day: how the newest run for each logical time went, and how many fires have no run.

    `limit` days from `first` on. One answer looks at 20,000 runs and 10,000 fire times at most;
    `next` leads to the days that are left of these.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/days",
        query={"first": first, "limit": limit, "timezone": timezone, "cursor": cursor},
    )


def list_workflow_schedules(
    project: str, name: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.SchedulePage]:
    """List the schedules of a workflow.

    The timetables of a workflow and when they fire next; they change with the definition.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/schedules",
        query={"limit": limit, "cursor": cursor},
    )


def list_workflows(
    *,
    project: str | None = None,
    search: str | None = None,
    label: Sequence[str] | None = None,
    owner: str | None = None,
    archived: Literal["false", "true", "any"] | None = None,
    state: Sequence[types.WorkflowState] | None = None,
    runs: int | None = None,
    sort: types.WorkflowOrder | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.WorkflowPage]:
    """List workflows.

    Workflows, each with its newest version, its last runs if asked for, and its next fire time.

    The last run is that for the latest logical time.
    """
    return Call(
        "GET",
        "/workflows",
        query={
            "project": project,
            "search": search,
            "label": label,
            "owner": owner,
            "archived": archived,
            "state": state,
            "runs": runs,
            "sort": sort,
            "limit": limit,
            "cursor": cursor,
        },
    )


def login(body: types.LoginIn) -> Call[None]:
    """Sign in.

    Begins a session: the answer sets a cookie that pages of this API alone are sent with.
    """
    return Call("POST", "/login", body=body)


def login_by_code(body: types.CodeIn) -> Call[None]:
    """Sign a command line in.

    Changes what the browser has brought to the command, once, into a session.
    """
    return Call("POST", "/login/code", body=body)


def login_by_directory(body: types.LoginIn) -> Call[None]:
    """Sign in with a directory's password.

    Begins a session of who has this name and this password in the directory.
    """
    return Call("POST", "/login/ldap", body=body)


def login_by_one_time_code(body: types.OneTimeCodeIn) -> Call[None]:
    """Sign in with a one-time code.

    Begins a session of the data folder's administrator. Pages of this API alone may ask.
    """
    return Call("POST", "/login/one-time", body=body)


def logout() -> Call[None]:
    """Sign out.

    Ends the session that asks. A token stays what it is: revoke it instead.
    """
    return Call("POST", "/logout")


def pause_schedule(schedule_id: int) -> Call[types.ScheduleOut]:
    """Pause a schedule.

    It does not fire until it is resumed, whatever is published meanwhile.
    """
    return Call("POST", f"/schedules/{part(str(schedule_id))}/pause")


def plan_workflow(project: str, name: str, body: types.DefinitionIn) -> Call[types.WorkflowPlanOut]:
    """Show what publishing would do.

    What would differ, when schedules would fire, what names the workflow, what runs now.

    It is published and taken back again: so what the answer says is what would happen.
    """
    return Call(
        "POST", f"/projects/{part(str(project))}/workflows/{part(str(name))}/plan", body=body
    )


def preview_alert(project: str, body: types.AlertPreviewIn) -> Call[types.AlertPreviewOut]:
    """Preview a message about an alert.

    What a rule would say, of an alert or of an example. Nothing is stored or sent.
    """
    return Call("POST", f"/projects/{part(str(project))}/alert-previews", body=body)


def preview_expression(body: types.PreviewIn) -> Call[types.PreviewOut]:
    """Show when a schedule would fire.

    As for a schedule that exists; nothing is stored.
    """
    return Call("POST", "/schedules/preview", body=body)


def preview_schedule(schedule_id: int, *, n: int | None = None) -> Call[types.PreviewOut]:
    """Show when a schedule will fire.

    The next fire times, also if it is switched off.

    Each with what a clock change does to it; of each day that is left out the first one.
    """
    return Call("GET", f"/schedules/{part(str(schedule_id))}/preview", query={"n": n})


def preview_start(body: types.StartPreviewIn) -> Call[types.StartPreview]:
    """Show what a start would run.

    The version, the parameters, the tasks and what each would get, for a date. Stores nothing.

    Of what is published, or of the `text` of a draft. Secrets are masked. What only a run can know
    is missing: outputs of tasks before, ids.
    """
    return Call("POST", "/start-previews", body=body)


def publish(
    project: str,
    name: str,
    body: types.WorkflowSpec,
    *,
    dry_run: bool | None = None,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.PublishOut]:
    """Publish a definition.

    Checks the whole definition and reports all problems at once.

    A new version is made only if something differs from the newest one. Everything happens in
    one transaction: version, schedules and event, or nothing.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}",
        query={"dry_run": dry_run},
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def publish_draft(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[types.PublishOut]:
    """Publish a draft.

    Makes the caller's draft the newest version, and deletes the draft.

    Refused (412) if somebody has published since the draft's `base_version`: `current` is what is
    published now, `changes` what was changed. Take it in, save the draft with the new
    `base_version`, and publish again.
    """
    return Call(
        "POST",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/draft/publish",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def put_alert_channel(
    project: str,
    name: str,
    body: types.AlertChannelIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.AlertChannelOut]:
    """Make or change a channel of alerts.

    Replaces all of it. Secrets that it names have to be there.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/alert-channels/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_alert_receiver(
    project: str,
    name: str,
    body: types.AlertReceiverIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.AlertReceiverOut]:
    """Make or change a receiver of alerts.

    Replaces all of it. Messages from now on go there.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/alert-receivers/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_alert_rule(
    project: str,
    name: str,
    body: types.AlertRuleIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.AlertRuleOut]:
    """Make or change a rule of alerts.

    Replaces all of it. It is about what happens from now on.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/alert-rules/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_calendar(
    project: str,
    name: str,
    body: types.CalendarIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.CalendarOut]:
    """Make or change a calendar.

    Replaces its days.

    A fire time that is planned already does not fire if its day is left out now.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/calendars/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_concurrency_group(
    project: str,
    name: str,
    body: types.ConcurrencyGroupIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.ConcurrencyGroupOut]:
    """Make or change a concurrency group.

    Sets the number of slots, at once.

    Fewer slots end nothing: as tasks end, no others start until few enough are left.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/concurrency-groups/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_data_source(
    project: str,
    name: str,
    body: types.DataSourceIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.DataSourceOut]:
    """Make or change a data source.

    Replaces everything but a password that the request leaves out.

    Tasks that start from now on use it as it is then. A password is kept for the same kind, host
    and port alone: 409 asks for it otherwise.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/data-sources/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_draft(
    project: str,
    name: str,
    body: types.DraftIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.DraftDetail]:
    """Save a draft.

    Keeps the caller's draft as it is typed, also if it is no definition yet.

    Nothing is checked, published or run. One that is there needs `If-Match`: it may be open in
    another window.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/draft",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_environment(
    name: str,
    body: types.EnvironmentIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.EnvironmentOut]:
    """Make or change an environment.

    Replaces everything. Tasks that start from now on have it as it is then.

    A worker group that is taken away fails the tasks that are for it, when they start.
    """
    return Call(
        "PUT",
        f"/environments/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_grant(
    project: str,
    taker: str,
    body: types.GrantIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.GrantOut]:
    """Let another project do something.

    All editors of that project can use it then: their workflows run what they may.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/grants/{part(str(taker))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_group_member(name: str, member: str) -> Call[types.GroupOut]:
    """Put somebody into a group.

    A user or a service account; it has the roles of the group within a second.
    """
    return Call("PUT", f"/groups/{part(str(name))}/members/{part(str(member))}")


def put_identity(
    name: str,
    body: types.IdentityIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.AccountOut]:
    """Let a user sign in elsewhere.

    Who is ``subject`` for ``issuer`` is this user. A password that was never used goes.

    `If-Match` takes the ETag of the user.
    """
    return Call(
        "PUT",
        f"/users/{part(str(name))}/identity",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_layout(
    project: str,
    name: str,
    body: types.LayoutIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.LayoutOut]:
    """Arrange tasks.

    Replaces the layout. Versions and drafts stay as they are, and nothing is run.

    It follows the workflow to another name and is copied with it; it goes when that is deleted.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/layout",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_member(
    project: str,
    kind: types.HolderKind,
    name: str,
    body: types.MemberIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.MemberOut]:
    """Give a role.

    It counts within a second, instead of the role that it had.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/members/{part(str(kind))}/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_parameter(
    project: str,
    name: str,
    body: types.ParameterIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.ParameterOut]:
    """Set a project's parameter.

    Runs that have started keep the value they started with.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/parameters/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_project(
    project: str,
    body: types.ProjectIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.ProjectOut]:
    """Create or change a project.

    Sets the description; the project is created if it is missing. Nothing else creates one.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_resource_grant(
    project: str,
    taker: str,
    body: types.ResourceGrantIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.ResourceGrantOut]:
    """Share files with another project.

    Replaces what is shared. Tasks of that project name a file as PROJECT:PATH.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/resource-grants/{part(str(taker))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_restriction(
    what: types.Restricted,
    name: str,
    body: types.RestrictionIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.RestrictionOut]:
    """Keep a worker group or an environment for some projects.

    Replaces the projects that may use it; an empty list: none may.

    What runs goes on. Tasks of other projects that start later than a second from now fail.
    """
    return Call(
        "PUT",
        f"/restrictions/{part(str(what))}/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_secret(
    project: str,
    name: str,
    body: types.SecretIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.SecretOut]:
    """Set a secret.

    Stores a value encrypted, or where the secret is kept; tasks that start from now on get it.

    Whether a reference can be read is not tried: `…/test` does that.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/secrets/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def rename_workflow(
    project: str,
    name: str,
    body: types.RenameIn,
    *,
    dry_run: bool | None = None,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.RenameOut]:
    """Rename a workflow.

    Publishes a version with the new name. History, schedules, drafts and open runs go with it.

    Refused while other workflows name it by the old one, unless `despite` says so; `dry_run` lists
    them. What it says of itself follows.
    """
    return Call(
        "POST",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/rename",
        query={"dry_run": dry_run},
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def rendered_attempt(task_instance_id: int) -> Call[types.RenderedOut]:
    """Show what an attempt gets.

    Params and parameters of one attempt, rendered from what its run holds now.

    Secrets are masked. If tasks before it have run again since, the outputs are theirs.
    """
    return Call("GET", f"/task-instances/{part(str(task_instance_id))}/rendered")


def request_backfill(
    backfill_id: int,
    request: Literal["pause", "resume", "cancel", "retry"],
    *,
    idempotency_key: str | None = None,
) -> Call[types.CommandOut]:
    """Pause, resume, cancel or retry a backfill.

    Pausing starts no other date, cancelling stops what runs as well.

    A retry starts what failed or was cancelled. Each is a command: read the outcome with
    `GET /commands/{id}?wait=30`.
    """
    return Call(
        "POST",
        f"/backfills/{part(str(backfill_id))}/{part(str(request))}",
        headers={"idempotency-key": idempotency_key or str(uuid4())},
    )


def reset_user_password(name: str) -> Call[types.NewUserOut]:
    """Give a user another password.

    Makes a random password, to be changed at the next sign-in; sessions and tokens end.
    """
    return Call("POST", f"/users/{part(str(name))}/password-reset")


def restore_version(
    project: str,
    name: str,
    version: int,
    *,
    dry_run: bool | None = None,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.PublishOut]:
    """Publish an older version again.

    Makes a new version that says what the older one says; nothing of the history is lost.

    What it names has to be there now: calendars, groups, environments, grants. It keeps the name
    that the workflow has now.
    """
    return Call(
        "POST",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/versions/{part(str(version))}/restore",
        query={"dry_run": dry_run},
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def resume_schedule(schedule_id: int) -> Call[types.ScheduleOut]:
    """Resume a schedule.

    It fires from now on, if its definition has it enabled; nothing is made up for.
    """
    return Call("POST", f"/schedules/{part(str(schedule_id))}/resume")


def revoke_service_account_token(project: str, name: str, token_id: int) -> Call[None]:
    """Revoke a token of a service account.

    Makes it worthless, within a second.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/service-accounts/{part(str(name))}/tokens/{part(str(token_id))}",
    )


def revoke_token(token_id: int) -> Call[None]:
    """Revoke a token of one's own.

    Makes it worthless, within a second.
    """
    return Call("DELETE", f"/me/tokens/{part(str(token_id))}")


def revoke_user_token(name: str, token_id: int) -> Call[None]:
    """Revoke a user's token.

    Makes it worthless, within a second.
    """
    return Call("DELETE", f"/users/{part(str(name))}/tokens/{part(str(token_id))}")


def search_log(
    task_instance_id: int,
    *,
    text: str | None = None,
    regex: str | None = None,
    ignore_case: bool | None = None,
    context: int | None = None,
    offset: int | None = None,
    limit: int | None = None,
) -> Call[types.LogHits]:
    """Search a log.

    Lines of the log of one attempt, with the byte offset of each.

    One request reads 16 MiB or 5 s at most; `next_offset` is where to go on, also of a log that
    still grows. It is null at the end of a finished one.
    """
    return Call(
        "GET",
        f"/task-instances/{part(str(task_instance_id))}/log/search",
        query={
            "text": text,
            "regex": regex,
            "ignore_case": ignore_case,
            "context": context,
            "offset": offset,
            "limit": limit,
        },
    )


def search_logs(
    instance_id: int,
    *,
    text: str | None = None,
    regex: str | None = None,
    ignore_case: bool | None = None,
    context: int | None = None,
    every: bool | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.InstanceHits]:
    """Search the logs of an instance.

    Lines of the logs of an instance's tasks, in the order of its definition.

    One request reads 16 MiB, 200 logs or 5 s at most; `next` continues. A log that cannot be read
    is named with the reason, and does not keep the others.
    """
    return Call(
        "GET",
        f"/instances/{part(str(instance_id))}/log-search",
        query={
            "text": text,
            "regex": regex,
            "ignore_case": ignore_case,
            "context": context,
            "every": every,
            "limit": limit,
            "cursor": cursor,
        },
    )


def test_alert_channel(
    project: str, name: str, body: types.AlertTestIn
) -> Call[types.AlertDeliveryOut]:
    """Send a test by a channel.

    Has an alert server send a message that says that it is a test.

    The list of deliveries tells what has come of it.
    """
    return Call(
        "POST", f"/projects/{part(str(project))}/alert-channels/{part(str(name))}/tests", body=body
    )


def test_data_source(project: str, name: str, body: types.ProbeIn) -> Call[types.ProbeOut]:
    """Try a data source.

    Has a worker sign in and ask which server it is. Takes up to 30 s; nothing is changed.
    """
    return Call(
        "POST", f"/projects/{part(str(project))}/data-sources/{part(str(name))}/test", body=body
    )


def test_secret(project: str, name: str) -> Call[types.SecretTestOut]:
    """Try a secret.

    Reads it as a task would get it now, from its store or by its key; shows it to nobody.
    """
    return Call("POST", f"/projects/{part(str(project))}/secrets/{part(str(name))}/test")


def timeline(instance_id: int, *, every: bool | None = None) -> Call[types.Timeline]:
    """Show when the tasks of an instance worked.

    A bar for each attempt, and the path of tasks that made the run last as long as it did.
    """
    return Call("GET", f"/instances/{part(str(instance_id))}/timeline", query={"every": every})


def unarchive_workflow(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[types.WorkflowOut]:
    """Take a workflow out of the archive.

    Its schedules fire again from now on; what they have left out is not made up for.
    """
    return Call(
        "POST",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/unarchive",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def upload_resource(
    project: str,
    path: str,
    content: bytes,
    *,
    expected_version: int | None = None,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.ResourceOut]:
    """Upload a resource.

    The body is the file, byte for byte.

    The same content as that of the newest version makes no new one, whatever the condition. Runs
    that start from now on use it; those that have started go on with what they began with.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/resource-contents/{part(str(path))}",
        query={"expected_version": expected_version},
        headers={"if-match": if_match, "if-none-match": if_none_match},
        content=content,
    )


def validate_workflow(
    project: str, name: str, body: types.DefinitionIn
) -> Call[types.ValidationOut]:
    """Check a definition.

    Says all that is wrong with a definition, each with its field and the line of the text.

    By itself, and for what it names: calendars, groups, environments, other projects. Nothing is
    stored.
    """
    return Call(
        "POST", f"/projects/{part(str(project))}/workflows/{part(str(name))}/validate", body=body
    )
