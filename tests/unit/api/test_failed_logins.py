"""Wrong passwords slow down the one who gives them."""

import pytest

from shoal.api.access.failed_logins import FailedLogins
from shoal.api.web.errors import TooManyRequests


class Clock:
    """Seconds that a test sets."""

    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def _wait_s(attempts: FailedLogins, name: str, address: str) -> int:
    with pytest.raises(TooManyRequests) as refused:
        attempts.begin(name, address)
    return int(refused.value.headers["Retry-After"])


def test_wait_grows_with_each_wrong_password_up_to_a_minute() -> None:
    clock = Clock()
    attempts = FailedLogins(clock)
    for _ in range(attempts.FREE_OF_PAIR):
        attempts.begin("ada", "192.0.2.1")
    waits = []
    for _ in range(9):
        waits.append(_wait_s(attempts, "ada", "192.0.2.1"))
        clock.now_s += waits[-1]
        attempts.begin("ada", "192.0.2.1")
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_attempts_that_have_no_answer_yet_count() -> None:
    attempts = FailedLogins(Clock())
    begun = 0
    for _ in range(200):  # all at once: none has an answer
        try:
            attempts.begin("ada", "192.0.2.1")
        except TooManyRequests:
            continue
        begun += 1
    assert begun == attempts.FREE_OF_PAIR


def test_nobody_waits_for_wrong_passwords_that_others_have_given() -> None:
    attempts = FailedLogins(Clock())
    for _ in range(attempts.FREE_OF_PAIR):
        attempts.begin("ada", "192.0.2.1")
    attempts.begin("ada", "192.0.2.2")  # herself, from elsewhere
    attempts.begin("bob", "192.0.2.1")  # somebody else behind the same address
    _wait_s(attempts, "ada", "192.0.2.1")


def test_address_that_tries_many_names_waits() -> None:
    attempts = FailedLogins(Clock())
    for number in range(attempts.FREE_OF_ADDRESS):
        attempts.begin(f"user{number}", "192.0.2.1")
    assert _wait_s(attempts, "another", "192.0.2.1") == 1
    attempts.begin("another", "192.0.2.2")


def test_name_that_signed_in_before_does_not_wait_for_others_at_its_address() -> None:
    attempts = FailedLogins(Clock())
    attempts.begin("ada", "192.0.2.1")
    attempts.succeeded("ada", "192.0.2.1")
    for number in range(attempts.FREE_OF_ADDRESS):
        attempts.begin(f"user{number}", "192.0.2.1")
    _wait_s(attempts, "bob", "192.0.2.1")
    attempts.begin("ada", "192.0.2.1")
    for _ in range(attempts.FREE_OF_PAIR - 1):
        attempts.begin("ada", "192.0.2.1")
    _wait_s(attempts, "ada", "192.0.2.1")  # for wrong passwords of her own


def test_new_name_waits_seconds_for_hundreds_of_wrong_passwords_at_its_address() -> None:
    clock = Clock()
    attempts = FailedLogins(clock)
    for number in range(500):
        try:
            attempts.begin(f"user{number}", "192.0.2.1")
        except TooManyRequests as refused:
            clock.now_s += int(refused.headers["Retry-After"])
    assert _wait_s(attempts, "bob", "192.0.2.1") <= 4


def test_guesses_at_one_name_do_not_use_up_what_its_address_may_guess() -> None:
    clock = Clock()
    attempts = FailedLogins(clock)
    for _ in range(3 * attempts.FREE_OF_ADDRESS):
        attempts.begin("ada", "192.0.2.1")
        clock.now_s += 60
    attempts.begin("bob", "192.0.2.1")


def test_right_passwords_cost_nothing() -> None:
    attempts = FailedLogins(Clock())
    for _ in range(10 * attempts.FREE_OF_ADDRESS):
        attempts.begin("ada", "192.0.2.1")
        attempts.succeeded("ada", "192.0.2.1")


def test_what_is_long_ago_is_forgotten() -> None:
    clock = Clock()
    attempts = FailedLogins(clock)
    for _ in range(attempts.FREE_OF_PAIR):
        attempts.begin("ada", "192.0.2.1")
    clock.now_s += 901
    for _ in range(attempts.FREE_OF_PAIR):
        attempts.begin("ada", "192.0.2.1")
    _wait_s(attempts, "ada", "192.0.2.1")
