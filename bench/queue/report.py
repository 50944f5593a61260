"""The results of the queue as Markdown."""

from collections.abc import Mapping, Sequence

from bench.queue.measure import Figures
from bench.support.machine import machine

HEAD = (
    "| waiting | claimers | entries per claim | median ms | p99 ms | claims/s | entries/s "
    "| conflicts per claim | median vs fewest |\n"
    "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
)


def markdown(enqueued: Mapping[int, float], figures: Sequence[Figures]) -> str:
    """Return tables of how fast entries are put and claimed."""
    text = "| entries put in batches | entries/s |\n| ---: | ---: |\n"
    text += "".join(f"| {count:,} | {rate:,.0f} |\n" for count, rate in enqueued.items())
    base = {(f.claimers, f.size): f.median_ms for f in reversed(figures)}  # the first of each
    text += "\n" + HEAD
    for f in sorted(figures, key=lambda f: (f.claimers, f.size, f.waiting)):
        text += (
            f"| {f.waiting:,} | {f.claimers} | {f.size} | {f.median_ms:.2f} | {f.p99_ms:.1f} "
            f"| {f.claims_per_s:,.0f} | {f.entries_per_s:,.0f} | {f.conflicts_per_claim:.3f} "
            f"| {f.median_ms / base[f.claimers, f.size]:.2f} x |\n"
        )
    return f"{text}\n{machine()}\n"
