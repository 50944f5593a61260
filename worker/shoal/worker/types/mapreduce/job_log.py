"""What Hadoop's client says of the jobs that it has submitted, line by line."""

import re
from dataclasses import dataclass, field

_RUNNING = re.compile(r"Running job: (job_\w+)")
_PROGRESS = re.compile(r"\s*map (\d+)% reduce (\d+)%")
_FAILED = re.compile(r"Job (job_\w+) failed with state (\w+) due to: ?(.*)")
_COUNTERS = re.compile(r"Counters: \d+")
_COUNTER = re.compile(r"\t\t(.+)=(-?\d+)")
_GROUP = re.compile(r"\t(\S.*)")


@dataclass
class JobLog:
    """What is known of the newest job. ``id`` is empty until there is one.

    ``counters`` are by group and name, as Hadoop calls them; ``failure`` is why it failed.
    """

    id: str = ""
    jobs: int = 0
    done: int = 0  # percent, of map and reduce together
    failure: str = ""
    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    _group: str | None = None  # whose counters are being told

    def read(self, line: str) -> None:
        """Take in one line."""
        if self._group is not None and self._read_counter(line):
            return
        self._group = None
        if match := _RUNNING.search(line):
            self.id, self.done, self.failure, self.counters = match[1], 0, "", {}
            self.jobs += 1
        elif match := _PROGRESS.match(line):
            self.done = (int(match[1]) + int(match[2])) // 2
        elif match := _FAILED.search(line):
            # Of a job that runs in this process, nothing but NA; the log has more.
            self.failure = "" if match[3] == "NA" else f"{match[1]} {match[2]}: {match[3]}"
        elif _COUNTERS.match(line):
            self._group = ""

    def _read_counter(self, line: str) -> bool:
        if match := _COUNTER.fullmatch(line):
            self.counters.setdefault(self._group or "", {})[match[1]] = int(match[2])
        elif match := _GROUP.fullmatch(line):
            self._group = match[1]
        else:
            return False
        return True
