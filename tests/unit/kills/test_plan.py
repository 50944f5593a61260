"""Every moment and target of a kill is drawn, and jobs carry a marker that observers find."""

from collections import Counter

from tests.kills.plan import MARKER, Phase, Target, draw


def test_every_pair_of_target_and_phase_comes_as_often() -> None:
    pairs = len(Target) * len(Phase)
    counts = Counter((case.target, case.phase) for case in draw(1, "SSH", 3 * pairs))
    assert len(counts) == pairs
    assert set(counts.values()) == {3}


def test_marker_of_a_case_is_found_in_what_the_other_side_shows() -> None:
    [case] = draw(1, "PGPROCEDURE", 1)
    found = MARKER.search(f'CALL "public"."{case.marker}"()')
    assert found
    assert found[0] == case.marker == "kill_pgprocedure_0000"
