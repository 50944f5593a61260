"""The command: ``python -m tests.mutations [--only WORD …] [--resume FILE] [--share K/N] …``.

Exits with 0 if every mutation was noticed, 1 if one was not, 2 if the run itself proves nothing.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mutations import running, table, tree
from tests.mutations.catalogue import MUTATIONS
from tests.mutations.mutation import Mutation
from tests.mutations.patience import described
from tests.mutations.place import DoesNotApply
from tests.mutations.record import Record
from tests.mutations.running import Result
from tests.mutations.verdict import Verdict, WrongCode

#: Mutations whose tests run in one baseline. An interrupted run repeats at most one of them.
BATCH = 40


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
    number, shares = given.share
    chosen = _in_order(chosen)[number - 1 :: shares]
    began = time.monotonic()
    try:
        results = asyncio.run(_run(chosen, given.jobs, Record(given.resume, tree.revision())))
    except WrongCode as error:
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
    parser.add_argument(
        "--resume",
        type=Path,
        metavar="FILE",
        help="append verdicts to FILE; skip mutations that were noticed there, with the same code",
    )
    parser.add_argument(
        "--share",
        type=_share,
        default=(1, 1),
        metavar="K/N",
        help="only the K-th of N equal shares, to divide the mutations among machines or days",
    )
    parser.add_argument("--list", action="store_true", help="only print the names")
    return parser


def _share(text: str) -> tuple[int, int]:
    number, _, shares = text.partition("/")
    if not (number.isdecimal() and shares.isdecimal() and 1 <= int(number) <= int(shares)):
        raise argparse.ArgumentTypeError(f"invalid share {text!r}: use K/N, for example 1/4")
    return int(number), int(shares)


def _in_order(mutations: Sequence[Mutation]) -> list[Mutation]:
    """Sort mutations by the files of their tests, so that a batch needs few of them."""
    return sorted(mutations, key=lambda each: (sorted(each.files), sorted(each.killers), each.name))


def _batches(mutations: Sequence[Mutation]) -> Iterator[Sequence[Mutation]]:
    for first in range(0, len(mutations), BATCH):
        yield mutations[first : first + BATCH]


async def _run(mutations: Sequence[Mutation], jobs: int, record: Record) -> list[Result]:
    """Run the mutations that the record does not know; return the results of all of them."""
    this = asyncio.current_task()
    assert this is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)  # tidy up first
    with tempfile.TemporaryDirectory(prefix="shoal-mutations-") as folder:
        base = Path(folder) / "base"
        tree.copy_sources(base)
        results: list[Result] = []
        waiting: list[Mutation] = []
        for each in mutations:
            try:
                known = record.known(each, base)
            except DoesNotApply as error:
                known = Result(each, Verdict.BROKEN, str(error), 0.0, "")
                _tell(known)
            if known is None:
                waiting.append(each)
            else:
                results.append(known)
        _say(f"{len(waiting)} of {len(mutations)} mutations to run")

        def tell(result: Result) -> None:
            record.add(result, base)
            _tell(result)

        for batch in _batches(waiting):
            began = time.monotonic()
            found = await running.baseline(base, batch, jobs)
            patience = described(found.patience.values())
            _say(f"tests of {len(batch)} took {time.monotonic() - began:.0f} s; {patience}")
            unproven = [*found.results(batch)]
            for result in unproven:
                tell(result)
            bad = {result.mutation.name for result in unproven}
            rest = [each for each in batch if each.name not in bad]
            results += unproven
            results += await running.run_all(base, Path(folder), rest, jobs, tell, found.patience)
        return results


def _tell(result: Result) -> None:
    _say(f"{result.verdict.value:9} {result.took_s:6.1f} s  {result.mutation.name}")
    if result.verdict is not Verdict.KILLED:
        _say(f"{result.why}\n{result.output}")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
