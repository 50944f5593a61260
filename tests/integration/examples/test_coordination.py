"""The examples of the coordination library, as real processes of which one is killed."""

import json
import re
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import psutil
import pytest

from tests.support.waiting import SERVICE_SESSION_S, STEADY_SESSION_S

EXAMPLES = Path(__file__).parents[3] / "examples" / "coordination"
PATIENCE_S = 90

TO_BE_KILLED = ("--session-timeout", str(SERVICE_SESSION_S))

pytestmark = pytest.mark.timeout(600)  # several processes start, each with all its imports


class Program:
    """A running example whose output goes into a file."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self._output = folder / f"output {uuid.uuid4().hex}"
        with self._output.open("wb") as file:
            self.process = subprocess.Popen(
                command, cwd=folder, stdout=file, stderr=subprocess.STDOUT
            )

    @property
    def output(self) -> str:
        return self._output.read_text()

    def find(self, pattern: str) -> list[str]:
        """Return all that ``pattern`` (its group, if it has one) matches in the output so far."""
        return re.findall(pattern, self.output)

    def says(self, pattern: str, times: int = 1) -> list[str]:
        """Wait until ``pattern`` is in the output so often."""
        self.until(lambda: len(self.find(pattern)) >= times, f"{times} times {pattern!r}")
        return self.find(pattern)

    def until(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert self.process.poll() is None, f"ended before {what}:\n{self.output}"
            assert time.monotonic() < deadline, f"no {what} in {PATIENCE_S} s:\n{self.output}"
            time.sleep(0.02)

    def ends(self, number: signal.Signals) -> None:
        """Send a signal and check that the program ends in an orderly way."""
        self.process.send_signal(number)
        assert self.process.wait(PATIENCE_S) == 0, self.output
        assert "Traceback" not in self.output, self.output

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Start(Protocol):
    def __call__(self, example: str, *arguments: str) -> Program: ...


@pytest.fixture
def start(zk_chroot: str, tmp_path: Path) -> Iterator[Start]:
    """Start an example beside a cluster's data folder; whatever runs in the end is killed."""
    programs: list[Program] = []
    data = tmp_path / ".shoal"
    data.mkdir()
    (data / "cluster.json").write_text(json.dumps({"zookeeper": zk_chroot}))

    def start(example: str, *arguments: str) -> Program:
        command = [sys.executable, str(EXAMPLES / f"{example}.py"), *arguments]
        if not {"--help", "--session-timeout"} & set(arguments):
            command += ["--session-timeout", str(STEADY_SESSION_S)]
        programs.append(Program(tmp_path, command))
        return programs[-1]

    yield start
    for program in programs:
        program.kill()


@pytest.mark.parametrize("example", ["election", "jobs", "messages", "autoscale"])
def test_help_says_what_one_sees(start: Start, example: str) -> None:
    program = start(example, "--help")
    assert program.process.wait(PATIENCE_S) == 0
    assert f"python examples/coordination/{example}.py" in program.output
    assert "-9" in program.output


def test_a_killed_leader_is_followed_and_nothing_is_counted_twice(start: Start) -> None:
    alice = start("election", "--name", "alice", *TO_BE_KILLED)
    alice.says("alice counts", 2)
    bob = start("election", "--name", "bob")
    bob.says("bob sees alice lead")
    alice.kill()
    bob.says("bob leads")
    bob.says("bob counts", 2)
    alice = start("election", "--name", "alice")
    alice.says("alice sees bob lead")
    bob.ends(signal.SIGINT)
    assert bob.output.endswith("bob steps back\n")
    alice.says("alice counts", 2)
    alice.ends(signal.SIGTERM)
    everything = [int(n) for each in (bob, alice) for n in each.find(r"counts (\d+)")]
    assert everything == sorted(set(everything))
    epochs = [int(epoch) for each in (bob, alice) for epoch in each.find(r"leads, epoch (\d+)")]
    assert epochs == sorted(set(epochs))


