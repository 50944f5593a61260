"""Bytes that any program may have left in ZooKeeper: a value, or one named error."""

import pytest

from shoal.coordination.errors import Mismatch
from shoal.coordination.group.codec import decode as decode_group
from shoal.coordination.messages.message import Message, decode, encode
from shoal.coordination.messages.owned import counts_of
from shoal.coordination.messages.tail import TailState
from shoal.coordination.session.documents import read_json, read_object

DIGITS = "9" * 5_000
JUNK = [
    b"",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    DIGITS.encode(),
    b'{"id": "a", "key": "b", "at": 1e999}',
    b'{"id": "a", "key": "b", "at": NaN}',
    b'{"id": "a", "key": "b", "at": ' + b"9" * 400 + b"}",
    b'{"id": "\\ud800", "key": "b", "at": 1}',
    b'["\xed\xa0\x80"]',
]


@pytest.mark.parametrize("data", JUNK)
def test_message_of_no_producer_has_neither_id_nor_key(data: bytes) -> None:
    assert decode(data) == Message("", "", data, 0.0)


def test_message_is_read_as_it_was_put() -> None:
    message = Message("\U0001f600", "k", b"\xff\n", 1.5)
    assert decode(encode(message)) == message


@pytest.mark.parametrize("data", [one for one in JUNK if b"9}" not in one])
def test_document_that_cannot_be_written_again_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_json(data)
    assert read_object(data) is None
    with pytest.raises(Mismatch):
        decode_group(data or b" ", "g", 0.0)
    with pytest.raises(ValueError, match=r".+"):
        TailState.decode(data)


@pytest.mark.parametrize("data", JUNK)
def test_ledger_of_another_program_counts_nothing(data: bytes) -> None:
    assert counts_of(data) == {}


def test_ledger_counts_the_messages_whose_numbers_make_sense() -> None:
    ledger = f'{{"{DIGITS}": 1, "\u0661": 1, "-1": 1, "7": 2, "8": {2 * 10**6}, "9": true}}'
    assert counts_of(ledger.encode()) == {7: 2}
