"""The command: ``python -m tests.mutations [--only WORD …] [--jobs N] [--report FILE] [--list]``.

Exits with 0 if every mutation was noticed, 1 if one was not, 2 if the run itself proves nothing.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.mutations import running, table, tree
from tests.mutations.catalogue import MUTATIONS
from tests.mutations.mutation import Mutation
from tests.mutations.patience import described
from tests.mutations.place import DoesNotApply
from tests.mutations.running import BaselineFailed, Result
from tests.mutations.verdict import Verdict, WrongCode


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns its exit status."""
    given = _parser().parse_args(arguments)
    chosen = [m for m in MUTATIONS if not given.only or any(w in m.name for w in given.only)]
    if not chosen:
        _say(f"no mutation has {given.only} in its name; --list shows them all")
        return 2
    if given.list:
        _say("\n".join(each.name for each in chosen))
        return 0
    impossible = [each.name for each in chosen if not each.possible()]
    if impossible:
        _say(f"left out, since this machine lacks what their tests need: {'; '.join(impossible)}")
    chosen = [each for each in chosen if each.name not in impossible]
    began = time.monotonic()
    try:
        results = asyncio.run(_run(chosen, given.jobs))
    except (DoesNotApply, BaselineFailed, WrongCode) as error:
        _say(str(error))
        return 2
    except (asyncio.CancelledError, KeyboardInterrupt):
        _say("ended by a signal")
        return 2
    shown = table.render(results)
    _say(f"\n{shown}, in {time.monotonic() - began:.0f} s")
    if given.report is not None:
        given.report.write_text(shown + "\n")
    return 0 if all(result.verdict is Verdict.KILLED for result in results) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="WORD", help="those with a word in the name")
    parser.add_argument("--jobs", type=int, default=4, help="test runs at a time")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the table there, too")
    parser.add_argument("--list", action="store_true", help="only print the names")
    return parser


async def _run(mutations: Sequence[Mutation], jobs: int) -> list[Result]:
    this = asyncio.current_task()
    assert this is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)  # tidy up first
    with tempfile.TemporaryDirectory(prefix="shoal-mutations-") as folder:
        base = Path(folder) / "base"
        began = time.monotonic()
        tree.copy_sources(base)
        for each in mutations:
            each.changed(base)
        _say(f"{len(mutations)} mutations; first their tests without any …")
        patience = await running.baseline(base, mutations, jobs)
        _say(f"… all of which pass, after {time.monotonic() - began:.0f} s")
        _say(f"{len(patience)} tests: {described(patience.values())}")
        return await running.run_all(base, Path(folder), mutations, jobs, _tell, patience)


def _tell(result: Result) -> None:
    _say(f"{result.verdict.value:9} {result.took_s:6.1f} s  {result.mutation.name}")
    if result.verdict is not Verdict.KILLED:
        _say(f"{result.why}\n{result.output}")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
