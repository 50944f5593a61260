"""Logs are checked the more often the faster they grow."""

from shoal.worker.logs.limit import CHECK_EVERY_S, SHORTEST_CHECK_S, next_check_s

LIMIT = 1000


def test_quiet_logs_are_looked_at_now_and_then() -> None:
    assert next_check_s([], 1.0, LIMIT) == CHECK_EVERY_S
    assert next_check_s([(500, 0), (LIMIT, 0)], 1.0, LIMIT) == CHECK_EVERY_S


def test_log_that_grows_is_looked_at_before_it_reaches_the_limit() -> None:
    assert next_check_s([(200, 100), (0, 0)], 0.01, LIMIT) == 0.04  # 0.08 s are left to it


def test_log_at_its_limit_that_grows_on_is_cut_at_once() -> None:
    assert next_check_s([(LIMIT, 1), (0, 0)], 1.0, LIMIT) == SHORTEST_CHECK_S


def test_log_that_was_cut_and_has_grown_less_since_counts_from_the_limit() -> None:
    # It had 5000 bytes when it was cut, and has 1100 now.
    assert next_check_s([(1100, 1100 - LIMIT)], 0.02, LIMIT) == SHORTEST_CHECK_S


def test_thousands_of_logs_are_looked_at_less_often() -> None:
    assert next_check_s([(0, 0)] * 5000, 1.0, LIMIT) == 0.5
