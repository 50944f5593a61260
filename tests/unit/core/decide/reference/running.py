"""What follows from all that is known: sections 1 and 2 of docs/semantics.md at work."""

from tests.unit.core.decide.reference import nested
from tests.unit.core.decide.reference.choices import choice
from tests.unit.core.decide.reference.model import (
    BETWEEN_LOOKS,
    BY_MASTER,
    CHOOSERS,
    FAILURES,
    HELD,
    NESTED,
    OPEN,
    START,
    Instance,
    Try,
)

LOSSES = 10  # new attempts after losses; then the task has failed


class Running(Instance):
    """An instance that moves on by itself as far as it can."""

    def settle(self) -> None:
        """Do all that the rules say, until nothing changes any more."""
        if self.state not in ("RUNNING", "PAUSING", "STOPPING"):
            return
        while self.once():
            pass
        self.conclude()

    def once(self) -> bool:
        """Do the first step that changes anything. Returns whether there was one."""
        before = self.picture()
        for step in (self.end_and_skip, self.start_choosers, self.start_others):
            step()
            if self.picture() != before:
                return True
        return False

    def picture(self) -> list[tuple[object, ...]]:
        """What must have changed if anything has."""
        return [
            (len(tries), tries[-1].state, tries[-1].ready, tries[-1].told_to_die)
            for tries in self.tries.values()
        ]

    def end_and_skip(self) -> None:
        """What ends or is skipped without having started now."""
        self.look_at_timeouts()
        for task in self.tasks:
            last = self.last(task)
            if last.state in HELD:
                self.look_at_held(task)
            elif last.state not in OPEN:
                continue
            elif self.state == "STOPPING" or self.dies_held(task):
                self.drop(task, "KILLED")
            elif self.stays_out(task):
                self.drop(task, "SKIPPED", "FAILING")
            elif last.overdue and self.looks_later(task):
                self.finish(task, "FAIL")
            elif not last.ready:
                verdict = self.judge(task)
                if verdict not in (START, None):
                    self.drop(task, "SKIPPED", verdict)

    def look_at_held(self, task: str) -> None:
        """An attempt that runs: is it to die, to be held by a pause, to be continued?"""
        last, kind = self.last(task), self.kind(task)
        if self.must_end(task):
            last.told_to_die = True
            last.overdue &= self.state != "STOPPING" and not self.dies_fast(task)
            quiet = kind in NESTED and nested.all_quiet(last)
            if kind == "DEPENDENT" or quiet:
                done = quiet and nested.all_succeeded(last, self.items(task))
                self.finish(task, "SUCCEED" if done else "KILL")
        elif kind in NESTED:
            self.look_at_children(task)
        elif kind == "DEPENDENT" and self.state == "PAUSING":
            last.state = "PAUSED"

    def look_at_children(self, task: str) -> None:
        """A SUB_WORKFLOW or MAP task ends with the last of its instances."""
        last, items = self.last(task), self.items(task)
        if nested.all_ended(last, items):
            self.finish(task, "SUCCEED" if nested.all_succeeded(last, items) else "FAIL")
        elif self.state == "PAUSING" and not nested.working(last):
            last.state = "PAUSED"

    def drop(self, task: str, state: str, cause: str | None = None) -> None:
        """End an attempt that does not run, or not at the moment."""
        self.last(task).state, self.last(task).cause = state, cause

    def stays_out(self, task: str) -> bool:
        """Whether the failure strategy keeps a task from starting; one held has started."""
        return self.failing() and not self.exempt(task) and self.last(task).started is None

    def dies_held(self, task: str) -> bool:
        """Whether the strategy kills a task that a pause holds in the middle of its work.

        One that a resume has just released goes on, and dies as what runs does.
        """
        last = self.last(task)
        is_released = self.state not in ("PAUSING", "PAUSED") and last.state == "PAUSED"
        return last.started is not None and not is_released and self.dies_fast(task)

    def start_choosers(self) -> None:
        """Choices take no time: they are made before anything else starts, one after the other."""
        for task in sorted(self.may_start(CHOOSERS)):
            if self.last(task).state in OPEN and not self.stays_out(task):
                self.let_start(task)

    def start_others(self) -> None:
        """Let the other tasks start that may."""
        for task in self.may_start({*self.kinds.values()} - CHOOSERS):
            self.let_start(task)

    def may_start(self, kinds: set[str]) -> list[str]:
        """Tasks of these kinds that nobody works on, and that need not wait for others."""
        return [
            task
            for task in self.tasks
            if self.kind(task) in kinds and self.last(task).state in OPEN - HELD
            if self.last(task).ready or self.judge(task) == START
        ]

    def let_start(self, task: str) -> None:
        """Start it, or put it where it waits; unless another task has just not chosen it."""
        last = self.last(task)
        if not last.ready and self.judge(task) != START:
            return
        if not last.ready:
            self.make_ready(task)
        self.place(task)

    def make_ready(self, task: str) -> None:
        """From now on it may start, after its delay."""
        self.last(task).ready = self.last(task).fresh = True

    def place(self, task: str) -> None:
        """Put an attempt that may start where it belongs."""
        last = self.last(task)
        if self.state == "PAUSING":
            last.state, last.slot = "PAUSED", False
            return
        if last.fresh:
            last.due, last.fresh = after(self.now, self.tasks[task].get("delay", 0)), False
        if last.due > self.now:
            last.state = "UP_FOR_RETRY" if last.retry else "DELAYED"
        elif self.tasks[task].get("concurrency_group") and not last.slot:
            last.state = "BLOCKED"
        elif self.kind(task) in BY_MASTER:
            goes_on = last.started is not None
            last.state, last.started = "RUNNING", self.now
            self.work(task, goes_on=goes_on)
        else:
            last.state = "QUEUED"

    def conclude(self) -> None:
        """The instance's own state."""
        states = [self.last(task).state for task in self.tasks]
        if not any(state in OPEN for state in states):
            self.state = self.result()
        elif self.state == "PAUSING" and not any(state in HELD for state in states):
            self.state = "PAUSED"

    def result(self) -> str:
        """How an instance without open tasks ends."""
        cut_short = any(self.last(task).state in ("KILLED", "LOST") for task in self.tasks)
        if self.state == "STOPPING" and cut_short:
            return "STOPPED"
        failed = [
            task
            for task in self.tasks
            if self.last(task).state in FAILURES and not self.handled(task)
        ]
        return "FAILED" if failed and self.strategy != "ignore" else "SUCCEEDED"

    # -- section 2: failures, retries, losses ------------------------------------------------------

    def finish(self, task: str, signal: str, again: float = 0) -> None:
        """The newest attempt ends with SUCCEED, FAIL, KILL, LOSE or RESCHEDULE."""
        last = self.last(task)
        termination, failing = self.must_end(task), self.failing() and not self.exempt(task)
        given_up = (termination and not last.overdue) or self.state == "STOPPING" or failing
        if signal in ("LOSE", "RESCHEDULE") and termination:
            signal = "KILL"
        if signal == "KILL" and last.overdue:
            signal = "FAIL"
        last.state = {
            "SUCCEED": "SUCCEEDED",
            "KILL": "KILLED",
            "FAIL": "FAILED",
            "LOSE": "LOST",
            "RESCHEDULE": "RESCHEDULED",
        }[signal]
        if signal == "RESCHEDULE":
            self.look_again(task, again)
            return
        if given_up:
            return
        if signal == "FAIL" and last.failures < self.tasks[task].get("retries", 0):
            self.retry(task)
        elif signal == "LOSE" and last.losses < LOSSES:
            following = self.follow(last, task)
            following.losses += 1
            if last.looks:
                following.looks, following.since = last.looks, last.since
                following.warned = last.warned

    def follow(self, last: Try, task: str) -> Try:
        """Append the attempt that takes the place of one that ended; it need not be judged."""
        self.tries[task].append(
            Try(
                last.number + 1,
                ready=True,
                failures=last.failures,
                losses=last.losses,
                children=nested.kept(last),
            )
        )
        return self.last(task)

    def look_again(self, task: str, again: float) -> None:
        """What the task waits for is not there yet: another attempt looks later."""
        last = self.last(task)
        following = self.follow(last, task)
        following.looks, following.losses, following.warned = last.looks + 1, 0, last.warned
        following.since = last.since
        if not last.looks:
            following.since = self.now if last.started is None else last.started
        seconds = 60 if again <= 0 else min(max(again, 1), 7 * 24 * 3600)
        following.due = after(self.now, seconds)

    def retry(self, task: str) -> None:
        """Try once more after a failure, a little later."""
        last, spec = self.last(task), self.tasks[task]
        delay = spec.get("retry_delay", 0) * spec.get("retry_backoff", 1) ** last.failures
        delay = min(delay, spec.get("retry_max_delay", delay))
        following = self.follow(last, task)
        following.failures += 1
        following.retry, following.due = True, after(self.now, delay)
        following.exact = not (delay and spec.get("retry_jitter"))

    def look_at_workflow_timeout(self) -> None:
        """It counts from the first start, as long as no person has taken a hand."""
        timeout = self.definition.get("timeout")
        if timeout is None or self.started is None or self.warned or self.taken_in_hand:
            return
        if self.started + timeout <= self.now:
            self.warned = True
            if self.definition.get("timeout_action", "warn") in ("stop", "both"):
                self.state = "STOPPING"

    def look_at_timeouts(self) -> None:
        """The timeouts of the workflow and of its tasks."""
        self.look_at_workflow_timeout()
        for task, spec in self.tasks.items():
            last, timeout = self.last(task), spec.get("timeout")
            counts_from = last.started if last.state == "RUNNING" else None
            if last.looks and last.state in HELD | BETWEEN_LOOKS:
                counts_from = last.since
            if timeout is None or counts_from is None:
                continue
            if counts_from + timeout <= self.now:
                action = spec.get("timeout_action", "fail")
                last.warned |= action in ("warn", "both")
                its_own = self.kind(task) in BY_MASTER or last.looks > 0
                if its_own and not self.must_end(task):
                    last.overdue |= action in ("fail", "both")

    # -- section 3: tasks that the master runs -----------------------------------------------------

    def items(self, task: str) -> int:
        """How many instances a SUB_WORKFLOW or MAP task has."""
        return len(self.tasks[task]["params"]["items"]) if self.kind(task) == "MAP" else 1

    def parallel(self, task: str) -> int:
        """How many of them may work at a time."""
        return int(self.tasks[task]["params"].get("parallel", 1))

    def work(self, task: str, *, goes_on: bool) -> None:
        """Start the work on a task: choices are made at once, the others wait for news.

        ``goes_on``: it was begun before a pause.
        """
        last, kind = self.last(task), self.kind(task)
        if kind in NESTED:
            if goes_on:
                nested.go_on_after_pause(last)
            nested.set_out(last, self.items(task), self.parallel(task))
            self.look_at_children(task)
        elif kind in CHOOSERS:
            chosen = choice(self, task)
            last.chosen = None if chosen is None else frozenset(chosen)
            self.finish(task, "FAIL" if chosen is None else "SUCCEED")


def after(now: float, seconds: float) -> float:
    """That many seconds later, to the microsecond."""
    return round(now + seconds, 6)
