"""The number of files and connections that a process may have open at once."""

import resource

MOST_DESCRIPTORS = 1 << 16  # more are of no use, and some programs walk through all of them


def raise_descriptor_limit() -> int:
    """Let this process open as many files as it may; return how many it could before.

    Systems start services with a soft limit of 1,024 for the sake of programs that use select(2).
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return soft


def descriptor_limit() -> int:
    """Return how many files this process may have open at once."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
