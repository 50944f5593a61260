"""Passwords: their hashes, which are slow on purpose, and what a new one must not be.

Hashing takes tens of milliseconds and 19 MiB. It happens in two threads of its own with a bounded
queue, which give way: however many try to sign in, the other requests go on.
"""

import asyncio
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from shoal.api.web.errors import FieldError, InvalidRequest, TooManyRequests

T = TypeVar("T")

SHORTEST, LONGEST = 8, 1_000  # characters
_THREADS = 2
_NICER, _NICEST = 10, 19  # the event loop comes first, also on a machine of one processor
_MOST_WAITING = 40  # about a second of hashing
_PRODUCT = ("shoal", "admin", "administrator", "dolphinscheduler", "easyscheduler")
# RFC 9106 with the memory that OWASP's Password Storage asks for at least.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


class Passwords:
    """Makes and checks hashes (Argon2id). One event loop; ``close`` ends its threads."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, "passwords", initializer=_give_way)
        self._under_way = 0
        # What a password is compared with if there is no such user: that takes as long.
        self._nobody = _HASHER.hash(secrets.token_urlsafe())

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def hash(self, password: str) -> str:
        """Return the hash of a password. Raises TooManyRequests."""
        return await self._run(lambda: _HASHER.hash(password))

    async def hash_new(
        self, name: str, password: str | None, field: str = "password"
    ) -> tuple[str, str | None]:
        """Return the hash of a new password of an account, and the password if it was made here.

        ``password`` None: make a random one. ``field``: what an error names. Raises InvalidRequest
        for a password that is too easily guessed, TooManyRequests.
        """
        if password is None:
            made = random_password()
            return await self.hash(made), made
        if wrong := list(problems(password, name)):
            raise InvalidRequest([FieldError(field, text) for text in wrong])
        return await self.hash(password), None

    async def matches(self, hashed: str | None, password: str) -> bool:
        """Say whether a password has this hash; None: there is no such user, so it has not.

        Both take the same time. Raises TooManyRequests.
        """
        found = await self._run(lambda: _verify(hashed or self._nobody, password))
        return found and hashed is not None

    @staticmethod
    def is_outdated(hashed: str) -> bool:
        """Say whether a hash was made with weaker parameters than those of today."""
        return _HASHER.check_needs_rehash(hashed)

    async def _run(self, work: Callable[[], T]) -> T:
        if self._under_way >= _MOST_WAITING:
            raise TooManyRequests("too many are signing in at this moment", retry_after_s=2)
        self._under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._under_way -= 1


def _give_way() -> None:
    """Have the current thread take what processor time the others leave. Linux: a thread's own."""
    thread = threading.get_native_id()
    with suppress(OSError):
        nice = os.getpriority(os.PRIO_PROCESS, thread) + _NICER
        os.setpriority(os.PRIO_PROCESS, thread, min(nice, _NICEST))


def _verify(hashed: str, password: str) -> bool:
    try:
        return _HASHER.verify(hashed, password)
    except (VerificationError, InvalidHashError):
        return False


def random_password() -> str:
    """Return a random password."""
    return secrets.token_urlsafe(18)


def problems(password: str, name: str) -> Iterator[str]:
    """Yield what is wrong with a new password of a user. There are no rules of composition."""
    if len(password) < SHORTEST:
        yield f"has fewer than {SHORTEST} characters; 15 and more are better"
    if len(password) > LONGEST:
        yield f"has more than {LONGEST} characters"
    if "\0" in password:
        yield "holds a NUL character"
    plain = password.casefold()
    if len(set(plain)) < 4 or _is_run(plain):
        yield "is one of the first that are tried"
    if name.casefold() in plain or any(plain.startswith(word) for word in _PRODUCT):
        yield "holds the name of the user or of this product, which are tried first"


def _is_run(text: str) -> bool:
    """Say whether it is a piece of a row of keys or of the alphabet."""
    rows = ("abcdefghijklmnopqrstuvwxyz", "01234567890", "qwertyuiop", "password", "asdfghjkl")
    cut = text.rstrip("0123456789!")
    return any(text in row or (len(cut) > 3 and cut in row) for row in rows)
