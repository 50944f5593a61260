"""Whose place a process may take under its ``instance_id``: only a process that has been replaced
itself is fenced, as in KIP-345."""


class InstanceClaim:
    """What a process knows about the members that have had its instance id.

    A process is many members, one after the other, and their ids alone are what it knows them by.
    A process that enters for the first time takes the place of any member: the younger process
    wins. From then on a member with a strange id has come later, and has replaced this process.

    A join whose answer is lost may have been written or not. So its id counts as our own, and the
    member that the join was to replace is still no stranger.
    """

    def __init__(self) -> None:
        self._replaceable: frozenset[str] | None = None  # None: any member
        self._before: frozenset[str] | None = None

    @property
    def replaceable(self) -> frozenset[str] | None:
        """The ids of the members whose place the process may take; None: of any member."""
        return self._replaceable

    def covers(self, member_id: str) -> bool:
        """Whether the process may take the place of ``member_id``."""
        return self._replaceable is None or member_id in self._replaceable

    def ask(self, member_id: str, place_of: str | None) -> None:
        """A join as ``member_id`` is about to be written, in the place of ``place_of``, if any."""
        self._before = self._replaceable
        added = {member_id} if place_of is None else {member_id, place_of}
        self._replaceable = (self._replaceable or frozenset()) | added

    def withdraw(self) -> None:
        """The join of the last ``ask`` was certainly not written."""
        self._replaceable = self._before

    def confirm(self, member_id: str) -> None:
        """The group has this process as the member ``member_id``; all before that is settled."""
        self._replaceable = self._before = frozenset({member_id})
