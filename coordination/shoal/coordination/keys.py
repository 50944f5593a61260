"""Which partition a key belongs to. Every process must agree on this for ever."""

import hashlib


def partition_of(key: str, partitions: int = 128) -> int:
    """Return SHA-256 of the UTF-8 ``key``, as a big-endian integer, modulo ``partitions``."""
    return int.from_bytes(hashlib.sha256(key.encode("utf-8")).digest(), "big") % partitions
