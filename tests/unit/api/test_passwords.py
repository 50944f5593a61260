"""Hashing passwords gives way to the rest of the process."""

import os
import threading

from shoal.api.access.passwords import Passwords


async def test_hashing_has_a_lower_priority() -> None:
    passwords = Passwords()
    try:
        mine = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        theirs = await passwords._run(
            lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        )
    finally:
        passwords.close()
    assert theirs > mine or mine >= 19
