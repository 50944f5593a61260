"""How far an application is, from the events that its driver writes.

The files are those of Spark's history server (``spark.eventLog``), which need neither Spark's web
pages nor an open port: a folder ``eventlog_v2_<application>`` with ``events_1_<application>``,
``events_2_…``, one JSON object per line. A file that has been read is removed when the next one is
there, so an application of any length takes little room.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.core.untrusted import read_json

_FOLDER = "eventlog_v2_"
_FILE = re.compile(r"events_(\d+)_")
#: Only these are parsed; plans of queries, which are long, are not.
_WANTED = re.compile(
    rb'\{"Event":"SparkListener(ApplicationStart|JobStart|JobEnd|StageSubmitted|StageCompleted|TaskEnd)"'
)
_CHUNK = 1 << 20  # bytes read at once


@dataclass
class Stage:
    """One stage: how many tasks it has, and how many of them have succeeded."""

    tasks: int
    name: str
    done: int = 0
    submitted: bool = False
    completed: bool = False


@dataclass
class Application:
    """What is known of an application. ``id`` is empty until it has one."""

    id: str = ""
    stages: dict[int, Stage] = field(default_factory=dict)
    _stages_of: dict[int, list[int]] = field(default_factory=dict)  # by job

    @property
    def tasks(self) -> int:
        """Tasks of all stages that were or will be run, as far as jobs have been started."""
        return sum(stage.tasks for stage in self.stages.values())

    @property
    def done(self) -> int:
        """Tasks that have succeeded."""
        return sum(min(stage.done, stage.tasks) for stage in self.stages.values())

    @property
    def label(self) -> str:
        """The newest stage that is being run."""
        running = [
            f"stage {number}: {stage.name}"
            for number, stage in sorted(self.stages.items())
            if stage.submitted and not stage.completed
        ]
        return running[-1] if running else ""

    def apply(self, event: dict[str, Any]) -> None:
        """Take one event in. Raises KeyError, TypeError if it is none of Spark's."""
        match event["Event"]:
            case "SparkListenerApplicationStart":
                self.id = str(event["App ID"])
            case "SparkListenerJobStart":
                infos = event["Stage Infos"]
                self._stages_of[event["Job ID"]] = [info["Stage ID"] for info in infos]
                for info in infos:
                    new = Stage(info["Number of Tasks"], str(info["Stage Name"]))
                    self.stages.setdefault(info["Stage ID"], new)
            case "SparkListenerStageSubmitted":
                self._stage(event).submitted = True
            case "SparkListenerStageCompleted":
                stage = self._stage(event)
                stage.completed = True
                stage.tasks = stage.done if "Failure Reason" not in event["Stage Info"] else 0
            case "SparkListenerTaskEnd":
                stage = self.stages.get(event["Stage ID"], Stage(0, ""))
                stage.done += event["Task End Reason"]["Reason"] == "Success"
            case "SparkListenerJobEnd":
                # What it did not need, since an earlier job had made it, will never run.
                for number in self._stages_of.pop(event["Job ID"], ()):
                    if number in self.stages and not self.stages[number].submitted:
                        del self.stages[number]

    def _stage(self, event: dict[str, Any]) -> Stage:
        info = event["Stage Info"]
        number = info["Stage ID"]
        if number not in self.stages:
            self.stages[number] = Stage(info["Number of Tasks"], str(info["Stage Name"]))
        stage = self.stages[number]
        if stage.completed:  # it is run again, since what it had made was lost
            stage.tasks, stage.done, stage.completed = info["Number of Tasks"], 0, False
        return stage


class EventLog:
    """Reads the events of the one application whose driver writes to ``folder``."""

    def __init__(self, folder: Path, application: Application) -> None:
        self._folder, self._application = folder, application
        self._number = 1
        self._offset = 0
        self._begun = b""  # a line whose end is not there yet

    def read(self) -> bool:
        """Take in what has been written since; return whether that was anything. Blocks."""
        is_new = False
        for line in self._lines():
            if _WANTED.match(line) is None:
                continue
            with suppress(ValueError, KeyError, TypeError, AttributeError):
                self._application.apply(read_json(line))
                is_new = True
        return is_new

    def _lines(self) -> Iterator[bytes]:
        files = self._files()
        while (path := files.get(self._number)) is not None:
            yield from self._lines_of(path)
            if self._number + 1 not in files:
                return
            yield from self._lines_of(path)  # it was complete only when the next one was there
            with suppress(OSError):
                path.unlink()
            self._number, self._offset, self._begun = self._number + 1, 0, b""

    def _lines_of(self, path: Path) -> Iterator[bytes]:
        try:
            with path.open("rb") as file:
                file.seek(self._offset)
                while chunk := file.read(_CHUNK):
                    self._offset += len(chunk)
                    *lines, self._begun = (self._begun + chunk).split(b"\n")
                    yield from lines
        except OSError:
            return  # next time

    def _files(self) -> dict[int, Path]:
        found = {}
        for path in self._folder.glob(f"{_FOLDER}*/events_*"):
            if (match := _FILE.match(path.name)) is not None:
                found[int(match[1])] = path
        return found
