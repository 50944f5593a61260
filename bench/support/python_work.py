"""What a fixed piece of Python costs on this machine: the second yardstick beside process starts.

How dear Python is against the start of a process differs from one make of processor to the next.
A task costs both, so only figures told in both can be compared between machines. The piece is a
mix of what the roles do: dictionaries, text, JSON, small objects, turns of an event loop.
"""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

PIECES = 300  # of which the least of _ROUNDS counts
_ROUNDS = 5
# In a process of its own, so that it meets the same interpreter whatever the bench has loaded.
_PROGRAM = """
import asyncio, dataclasses, json, sys, time

@dataclasses.dataclass(frozen=True)
class Attempt:
    number: int
    name: str
    state: str

async def turns(count):
    for _ in range(count):
        await asyncio.sleep(0)

def piece(loop):
    rows = [{"id": n, "name": f"task-{n}", "state": "QUEUED", "after": [n - 1]} for n in range(20)]
    read = json.loads(json.dumps({"rows": rows}))["rows"]
    attempts = {row["id"]: Attempt(row["id"], row["name"], row["state"]) for row in read}
    ended = {n: dataclasses.replace(one, state="SUCCEEDED") for n, one in attempts.items()}
    text = ",".join(sorted(f"{one.name}:{one.state}".lower().replace("-", "_")
                           for one in ended.values()))
    assert text.count("succeeded") == len(rows)
    loop.run_until_complete(turns(10))

pieces, rounds = int(sys.argv[1]), int(sys.argv[2])
loop = asyncio.new_event_loop()
least = float("inf")
for _ in range(rounds):
    began = time.process_time()
    for _ in range(pieces):
        piece(loop)
    least = min(least, time.process_time() - began)
loop.close()
print(least / pieces * 1e3)
"""


@dataclass(frozen=True)
class PythonWork:
    """Milliseconds of processor time that the piece takes."""

    cpu_ms: float

    @classmethod
    def median(cls, several: "Sequence[PythonWork]") -> "PythonWork":
        """Return the median of several measurements."""
        return cls(median(one.cpu_ms for one in several))


def measure(pieces: int = PIECES) -> PythonWork:
    """Do the piece of work over and over, for some tenths of a second."""
    command = [sys.executable, "-S", "-I", "-c", _PROGRAM, str(pieces), str(_ROUNDS)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return PythonWork(float(done.stdout))
