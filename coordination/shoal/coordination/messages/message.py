"""A message, and its bytes in a znode: one line of JSON, then the payload as it is."""

import json
from dataclasses import dataclass

from shoal.coordination.session.documents import read_json


@dataclass(frozen=True, slots=True)
class Message:
    """What a producer put. Messages with one ``key`` are delivered in the order of their puts."""

    id: str
    key: str
    payload: bytes
    put_at_s: float  # seconds since 1970 on the producer's clock


def encode(message: Message) -> bytes:
    head = {"id": message.id, "key": message.key, "at": message.put_at_s}
    return json.dumps(head).encode() + b"\n" + message.payload


def decode(data: bytes) -> Message:
    """Return the message in ``data``. What no producer wrote is one without id and key."""
    head, _, payload = data.partition(b"\n")
    try:
        fields = read_json(head)
        return Message(str(fields["id"]), str(fields["key"]), payload, float(fields["at"]))
    except (ValueError, KeyError, TypeError, OverflowError):
        return Message("", "", data, 0.0)
