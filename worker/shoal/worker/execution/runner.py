"""Run granted attempts: folder, task type, process. How they end is in ``results.endings``."""

import asyncio
import json
import os
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog

from shoal.core.definition.parameters import RESERVED_PATTERN
from shoal.core.task_types import Exit, TaskType
from shoal.proto import shoal_pb2 as pb
from shoal.runtime import failpoints
from shoal.runtime.plugins import load_task_type
from shoal.worker.attempts.held import AttemptLaunch, AtWork, HeldAttempt, HeldAttempts
from shoal.worker.attempts.lifecycle import AttemptEvent, AttemptState
from shoal.worker.execution.context import AttemptContext, Prepared, prepare
from shoal.worker.home.disk_work import DiskWork
from shoal.worker.intake.held_claims import HeldClaims
from shoal.worker.intake.prefetch import PrefetchBuffer
from shoal.worker.intake.readiness import Readiness
from shoal.worker.logs.files import log_workflow
from shoal.worker.logs.lines import (
    append_line,
    environment_used,
    in_file_only,
    resources_used,
)
from shoal.worker.logs.secret_forms import forms
from shoal.worker.processes.environment import environment_of
from shoal.worker.processes.launcher import (
    Launched,
    Launcher,
    LauncherDied,
    LauncherUnavailable,
    LaunchFailed,
    NoRoomToStart,
)
from shoal.worker.processes.program import LaunchRequest, ProcessOutcome
from shoal.worker.results.cleanup import Cleaner
from shoal.worker.results.endings import Endings
from shoal.worker.results.facilities import Facilities
from shoal.worker.results.reporter import Reporter
from shoal.worker.results.requeue import Requeuer
from shoal.worker.results.results import (
    describe,
    record_context,
)
from shoal.worker.results.settlement import Settler
from shoal.worker.spark.access import SparkOfAttempt
from shoal.worker.spark.servers import SparkServers
from shoal.worker.supervisor.causes import INTERRUPTIONS, EndCause
from shoal.worker.supervisor.shim.child import NO_ROOM

log = structlog.get_logger()

CLAIM_GONE = "its claim is gone"


