"""Timeouts of a group."""

from dataclasses import dataclass

from shoal.coordination.session.defaults import REREAD_S
from shoal.core.untrusted import is_text

LONGEST_S = 1e9  # of what is stored
LONGEST_ID = 249  # characters, as in Kafka


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Settings of one member, with the meanings that Kafka gives them.

    Two of Kafka's belong to the session. ``session.timeout.ms`` is ``ZkSession``'s
    ``session_timeout_s``: how long a silent member keeps its place.
    ``heartbeat.interval.ms`` is a sixth of it. Members that have a session of their own may so
    differ; members that share one live and die together.
    """

    # How long members may take to give partitions up and join again; one that takes longer is
    # evicted. The longest that a member asks for counts. A callback of the listener gets
    # 0.9 of it.
    rebalance_timeout_s: float = 60.0
    # How long the first member of an empty group waits for companions. Each one that comes
    # prolongs the wait by as much, up to the rebalance timeout.
    initial_rebalance_delay_s: float = 3.0
    # Without a call of ``Group.poll`` in this time the member leaves, and its partitions are lost;
    # it joins again at the next call. None: polling is not needed.
    max_poll_interval_s: float | None = None
    # A static member (one with an ``instance_id``) whose session is over keeps its place for so
    # long; None: for the session's timeout. It counts from the end of the session: at once after
    # an orderly stop, a session timeout later after a crash.
    static_grace_s: float | None = None
    # Makes the member static: a process that begins again under the same one in time gets the same
    # partitions, and no other member notices.
    instance_id: str | None = None
    client_id: str = "member"  # for observers, by ``read_group``; member ids begin with it
    # Watches are hints: the group is read at least this often.
    reread_s: float = REREAD_S

    def __post_init__(self) -> None:
        positive = {
            "rebalance_timeout_s": self.rebalance_timeout_s,
            "max_poll_interval_s": self.max_poll_interval_s,
            "reread_s": self.reread_s,
        }
        for name, value in positive.items():
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be more than 0 seconds, not {value}")
        for name, value in {
            "initial_rebalance_delay_s": self.initial_rebalance_delay_s,
            "static_grace_s": self.static_grace_s,
        }.items():
            if value is not None and not value >= 0:
                raise ValueError(f"{name} cannot be less than 0 seconds, {value} is")
        # These are stored in the group, as JSON numbers and texts that all members can read.
        for name, value in {
            "rebalance_timeout_s": self.rebalance_timeout_s,
            "initial_rebalance_delay_s": self.initial_rebalance_delay_s,
        }.items():
            if value > LONGEST_S:
                raise ValueError(f"{name} can be at most {LONGEST_S:g} seconds, not {value}")
        if not is_text(self.client_id):
            raise ValueError(
                f"invalid client_id {str(self.client_id)[:100]!r}: use a text without lone "
                "surrogates, for example the name of the host"
            )
        own = self.instance_id
        if own is not None and not (is_text(own) and own.strip() and len(own) <= LONGEST_ID):
            raise ValueError(
                f"invalid instance_id {str(own)[:100]!r}: use a text of 1 to {LONGEST_ID} "
                "characters, not blank and without lone surrogates, for example the name of the "
                "pod; None makes the member a dynamic one"
            )
