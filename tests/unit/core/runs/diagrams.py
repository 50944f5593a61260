"""State diagrams of transition tables, as the documentation shows them."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


def diagram(table: Mapping[tuple[Any, Any], Any], start: StrEnum) -> str:
    """A Mermaid state diagram of a transition table.

    A signal that every state allows, with one result, is one arrow from ANY.
    """
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {start}"]
    edges = [(state, signal, after) for (state, signal), after in table.items()]
    everywhere = {
        signal: after
        for _, signal, after in edges
        if all(table.get((state, signal)) is after for state in type(start))
    }
    lines += [f"    {s} --> {after}: {e}" for s, e, after in edges if e not in everywhere]
    lines += [f"    ANY --> {after}: {signal}" for signal, after in everywhere.items()]
    left = {before for before, _, after in edges if after is not before}
    leaves = [state for state in type(start) if state not in left]
    lines += [f"    {state} --> [*]" for state in leaves]
    return "\n".join([*lines, "```"])