class Runner:
    """Takes attempts from the payload to the result. Belongs to the event loop."""

    def __init__(
        self,
        facilities: Facilities,
        attempts: HeldAttempts,
        launcher: Launcher,
        reporter: Reporter,
        tasks: asyncio.TaskGroup,
        readiness: Readiness,
        claims: HeldClaims,
        spark_servers: SparkServers,
    ) -> None:
        self._facilities, self._attempts, self._launcher = facilities, attempts, launcher
        self._reporter, self._tasks, self._readiness = reporter, tasks, readiness
        self._claims, self._spark_servers = claims, spark_servers
        self._disk_work = DiskWork()
        self._cleaner = Cleaner(facilities.spool, self._disk_work, tasks)
        self._requeuer = Requeuer(facilities.worker_id, attempts, reporter, tasks, claims)
        self._endings = Endings(
            facilities,
            attempts,
            reporter,
            readiness.starts,
            Settler(launcher),
            self._cleaner,
            self._requeuer,
            claims,
        )
        self._prefetched = PrefetchBuffer(attempts, self._begin, self._requeuer.requeue)
        reporter.subscribe(self._settled)
        readiness.subscribe(self._readiness_changed)
        spark_servers.subscribe(self.interrupt)

    # -- from outside -----------------------------------------------------------------------

    def start(self, attempt: HeldAttempt, payload: pb.Payload) -> None:
        """Run an attempt that a master has granted, as soon as there is a slot for it."""
        self._prefetched.add(attempt, payload)

    def start_no_more(self) -> None:
        """Requeue what waits for a slot, and what will be granted from now on."""
        self._prefetched.close()

    def refuse(self, attempt: HeldAttempt) -> None:
        """Forget an attempt that is not to run, and release its claim."""
        self._attempts.forget(attempt)
        self._claims.release([attempt])

    async def kill(self, attempt: HeldAttempt, reason: str) -> None:
        """End the attempt with the result KILLED. The first reason counts."""
        if attempt.over.is_set():
            return
        attempt.end.kill(reason)
        if attempt.granted and not self._prefetched.leave(attempt):
            await self._end_as_requested(attempt)
        else:  # nothing has begun: it is over already
            await self._endings.conclude_killed(attempt, attempt.end.killed or reason)

    async def interrupt_all(self, reason: str, grace_s: float) -> None:
        """End all live attempts without results; return when nothing of them is alive."""
        begun = [a for a in self._attempts.live if not self._interrupt_unbegun(a, reason)]
        for attempt in begun:
            await self._interrupt_process(attempt, reason, grace_s)
        await self._attempts.idle()

    def interrupt(self, attempt: HeldAttempt, reason: str) -> None:
        """End a live attempt without a result, soon."""
        if not self._interrupt_unbegun(attempt, reason):
            self._tasks.create_task(self._interrupt_process(attempt, reason, 0.0))

    def _interrupt_unbegun(self, attempt: HeldAttempt, reason: str) -> bool:
        """Have the attempt end without a result; return whether it has, as nothing has begun."""
        attempt.end.interrupt(reason)
        unbegun = not attempt.granted or self._prefetched.leave(attempt)
        if unbegun:
            self.refuse(attempt)
        return unbegun

    async def lose_session(self, reason: str) -> None:
        """End all that was claimed in a session that is lost; return when nothing is alive."""
        self._requeuer.give_up()
        await self.interrupt_all(reason, 0.0)

    def _readiness_changed(self) -> None:
        if self._readiness.shortage:
            self._prefetched.requeue_all()

    def _settled(self, report: pb.Report, committed: bool) -> None:
        """A master has answered ``report``."""
        attempt = self._attempts.get(report.attempt.task_instance_id)
        if report.kind == pb.RETURNED:
            self._requeuer.settled(report, committed)
            return
        if report.kind == pb.STARTED:
            if not committed and attempt is not None and not attempt.over.is_set():
                self._tasks.create_task(self._stop_superseded(attempt))
            return
        self._cleaner.remove_soon(report.attempt.task_instance_id, attempt)
        if attempt is not None and attempt.over.is_set():
            attempt.committed = committed
            self._attempts.forget(attempt)
            self._claims.release([attempt])

    # -- one attempt ------------------------------------------------------------------------

    def _begin(self, attempt: HeldAttempt, payload: pb.Payload) -> None:
        self._tasks.create_task(self._run(attempt, payload), name=f"attempt {attempt.id}")

    async def _run(self, attempt: HeldAttempt, payload: pb.Payload) -> None:
        code: int | None = None
        error: BaseException | None = None
        task = attempt.work = asyncio.current_task()
        try:
            code = (await self._work(attempt, payload)).code
        except asyncio.CancelledError:
            cancelled = attempt.state is AttemptState.CANCELLING
            if not cancelled and task is not None and task.cancelling():
                raise  # with the whole worker
            error = asyncio.CancelledError("cancelled")
        except (Exception, SystemExit) as raised:  # noqa: BLE001 - whatever a type raises fails its task
            error = raised
        finally:
            attempt.work = None
        if attempt.state is AttemptState.LAUNCHING:  # in an asyncio task of its type's own
            await self._launcher.answered(str(attempt.id))
        if attempt.launch.process is not None:
            await self._see_process_out(attempt, error)
        elif attempt.end.interrupted is not None or _is_interruption(error):
            await self._endings.abandon(attempt, attempt.end.interrupted or str(error))
        elif attempt.end.killed is not None:
            await self._endings.conclude_killed(attempt, attempt.end.killed)
        elif isinstance(error, NoRoomToStart):
            await self._endings.requeue(attempt, payload, error.why)
        elif error is not None:
            await self._endings.fail(attempt, payload, error)
        else:
            outcome = ProcessOutcome.SUCCEEDED if code == 0 else ProcessOutcome.FAILED
            await self._endings.conclude(
                attempt, outcome, EndCause.EXITED, f"exit code {code}", code
            )

    async def _work(self, attempt: HeldAttempt, payload: pb.Payload) -> Exit:
        """Let the task type do its work."""
        attempt.require_startable()
        facilities = self._facilities
        work_dir = facilities.work_root / str(attempt.id)
        passwords = [source.password for source in payload.data_sources.values()]
        attempt.launch = AttemptLaunch(
            workflow=log_workflow(payload.cluster, payload.project, payload.workflow),
            work_dir=work_dir,
            environment=environment_of(payload),
            masks=forms([*payload.secrets.values(), *filter(None, passwords)]),
            publications=payload.publish,
            largest_publication=payload.largest_publication,
        )
        with _needing_room(attempt, "make its folder"):
            prepared = await self._prepare(payload, work_dir)
        if lines := list(_notes(prepared)):
            with _needing_room(attempt, "begin its log"):
                await asyncio.to_thread(
                    append_line, self._facilities.log_path(payload), "\n".join(lines)
                )
        if payload.resources:
            with _needing_room(attempt, "stage its resources"):
                await self._stage(payload, work_dir)

        async def run(argv: Sequence[str], env: Mapping[str, str], stdin: str | None) -> Exit:
            request = LaunchRequest(
                id=str(attempt.id),
                argv=list(argv),
                env=env,
                cwd=prepared.work_dir,
                stdin=stdin,
                log_path=self._facilities.log_path(payload),
                record_path=self._facilities.spool.path(str(attempt.id)),
                timeout_s=payload.timeout_s or None,
                timeout_grace_s=self._facilities.kill_grace_s,
                output_path=prepared.output_file,
                refused_outputs=RESERVED_PATTERN,
                outputs_from_log=payload.outputs_from_log,
                journaled=not payload.publish,  # it is stored again when they are handed over
                masks=attempt.launch.masks,
            )
            about = record_context(
                facilities.worker_id, attempt, permanent, kind.not_yet_exit_code, repeats=repeats
            )
            request = replace(request, context=about)
            attempt.launch.at_work = AtWork(task_type, context, params, request, prepared.setup)
            return await self._run_process(attempt, request)

        kind = load_task_type(payload.type)
        if not issubclass(kind, TaskType):
            raise TypeError(f"tasks of type {payload.type} are run by masters, not by workers")
        task_type, permanent = kind(), sorted(kind.permanent_exit_codes)
        params = kind.Params.model_validate_json(payload.params_json)
        repeats = kind.repeats_after_loss(json.loads(payload.params_json))
        log_path = self._facilities.log_path(payload)
        spark = SparkOfAttempt(self._spark_servers, attempt, payload, log_path)
        context = AttemptContext(payload, prepared, run, spark, facilities.type_settings)
        return await task_type.run(context, params)

    def _prepare(self, payload: pb.Payload, work_dir: Path) -> Awaitable[Prepared]:
        facilities, disk_work = self._facilities, self._disk_work
        given = (facilities.worker_env, facilities.env_pass, facilities.group)
        call = partial(prepare, payload, work_dir, *given)
        # What an earlier hold left there may be any number of files: too long for the loop.
        return disk_work.run(call) if os.path.lexists(work_dir) else disk_work.run_short(call)

    async def _stage(self, payload: pb.Payload, work_dir: Path) -> None:
        line = resources_used([f"{one.path}@{one.version}" for one in payload.resources])
        await asyncio.to_thread(append_line, self._facilities.log_path(payload), line)
        await self._facilities.resources.stage(payload.resources, work_dir)

    async def _run_process(self, attempt: HeldAttempt, request: LaunchRequest) -> Exit:
        attempt.require_startable()
        launched = await self._launch(attempt, request)
        if not launched.is_over:  # else its end says when it began
            self._report_start(attempt)
        if attempt.over.is_set():  # its task type gave up meanwhile, and that was the result
            await self._interrupt_process(attempt, "its task type had given up", 0.0)
        elif attempt.end.reason is not None:  # since we handed it over
            await self._end_as_requested(attempt)
        record = await launched.wait()
        await self._endings.take_record(attempt, record)
        return Exit(record.exit_code, record.signal)

    async def _launch(self, attempt: HeldAttempt, request: LaunchRequest) -> Launched:
        """Have the process started. Raises LaunchFailed, LauncherDied or LauncherUnavailable."""
        if attempt.state in (AttemptState.LAUNCHING, AttemptState.RUNNING):
            raise LaunchFailed(request.id, "an attempt with this id is running already")
        attempt.apply(AttemptEvent.LAUNCH)
        attempt.launch.log_path = request.log_path
        self._facilities.log_limit.begin(attempt, request.log_path)
        try:
            failpoints.hit("launch.before_start")
            launched = await self._launcher.launch(
                request, require=lambda: self._require_claim(attempt)
            )
        except BaseException:
            attempt.apply(AttemptEvent.NOT_START)
            await self._facilities.log_limit.finish(attempt, 0)
            raise
        attempt.apply(AttemptEvent.START)
        attempt.launch.process = launched
        self._readiness.starts.succeeded()
        failpoints.hit("launch.after_start")
        return launched

    def _require_claim(self, attempt: HeldAttempt) -> None:
        """Raise AttemptEnded unless the attempt may start in the present session.

        What it was claimed in may be over, and the lease that of the next one.
        """
        if not self._claims.is_present(attempt.claim):
            attempt.end.interrupt(CLAIM_GONE)
        attempt.require_startable()

    def _report_start(self, attempt: HeldAttempt) -> None:
        assert attempt.launch.process is not None
        at = attempt.launch.process.started_at
        report = pb.Report(
            attempt=attempt.ref,
            kind=pb.STARTED,
            at=at,
            started_at=at,
            environment=attempt.launch.environment,
        )
        self._reporter.add(self._facilities.worker_id, report)
        log.info("task started", task_instance=attempt.id, pid=attempt.launch.process.pid)

    async def _see_process_out(self, attempt: HeldAttempt, error: BaseException | None) -> None:
        """Return when the process has ended and its result is taken, whatever its type did.

        ``error`` is what the task type raised.
        """
        if attempt.over.is_set():
            if error is not None:  # too late: the end of the process is the result
                log.warning("task type failed after its process", error=describe(error))
            return
        assert attempt.launch.process is not None
        if attempt.end.reason is None and not isinstance(error, LauncherDied):
            attempt.end.type_failure = "its task type left the process alone"
            attempt.end.type_failure += f": {describe(error)}" if error is not None else ""
            await self._kill_process(attempt, attempt.end.type_failure)
        try:
            record = await attempt.launch.process.wait()
        except LauncherDied as died:
            await self._endings.abandon(attempt, str(died))
        else:
            await self._endings.take_record(attempt, record)

    # -- ending it ---------------------------------------------------------------------------

    async def _stop_superseded(self, attempt: HeldAttempt) -> None:
        attempt.end.interrupt("the master has given this attempt up")
        await self._end_as_requested(attempt)

    async def _end_as_requested(self, attempt: HeldAttempt) -> None:
        if attempt.end.interrupted is not None:
            await self._interrupt_process(attempt, attempt.end.interrupted, 0.0)
        elif attempt.end.killed is not None:
            await self._kill_process(attempt, attempt.end.killed)

    async def _interrupt_process(self, attempt: HeldAttempt, reason: str, grace_s: float) -> None:
        """End the process; its end is not a result."""
        await self._end_process(attempt, EndCause.INTERRUPT, reason, grace_s)

    async def _kill_process(self, attempt: HeldAttempt, reason: str) -> None:
        """End the process; its end is a result."""
        await self._end_process(attempt, EndCause.KILL, reason, self._facilities.kill_grace_s)

    async def _end_process(
        self, attempt: HeldAttempt, cause: EndCause, reason: str, grace_s: float
    ) -> None:
        attempt.cancel_work()
        if attempt.launch.process is not None:
            await self._launcher.kill(str(attempt.id), reason, grace_s, cause)


def _notes(prepared: Prepared) -> Iterator[str]:
    """Yield the lines with which the log of an attempt begins."""
    if prepared.named.label:
        yield environment_used(prepared.named.label)
    yield from (in_file_only(*each) for each in prepared.in_file_only.items())


@contextmanager
def _needing_room(attempt: HeldAttempt, doing: str) -> Iterator[None]:
    """Raise NoRoomToStart where the machine has no descriptor, process, thread or memory left."""
    try:
        yield
    except MemoryError as error:
        raise NoRoomToStart(str(attempt.id), f"cannot {doing}: out of memory") from error
    except RuntimeError as error:  # Python has no error of its own for threads
        if "can't start new thread" not in str(error):
            raise
        raise NoRoomToStart(str(attempt.id), f"cannot {doing}: {error}") from error
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise NoRoomToStart(str(attempt.id), f"cannot {doing}: {error}") from error


def _is_interruption(error: BaseException | None) -> bool:
    """Whether the attempt did not start for a reason that is the worker's own."""
    match error:
        case LauncherDied() | LauncherUnavailable():
            return True
        case LaunchFailed():
            return error.cause in INTERRUPTIONS
        case _:
            return False
