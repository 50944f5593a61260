from collections import Counter

from tests.kills.plan import MARKER, Phase, Target, draw


def test_cases_follow_from_seed_kind_and_number() -> None:
    assert draw(4, "SSH", 100)[:30] == draw(4, "SSH", 30)
    assert draw(4, "SSH", 30) != draw(5, "SSH", 30)
    assert draw(4, "SSH", 30) != draw(4, "MR", 30)


def test_every_pair_of_target_and_phase_comes_as_often() -> None:
    pairs = len(Target) * len(Phase)
    counts = Counter((case.target, case.phase) for case in draw(1, "SSH", 3 * pairs))
    assert len(counts) == pairs
    assert set(counts.values()) == {3}


def test_moments_are_around_what_is_observed() -> None:
    for case in draw(2, "SSH", 200):
        delay_s = case.delay_s(launch_s=2.0)
        match case.phase:
            case Phase.LAUNCHED:
                assert 0 <= delay_s <= 2
            case Phase.SUBMITTED:
                assert 0 <= delay_s < 0.2
            case Phase.RUNNING:
                assert 0 <= delay_s <= case.seconds
            case Phase.ENDING:
                assert abs(delay_s - case.seconds) < 0.5


def test_marker_of_a_case_is_found_in_what_the_other_side_shows() -> None:
    [case] = draw(1, "PGPROCEDURE", 1)
    found = MARKER.search(f'CALL "public"."{case.marker}"()')
    assert found
    assert found[0] == case.marker == "kill_pgprocedure_0000"