def test_jobs_of_a_killed_process_are_taken_over_by_the_others(start: Start) -> None:
    jobs = "a,b,c,d,e,f"
    one = start("jobs", "--name", "one", "--jobs", jobs)
    one.says("one begins", 6)
    two = start("jobs", "--name", "two", "--jobs", jobs)
    two.says("two begins", 3)
    three = start("jobs", "--name", "three", "--jobs", jobs, *TO_BE_KILLED)
    three.says("three begins", 2)
    two.until(lambda: len(two.find("two ends")) == 1, "two giving up one job")
    assert len(one.find("one ends")) == 3 + 1
    three.kill()
    kept = {name: running(program) for name, program in (("one", one), ("two", two))}
    one.until(lambda: len(running(one) | running(two)) == 6, "all jobs running")
    assert all(kept[name] <= running(program) for name, program in (("one", one), ("two", two)))
    two.ends(signal.SIGINT)
    one.until(lambda: len(running(one)) == 6, "all jobs in one")
    one.ends(signal.SIGINT)
    assert not running(one)


def running(program: Program) -> set[str]:
    """Return the jobs that a process has begun and not ended, by its own account."""
    balance = Counter(program.find(r"begins (\w+)"))
    balance.subtract(program.find(r"ends (\w+)"))
    assert set(balance.values()) <= {0, 1}
    return {job for job, count in balance.items() if count}


def test_messages_of_a_killed_consumer_are_delivered_again_and_none_is_lost(start: Start) -> None:
    one = start("messages", "consume", "--name", "one", "--work", "0.05", "--ack-wait", "60")
    # This one never gets done with anything.
    slow = ("--work", "600", "--ack-wait", "60")
    two = start("messages", "consume", "--name", "two", *slow, *TO_BE_KILLED)
    # Enough of them for each consumer to have some.
    projects = [f"--project=p{number}" for number in range(20)]
    put = ["messages", "produce", "--count", "3", *projects]
    one.says("one waits for messages")
    two.says("two waits for messages")
    for _ in range(2):  # the second time adds nothing
        producer = start(*put)
        assert producer.process.wait(PATIENCE_S) == 0, producer.output
    (stuck,) = two.says(r"two has (\S+),")
    two.kill()
    done = r"one is done with (\S+)"
    one.says(done, 60)
    assert f"one has {stuck}, attempt 2" in one.output
    expected = {f"p{project}-hello-{number}" for project in range(20) for number in range(1, 4)}
    assert Counter(one.find(done)) == Counter(expected)
    for project in range(20):
        numbers = one.find(rf"one is done with p{project}-hello-(\d)")
        assert numbers == sorted(numbers)
    one.ends(signal.SIGTERM)


def test_a_poisonous_message_ends_among_the_dead_letters_and_can_be_put_again(start: Start) -> None:
    consumer = start("messages", "consume", "--name", "one", "--ack-wait", "0.2")
    consumer.says("one waits")
    start("messages", "produce", "--text", "poison")
    consumer.says("has atlas-poison-1, attempt 5")

    def dead(*arguments: str) -> str:
        listing = start("messages", "dead", *arguments)
        assert listing.process.wait(PATIENCE_S) == 0
        return listing.output

    consumer.until(lambda: dead() == "atlas-poison-1: poison\n", "dead letter")
    dead("--again")
    consumer.says("has atlas-poison-1, attempt 1", 2)
    consumer.ends(signal.SIGINT)


def test_consumers_come_with_the_messages_and_go_with_them(start: Start) -> None:
    options = ["--interval", "0.3", "--cool-down", "0.5", "--max", "3"]
    one = start("autoscale", "--name", "one", *options, *TO_BE_KILLED)
    one.says(r"one: 0 wait, consumers \[\d+\]")
    two = start("autoscale", "--name", "two", *options)
    two.says("two stands for election")
    projects = [f"--project=p{number}" for number in range(12)]
    producer = start("messages", "produce", "--count", "7", *projects)
    one.says(r"consumers \[\d+, \d+, \d+\]")
    children = psutil.Process(one.process.pid).children()
    assert len(children) == 3
    assert "wait, consumers" not in two.output
    one.kill()
    psutil.wait_procs(children, PATIENCE_S)
    assert not any(child.is_running() for child in children)
    two.says(r"two: \d+ wait, consumers \[\d+")
    assert producer.process.wait(PATIENCE_S) == 0, producer.output
    two.says(r"two: 0 wait")
    two.says(r"two: 0 wait, consumers \[\d+\]\n")
    two.ends(signal.SIGINT)
