"""The events of an instance as the reference understands them: reports and requests.

Each method is one event: it changes what is known, and ``settle`` does the rest.
"""

from collections.abc import Collection, Iterable

from tests.unit.core.decide.reference import nested
from tests.unit.core.decide.reference.model import FAILURES, HELD, NESTED, OPEN, Key, Try
from tests.unit.core.decide.reference.running import Running


class Reference(Running):
    """The reference with a method for every event. Requests return whether they are allowed."""

    # -- reports -------------------------------------------------------------------------------

    def begin(self, without_slot: Collection[str] = ()) -> None:
        """A master holds the instance now; queued tasks may have lost their slots meanwhile."""
        for task in without_slot:
            self.last(task).slot = False
            self.place(task)
        if self.state == "QUEUED" and self.admitted:
            self.state, self.started = "RUNNING", self.now
        self.settle()

    def admit(self) -> None:
        """It need not wait for other instances any more."""
        if not self.admitted:
            self.admitted = True
            self.begin()

    def advance_to(self, now: float) -> None:
        """Time has gone by."""
        self.now = now
        self.settle()

    def child(self, key: Key, item: int, state: str, number: int, refused: bool) -> None:
        """An instance that works for a task tells how it is."""
        attempt = self.current(key, *OPEN)
        if attempt is None or attempt.started is None or self.kind(key[0]) not in NESTED:
            return
        if item in attempt.children:
            nested.hear(attempt.children[item], state, number, refused)
            self.settle()

    def quarantine(self, key: Key, item: int, is_aside: bool, is_known: bool) -> None:
        """An instance that works for a task is quarantined, or tried again."""
        attempt = self.current(key, *OPEN)
        if attempt is None or attempt.started is None or self.kind(key[0]) not in NESTED:
            return
        if item in attempt.children:
            attempt.children[item].aside = is_aside
            attempt.children[item].known |= is_known
            self.settle()

    def asked(self, key: Key, item: int, request: str, number: int) -> None:
        """An attempt has asked one of its instances for something, or started it."""
        attempt = self.last(key[0])
        if attempt.number == key[1] and (request == "START" or item in attempt.children):
            nested.ask(attempt, item, request, number)

    def current(self, key: Key, *states: str) -> Try | None:
        """The attempt if it is the newest of its task and in one of these states."""
        last = self.last(key[0])
        return last if last.number == key[1] and last.state in states else None

    def grant(self, key: Key) -> None:
        """The attempt has got a slot of its concurrency group."""
        if attempt := self.current(key, "BLOCKED"):
            attempt.slot = True
            self.settle()

    def claim(self, key: Key, worker: str) -> None:
        """A worker has taken it out of the queue."""
        if attempt := self.current(key, "QUEUED"):
            attempt.state, attempt.worker = "CLAIMED", worker
            self.settle()

    def requeue(self, key: Key, worker: str, queued: int) -> None:
        """A worker has not begun with what was queued for the ``queued``-th time."""
        attempt = self.current(key, "CLAIMED")
        if attempt and (attempt.worker, attempt.returns) == (worker, queued):
            if self.must_end(key[0]):
                self.finish(key[0], "KILL")
            else:
                attempt.state, attempt.worker = "QUEUED", None
                attempt.returns += 1
            self.settle()

    def start(self, key: Key, worker: str) -> None:
        """Its process runs."""
        attempt = self.current(key, "CLAIMED")
        if attempt and attempt.worker == worker:
            attempt.state, attempt.started = "RUNNING", self.now
            self.settle()

    def end(self, key: Key, signal: str, worker: str | None, again: float = 0) -> None:
        """A worker reports the end; ``worker`` None: it is given up with its worker.

        ``again``: seconds until the next look, as the worker says.
        """
        attempt = self.current(key, *HELD)
        if attempt and attempt.worker is not None and worker in (None, attempt.worker):
            self.finish(key[0], signal, again)
            self.settle()

    def depend(self, key: Key, verdict: str) -> None:
        """Somebody looked for the runs of a DEPENDENT task."""
        if self.kind(key[0]) == "DEPENDENT" and (attempt := self.current(key, "RUNNING")):
            if verdict == "SKIP":
                attempt.state, attempt.cause = "SKIPPED", "BRANCH"
            elif verdict != "WAIT":
                self.finish(key[0], "SUCCEED" if verdict == "SUCCESS" else "FAIL")
            self.settle()

    # -- section 4: requests -------------------------------------------------------------------

    def pause(self) -> bool:
        """Nothing new starts, what runs finishes."""
        if not (self.state == "RUNNING" or (self.state == "QUEUED" and self.admitted)):
            return False
        self.state = "PAUSING"
        for task in self.tasks:
            if self.last(task).state in HELD and not self.must_end(task):
                nested.expect_answers(self.last(task), "PAUSE")
        self.settle()
        return True

    def resume(self) -> bool:
        """Go on; after a stop the killed tasks run again."""
        if self.state not in ("PAUSING", "PAUSED", "STOPPED"):
            return False
        if self.state == "STOPPED":
            failed = [task for task in self.tasks if self.last(task).state == "FAILED"]
            cut_short = [t for t in self.tasks if self.last(t).state in ("KILLED", "LOST")]
            self.again(cut_short, retried=[task for task in failed if self.has_tries_left(task)])
        self.taken_in_hand = True
        for task in self.tasks:
            if self.last(task).state == "PAUSED" and self.last(task).looks:
                self.last(task).since = self.now
        self.go_on()
        return True

    def has_tries_left(self, task: str) -> bool:
        """Whether it would have been tried again, had it been allowed."""
        return self.last(task).failures < int(self.tasks[task].get("retries", 0))

    def go_on(self) -> None:
        """Run, again or for the first time."""
        self.state = "RUNNING"
        if self.started is None:
            self.started = self.now
        self.settle()

    def stop(self) -> bool:
        """Kill what runs."""
        if self.state not in ("QUEUED", "RUNNING", "PAUSING", "PAUSED"):
            return False
        self.state = "STOPPING"
        self.settle()
        return True

    def recover(self) -> bool:
        """Failed tasks, and what was skipped because of them, run again."""
        failed = [task for task in self.tasks if self.last(task).state in FAILURES]
        if self.state not in ("RUNNING", "FAILED") or not failed:
            return False
        self.again(failed)
        self.taken_in_hand |= self.state == "FAILED"
        self.go_on()
        return True

    def skipped_behind(self, tasks: Iterable[str]) -> set[str]:
        """Tasks that were skipped, for whatever reason, and have an upstream task run again."""
        again = set(tasks)
        while True:
            more = {
                task
                for task in self.tasks
                if self.last(task).state == "SKIPPED"
                and any(upstream in again for upstream in self.upstream(task))
            }
            if more <= again:
                return again
            again |= more

    def again(
        self, tasks: Iterable[str], *, retried: Iterable[str] = (), done: Iterable[str] = ()
    ) -> None:
        """New attempts of ``tasks`` and of what was skipped behind them, judged by the rules.

        Of ``retried`` they are the next tries; ``done`` have theirs already.
        """
        run_again = {*tasks, *retried, *done}
        if not self.failing(without=run_again):
            run_again |= {task for task in self.tasks if self.last(task).cause == "FAILING"}
        for task in self.skipped_behind(run_again) - {*done}:
            last = self.last(task)
            if task in retried:
                following = self.follow(last, task)
                following.failures, following.retry = last.failures + 1, True
            else:
                self.tries[task].append(Try(last.number + 1, children=nested.kept(last)))

    def rerun(self, named: list[str], mode: str) -> bool:
        """Chosen tasks of an ended instance run again in it."""
        if self.state not in ("SUCCEEDED", "FAILED", "STOPPED"):
            return False
        if not named or not all(t in self.tasks and self.takes_part(t) for t in named):
            return False
        chosen = self.select(named, mode)
        if self.failing(without=chosen):
            return False
        for task in chosen:  # from the beginning, and nothing else
            self.tries[task].append(Try(self.last(task).number + 1))
        for task in named:
            if not any(upstream in chosen for upstream in self.upstream(task)):
                self.make_ready(task)
        self.taken_in_hand = True
        self.go_on()
        return True

    def select(self, named: Iterable[str], mode: str) -> set[str]:
        """The named tasks and what goes with them."""
        chosen = set(named)
        while mode != "only":
            more = {
                other
                for other in self.tasks
                for task in chosen
                if (mode == "upstream" and other in self.upstream(task))
                or (mode == "downstream" and task in self.upstream(other))
            }
            if more <= chosen:
                break
            chosen |= more
        return chosen

    def kill(self, task: str) -> bool:
        """End one task; the others go on."""
        if self.state not in ("RUNNING", "PAUSING") or task not in self.tasks:
            return False
        last = self.last(task)
        if last.state not in OPEN:
            return False
        if last.state in HELD:
            last.request, last.overdue = True, False
        else:
            self.drop(task, "KILLED")
        self.settle()
        return True

    def force(self, task: str) -> bool:
        """Take a failed task for a success."""
        if self.state not in ("RUNNING", "PAUSING", "FAILED") or task not in self.tasks:
            return False
        last = self.last(task)
        if (self.kind(task) == "DEPENDENT" and last.state == "RUNNING") or self.looks_later(task):
            last.state, last.forced = "SUCCEEDED", True
        elif last.state in FAILURES:
            self.tries[task].append(Try(last.number + 1, state="SUCCEEDED", forced=True))
            self.again([], done=[task])
        else:
            return False
        if self.state == "FAILED":
            self.taken_in_hand = True
            self.go_on()
        else:
            self.settle()
        return True
