"""What is delivered next: order for each key, redelivery, and an end to it."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.coordination.messages.backlog import Backlog

ACK_WAIT_S = 5.0


def filled(*keys: str, max_deliveries: int = 3) -> Backlog:
    """Messages 0, 1, 2 … with these keys."""
    backlog = Backlog(ACK_WAIT_S, max_deliveries)
    for number, key in enumerate(keys):
        backlog.add(number, key)
    return backlog


def take_all(backlog: Backlog, now_s: float) -> list[int]:
    taken = []
    while (number := backlog.take()) is not None:
        assert backlog.grant(number, now_s)
        taken.append(number)
    return taken


def test_messages_come_in_order_and_one_of_each_key_at_a_time() -> None:
    backlog = filled("a", "a", "b", "a", "c", "b")
    assert take_all(backlog, 0) == [0, 2, 4]
    assert backlog.in_flight == 3
    backlog.remove(0)
    assert take_all(backlog, 0) == [1]
    backlog.remove(2)
    backlog.remove(1)
    assert take_all(backlog, 0) == [3, 5]


def test_unacknowledged_message_comes_again_before_its_followers() -> None:
    backlog = filled("a", "a", "b")
    assert take_all(backlog, 0) == [0, 2]
    assert not backlog.expire(ACK_WAIT_S - 0.1)
    backlog.remove(2)
    assert backlog.next_deadline_s == ACK_WAIT_S
    assert backlog.expire(ACK_WAIT_S)
    assert take_all(backlog, ACK_WAIT_S) == [0]
    assert backlog.deliveries == {0: 2}


def test_late_acknowledgement_counts_while_it_waits_to_be_delivered_again() -> None:
    backlog = filled("a", "a")
    take_all(backlog, 0)
    backlog.expire(ACK_WAIT_S)
    assert backlog.remove(0)
    assert take_all(backlog, ACK_WAIT_S) == [1]
    assert not backlog.remove(0)


def test_delivered_in_vain_too_often_stops_its_key_until_it_is_removed() -> None:
    backlog = filled("a", "a", "b", max_deliveries=2)
    for turn in range(2):
        assert 0 in take_all(backlog, turn * ACK_WAIT_S)
        backlog.remove(2)
        backlog.expire((turn + 1) * ACK_WAIT_S)
    assert backlog.exhausted == {0}
    assert take_all(backlog, 100) == []
    backlog.remove(0)
    assert not backlog.exhausted
    assert take_all(backlog, 100) == [1]


def test_deliveries_of_earlier_owners_count() -> None:
    backlog = Backlog(ACK_WAIT_S, 3)
    backlog.add(7, "a", deliveries=3)
    backlog.add(8, "b", deliveries=2)
    assert backlog.exhausted == {7}
    assert take_all(backlog, 0) == [8]
    assert backlog.deliveries[8] == 3


def test_what_could_not_be_delivered_is_next_and_not_counted() -> None:
    backlog = filled("a", "b")
    assert backlog.take() == 0
    backlog.untake(0)
    assert backlog.deliveries == {}
    assert take_all(backlog, 0) == [0, 1]


def test_the_ack_wait_runs_from_the_grant() -> None:
    backlog = filled("a", max_deliveries=1)
    assert backlog.take() == 0
    assert not backlog.expire(1000)  # however long it takes to store the delivery
    assert backlog.take() is None
    assert backlog.grant(0, 1000)
    assert not backlog.expire(1000 + ACK_WAIT_S - 0.1)
    assert not backlog.exhausted
    assert backlog.expire(1000 + ACK_WAIT_S)
    assert backlog.exhausted == {0}


def test_what_is_dealt_with_while_its_delivery_is_stored_is_not_granted() -> None:
    backlog = filled("a", "a")
    assert backlog.take() == 0
    assert backlog.remove(0)
    assert not backlog.grant(0, 0)
    assert take_all(backlog, 0) == [1]


@pytest.mark.parametrize("acknowledged", [True, False])
def test_nothing_is_kept_of_what_is_dealt_with(acknowledged: bool) -> None:
    backlog = filled("a", "b", "a", max_deliveries=1)
    now_s = 0.0
    while len(backlog):
        for number in take_all(backlog, now_s):
            if acknowledged:
                backlog.remove(number)
        now_s += ACK_WAIT_S
        backlog.expire(now_s)
        for number in list(backlog.exhausted):
            backlog.remove(number)
    assert not backlog.deliveries
    assert not backlog.in_flight
    assert not backlog._waiting
    assert backlog.next_deadline_s is backlog.last_deadline_s is None


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 6), st.integers(1, 4))
def test_whatever_happens_each_message_is_dealt_with_once_and_keys_keep_their_order(
    seed: int, messages: int, keys: int, max_deliveries: int
) -> None:
    chance = random.Random(seed)
    backlog = Backlog(ACK_WAIT_S, max_deliveries)
    key_of = {number: f"k{chance.randrange(keys)}" for number in range(messages)}
    to_add = list(key_of)
    out: set[int] = set()
    attempts = dict.fromkeys(key_of, 0)
    finished: list[int] = []
    now_s = 0.0
    while len(finished) < messages:
        now_s += chance.random() * ACK_WAIT_S
        backlog.expire(now_s)
        while to_add and chance.random() < 0.5:
            number = to_add.pop(0)
            backlog.add(number, key_of[number])
        number_or_none = backlog.take()
        if number_or_none is not None:
            number = number_or_none
            if chance.random() < 0.2:  # not delivered after all: that does not count
                backlog.untake(number)
                continue
            assert backlog.grant(number, now_s)
            attempts[number] += 1
            assert attempts[number] <= max_deliveries
            earlier = {n for n in key_of if n < number and key_of[n] == key_of[number]}
            assert earlier <= set(finished)
            out.add(number)
        done = {n for n in out if chance.random() < 0.3} | backlog.exhausted
        for each in sorted(done):
            assert backlog.remove(each)
            finished.append(each)
        out -= done
    assert sorted(finished) == sorted(key_of)
    for key in set(key_of.values()):
        of_key = [n for n in finished if key_of[n] == key]
        assert of_key == sorted(of_key)
    assert len(backlog) == 0
