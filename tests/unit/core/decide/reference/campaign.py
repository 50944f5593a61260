"""Many random cases: how many agree, which do not, and what they have covered."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tests.unit.core.decide.reference.cases import Case, Move, random_case
from tests.unit.core.decide.reference.coverage import all_corners, corners_of
from tests.unit.core.decide.reference.instances import Difference
from tests.unit.core.decide.reference.play import BAD_DAY, SIGNALS, choose, play, run_to_the_end
from tests.unit.core.decide.reference.shrink import difference_of, shrink
from tests.unit.core.decide.reference.world import World

LENGTHS = (3, 8, 15, 30)  # moves before all goes well
BAD_DAYS = 0.01  # the share of cases in which nearly all is lost
LONG = 80


@dataclass
class Tally:
    """What came of the cases."""

    cases: int = 0
    events: int = 0
    failing: dict[int, Case] = field(default_factory=dict)  # by number of the case
    corners: Counter[str] = field(default_factory=Counter)  # cases that have been in each

    def add(self, other: "Tally") -> None:
        """Count another tally's cases in."""
        self.cases += other.cases
        self.events += other.events
        self.failing |= other.failing
        self.corners += other.corners

    @property
    def empty_corners(self) -> list[str]:
        """What no case has covered."""
        return [corner for corner in all_corners() if not self.corners[corner]]

    def explain(self, seed: int, most: int = 3) -> Iterator[str]:
        """Describe differences as the smallest cases that show them."""
        for number, case in list(self.failing.items())[:most]:
            small = shrink(case)
            yield f"case {number} of seed {seed}: {difference_of(small)}"
            yield f"  {small}"


def first_failing(seed: int, count: int) -> Case | None:
    """The first of ``count`` cases that differs, None if all agree."""
    for number in range(count):
        if failing := run_cases(seed, number, 1).failing:
            return failing[number]
    return None


def run_cases(seed: int, first: int, count: int) -> Tally:
    """Play cases ``first`` to ``first + count - 1`` of a seed."""
    tally = Tally()
    for number in range(first, first + count):
        play_one(random.Random(f"{seed}/{number}"), number, tally)
    return tally


def play_one(dice: random.Random, number: int, tally: Tally) -> None:
    """Invent one case while it is played."""
    case = random_case(dice)
    moves: list[Move] = []
    bad_day = dice.random() < BAD_DAYS
    length = LONG if bad_day else dice.choice(LENGTHS)
    tally.cases += 1
    try:
        world = World(case)
        for _ in range(length):
            moves.append(choose(world, dice, BAD_DAY if bad_day else SIGNALS))
            play(world, moves[-1])
        run_to_the_end(world)
    except Difference:
        tally.failing[number] = replace(case, moves=tuple(moves))
        return
    tally.events += len(world.log)
    tally.corners.update(corners_of(world))
