"""How long a database may stay silent before a connection to it is given up.

Silence is not slowness. A server that is at work on a statement says nothing for as long as that
takes, and a server that is gone says nothing for ever. So no statement is cut off for being slow.
After ``doubt_s`` the server is asked, over a new connection, what the session of the old one does
(``silence.py``), and only what that leaves open is decided by time alone.
"""

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Patience:
    """Deadlines in seconds, by kind of work. PostgreSQL only: SQLite has no network.

    The first three are about silence: since the last byte that came, or since the server was last
    known to be at work. The others bound how long it may be at work on one exchange, and begin
    with it.
    """

    connect_s: float = 4.0  # for a TCP connection to be there; with several hosts, for each
    doubt_s: float = 3.0  # then the server is asked what the session does
    answer_s: float = 10.0  # then the connection is given up if its state is not known
    short_s: float = 60.0  # what masters and API do in one step, locks included; and COMMIT
    query_s: float = 600.0  # lists and searches
    long_s: float = inf  # changes of many rows, deletes

    def __post_init__(self) -> None:
        if not 0 < self.doubt_s < self.answer_s:
            raise ValueError("doubt_s must be positive and less than answer_s")

    def without_bounds(self) -> "Patience":
        """Return the same for work that may take any time: migrations."""
        return Patience(
            self.connect_s, self.doubt_s, self.answer_s, short_s=inf, query_s=inf, long_s=inf
        )

    @classmethod
    def of(cls, answer_s: float) -> "Patience":
        """Return the deadlines for a database that may be silent for ``answer_s`` seconds."""
        return cls(doubt_s=min(cls.doubt_s, answer_s / 3), answer_s=answer_s)
