"""Messages with acknowledgements: at least once each, in order for each key.

Producers put them into the partition of their key; consumers share the partitions of a topic.

- ``producer.Producer``: put; a put that is repeated with the same id adds nothing.
- ``consumer.Consumer``: receive and acknowledge.
- ``topic``: what waits, and what could not be delivered.
- ``paths``: where all of it lies in ZooKeeper. ``tail``: the producers' end of a partition,
  ``owned``: the consumer's; ``backlog``: what to deliver next, as a pure data structure.

ZooKeeper keeps everything in memory and on each of its servers: this is for thousands of
messages of a few kilobytes that must not be lost, not for streams of data.
"""

from shoal.coordination.errors import MessageTooLarge
from shoal.coordination.messages.consumer import Consumer, ConsumerSettings, MessageDelivery
from shoal.coordination.messages.message import Message
from shoal.coordination.messages.producer import Producer
from shoal.coordination.messages.topic import DeadLetter, dead_letters, open_topic, waiting

__all__ = [
    "Consumer",
    "ConsumerSettings",
    "DeadLetter",
    "Message",
    "MessageDelivery",
    "MessageTooLarge",
    "Producer",
    "dead_letters",
    "open_topic",
    "waiting",
]
