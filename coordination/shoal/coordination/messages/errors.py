"""What can go wrong with messages, besides what ZooKeeper itself answers."""

from shoal.coordination.errors import CoordinationError


class MessageTooLarge(CoordinationError):
    """``size`` and ``limit`` in bytes, with the key and the id."""

    def __init__(self, topic: str, message_id: str, size: int, limit: int) -> None:
        self.topic, self.message_id, self.size, self.limit = topic, message_id, size, limit
        super().__init__(
            f"message {message_id!r} for topic {topic!r} has {size} bytes, {limit} are allowed; "
            "store the payload elsewhere and send its address"
        )
