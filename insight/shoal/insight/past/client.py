"""Ask for past runs: a separate process answers, started by the first question.

It ends some minutes after the last question, or with the process that has started it. One
question is answered at a time; one that takes too long ends it, and the next starts another.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar

import structlog

from shoal.core.errors import ShoalError
from shoal.insight.past.questions import PageWanted, PastInstance, PastPage

log = structlog.get_logger()

_PROGRAM = "shoal.insight.past.program"
_WAITING = 8  # questions; more are refused


class PastUnavailable(ShoalError):
    """The exported history cannot be read now, or there is none."""


class NoPastConfigured(PastUnavailable):
    """No history is exported."""

    def __init__(self) -> None:
        super().__init__(
            "no history is exported here: set history_url in section [cluster] of the settings of "
            "every master and every API, and install the extra files"
        )


class PastLost(PastUnavailable):
    """There is no history where there was one."""

    def __init__(self, url: str, exports: int) -> None:
        super().__init__(
            f"there is no history in {url}, although the database knows of {exports} exports: is "
            "the storage mounted, and history_url the same as for the masters?"
        )


async def _none() -> int:
    return 0


class PastRuns:
    """Past runs of a cluster whose history lies at ``url``; empty: there is none. One event loop.

    ``uid``: the name in the cluster's database. ``exports`` says how many exports the database
    knows of: a storage without any may be one that is not mounted.
    """

    ANSWER_S: ClassVar[float] = 15.0
    IDLE_S: ClassVar[float] = 300.0

    def __init__(self, url: str, uid: str, exports: Callable[[], Awaitable[int]] = _none) -> None:
        self.url, self._exports = url, exports
        self._command = [sys.executable, "-m", _PROGRAM, "--url", url, "--cluster", uid]
        self._is_on = bool(url)
        self._process: subprocess.Popen[bytes] | None = None
        self._turn = asyncio.Lock()
        self._asked = 0  # questions so far: answers carry the number, so none is taken for another
        self._waiting = 0
        self._idle: asyncio.TimerHandle | None = None

    @property
    def is_on(self) -> bool:
        """Whether there is an exported history."""
        return self._is_on

    async def page(self, wanted: PageWanted) -> PastPage:
        """Return a page of past runs. Raises PastUnavailable."""
        found = (await self._ask({"page": wanted.to_json()}))["page"]
        before = found["before"]
        return PastPage(found["rows"], before and (before[0], before[1]))

    async def run(self, instance_id: int) -> PastInstance | None:
        """Return a past run; None: the history does not have it. Raises PastUnavailable."""
        found = (await self._ask({"instance": instance_id}))["run"]
        return found and PastInstance(**found)

    async def aclose(self) -> None:
        """End the process."""
        await asyncio.to_thread(self._end)

    async def _ask(self, question: Mapping[str, Any]) -> Any:
        if not self._is_on:
            raise NoPastConfigured
        if self._waiting >= _WAITING:
            raise PastUnavailable("too many ask for past runs at once; ask again in some seconds")
        self._waiting += 1
        try:
            async with asyncio.timeout(self.ANSWER_S), self._turn:
                found = await self._answer(question)
        except TimeoutError:
            raise PastUnavailable(
                f"the exported history has not answered in {self.ANSWER_S:g} s; ask for fewer "
                "days, or for one project, or later"
            ) from None
        finally:
            self._waiting -= 1
        # Before the first manifest is stored an exporter may have died.
        if not found["exports"] and (known := await self._exports()) > 1:
            raise PastLost(self.url, known)
        return found

    async def _answer(self, question: Mapping[str, Any]) -> Any:
        if self._idle is not None:
            self._idle.cancel()
        self._asked += 1
        line = json.dumps({**question, "number": self._asked}).encode() + b"\n"
        try:
            found = await asyncio.to_thread(self._exchange, line, self._asked)
        except BaseException:
            # It may be in the middle of an answer: the next question needs another one.
            await asyncio.shield(asyncio.to_thread(self._end))
            raise
        self._idle = asyncio.get_running_loop().call_later(self.IDLE_S, self._end)
        if "error" in found:
            raise PastUnavailable(found["error"])
        return found

    def _exchange(self, question: bytes, number: int) -> Any:
        """Send a question, and wait for the answer. Blocks; ends when the process does."""
        process = self._process
        if process is not None and process.poll() is not None:
            self._end()
            process = None
        if process is None:
            process = self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(question)
            process.stdin.flush()
            for line in process.stdout:
                answer = json.loads(line)
                if answer["number"] == number:
                    return answer
        except (OSError, ValueError) as error:
            raise PastUnavailable(f"the reader of the exported history failed: {error}") from error
        raise PastUnavailable(
            "the reader of the exported history has ended, perhaps for want of memory; the log of "
            "the API may say more"
        )

    def _end(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                assert pipe is not None
                pipe.close()
