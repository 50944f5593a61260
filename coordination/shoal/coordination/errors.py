"""What can go wrong between Shoal and ZooKeeper.

::

    CoordinationError
    ├── BadAddress           what is not an address never works
    ├── BadCertificate       a file for TLS to the servers cannot be used
    ├── CannotConnect        no server answered in time            (retriable)
    │   └── UnknownHost, NothingListens, ServerSilent, ServerNotServing, ServerReadOnly,
    │       TooManyConnections, TlsServer, ClearServer, UntrustedServer, UntrustedClient,
    │       NoZooKeeper, SessionRefused                            … all for this reason
    ├── CredentialRefused    the servers do not take who we say we are
    ├── ConnectionLoss       no answer: it may or may not be done  (retriable)
    ├── SessionLost          the session ended, with all its ephemeral nodes
    │   └── SessionClosed    … because we closed it
    ├── NoNode, NodeExists, NotEmpty, BadVersion, AccessDenied,    (an answer about one path)
    │   QuotaExceeded, InvalidPath
    ├── TransactionFailed    a multi was rolled back; carries every result
    ├── TooLarge             a request, or a group, that the servers would not accept
    ├── MalformedRequest     a path or a value that has no form on the wire
    ├── NotOwner             the partition has another owner, or none
    ├── NotLeader            another candidate leads, or none
    ├── StaleEpoch           a newer owner or leader has shut us out
    ├── Mismatch             the tree was made for other settings than ours
    │   └── BindingRefused       tree and database (or worker) are of different clusters
    ├── DuplicateMember      an assignor was given two members with one id
    ├── GroupError           a member's request was refused; the names are Kafka's
    │   ├── UnknownMemberId, MemberIdRequired, FencedInstanceId
    │   ├── IllegalGeneration, RebalanceInProgress
    │   ├── InconsistentGroupProtocol, AssignorFailed
    │   └── CoordinatorNotAvailable, GroupNotEmpty, GroupTooLarge
    ├── IllegalGroupTransition   a state machine was given a signal that it has no row for
    └── ServerError          any other answer of the server
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from shoal.core.errors import ShoalError


class CoordinationError(ShoalError):
    """Base of everything that this package raises on purpose.

    ``is_final``: neither a later try nor a new session helps, so loops that retry raise it.
    """

    is_final = False


class Obstacle(StrEnum):
    """What keeps a server from giving us a session, with the next step."""

    UNKNOWN_HOST = "the name of the host cannot be resolved; correct it, or the name service"
    NOTHING_LISTENS = "nothing listens on this port; start the server, or correct the port"
    UNREACHABLE = "no network leads there; check the address, routes and firewalls"
    SILENT = "it does not answer; check that it runs, and firewalls between here and there"
    NOT_SERVING = "it serves no clients now; wait for its ensemble to have a majority again"
    READ_ONLY = (
        "it is cut off from its ensemble and read-only (readonlymode); connect it to a majority of "
        "the servers again"
    )
    CLOSES_AT_ONCE = (
        "it closes every connection at once: it has too many from this address (maxClientCnxns in "
        "its zoo.cfg), or is a proxy without a server behind it"
    )
    TLS = (
        "it speaks TLS on this port, and this client does not; set `zookeeper_tls` (tls of "
        "ZkSession), or use the port of its clientPort, not that of its secureClientPort"
    )
    NO_TLS = (
        "it does not speak TLS on this port; use the port of its secureClientPort, or leave out "
        "`zookeeper_tls` (tls of ZkSession)"
    )
    UNTRUSTED = (
        "its certificate is for another name, not valid at this time, or not by an authority that "
        "this process trusts; correct the host in the address, the certificate, or "
        "`zookeeper_tls_ca` (ca of Tls)"
    )
    WANTS_CERTIFICATE = (
        "it does not accept the certificate of this process, or misses one; set "
        "`zookeeper_tls_cert` and `zookeeper_tls_key` (certificate and key of Tls) to one that the "
        "server trusts"
    )
    NO_ZOOKEEPER = "what listens on this port is not a ZooKeeper server; correct the port"
    REFUSES = (
        "it closes the connection without a session; the log of the server says why (a client that "
        "has seen newer data than the server, a firewall, too many connections in all)"
    )


class CannotConnect(CoordinationError):
    """``obstacles`` says of each server that was tried what is in the way."""

    retriable = True

    def __init__(
        self,
        hosts: str,
        timeout_s: float,
        obstacles: Mapping[str, Obstacle] = MappingProxyType({}),
    ) -> None:
        self.hosts, self.obstacles = hosts, dict(obstacles)
        found = "; ".join(f"{server}: {why}" for server, why in sorted(self.obstacles.items()))
        super().__init__(
            f"no ZooKeeper server at {_shown(hosts)} gave us a session within {timeout_s:g} s; "
            f"{found or 'check that it runs and that the address is right'}. The address is the "
            "setting `zookeeper` (hosts of ZkSession)"
        )

    @staticmethod
    def because_of(
        hosts: str, timeout_s: float, obstacles: Mapping[str, Obstacle]
    ) -> "CannotConnect":
        """Return the error for what is in the way: one of its own if it is the same everywhere."""
        kinds = set(obstacles.values())
        kind = _BY_OBSTACLE.get(kinds.pop(), CannotConnect) if len(kinds) == 1 else CannotConnect
        return kind(hosts, timeout_s, obstacles)


class UnknownHost(CannotConnect):
    pass


class NothingListens(CannotConnect):
    pass


class ServerSilent(CannotConnect):
    pass


class ServerNotServing(CannotConnect):
    pass


class ServerReadOnly(CannotConnect):
    pass


class TooManyConnections(CannotConnect):
    pass


class TlsServer(CannotConnect):
    pass


class ClearServer(CannotConnect):
    pass


class UntrustedServer(CannotConnect):
    pass


class UntrustedClient(CannotConnect):
    pass


class NoZooKeeper(CannotConnect):
    pass


class SessionRefused(CannotConnect):
    pass


_BY_OBSTACLE: Mapping[Obstacle, type[CannotConnect]] = {
    Obstacle.UNKNOWN_HOST: UnknownHost,
    Obstacle.NOTHING_LISTENS: NothingListens,
    Obstacle.UNREACHABLE: ServerSilent,
    Obstacle.SILENT: ServerSilent,
    Obstacle.NOT_SERVING: ServerNotServing,
    Obstacle.READ_ONLY: ServerReadOnly,
    Obstacle.CLOSES_AT_ONCE: TooManyConnections,
    Obstacle.TLS: TlsServer,
    Obstacle.NO_TLS: ClearServer,
    Obstacle.UNTRUSTED: UntrustedServer,
    Obstacle.WANTS_CERTIFICATE: UntrustedClient,
    Obstacle.NO_ZOOKEEPER: NoZooKeeper,
    Obstacle.REFUSES: SessionRefused,
}


class BadAddress(CoordinationError):
    is_final = True

    def __init__(self, hosts: str, why: str) -> None:
        super().__init__(
            f"invalid ZooKeeper address {hosts!r} ({why}); write host:port, several with commas "
            "between, in the setting `zookeeper` (hosts of ZkSession)"
        )


class CredentialRefused(CoordinationError):
    """The servers do not take the credential, or demand one. The session is over for good.

    ``scheme`` is that of the credential, "" if there is none.
    """

    is_final = True

    def __init__(self, hosts: str, scheme: str) -> None:
        self.hosts, self.scheme = hosts, scheme
        what = (
            f"refused the credential of the scheme {_shown(scheme)!r}"
            if scheme
            else "serves only clients that show a credential, and this process has none"
        )
        super().__init__(
            f"ZooKeeper at {_shown(hosts)} {what}; set `zookeeper_credential` (credential of "
            "ZkSession) to what the servers accept, scheme:secret, for example "
            "digest:user:password; which schemes they accept is in their zoo.cfg "
            "(enforce.auth.schemes, authProvider)"
        )


class BadCertificate(CoordinationError):
    """``what`` is the field of Tls that names ``file``."""

    is_final = True

    def __init__(self, what: str, file: object, why: str) -> None:
        self.what, self.file = what, file
        setting = {"certificate": "cert"}.get(what, what)
        super().__init__(
            f"{file} cannot be used for TLS to ZooKeeper ({_shown(why)}); give a PEM file that "
            f"this process can read, in the setting `zookeeper_tls_{setting}` ({what} of Tls)"
        )


class ConnectionLoss(CoordinationError):
    """The connection broke before an answer came.

    A write may have happened, so repeat only what is idempotent or recognises its own work.
    """

    retriable = True

    def __init__(self, what: str) -> None:
        super().__init__(f"the connection to ZooKeeper was lost during {what}; try again")


class SessionLost(CoordinationError):
    """The session is over and everything ephemeral that it held is gone."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the ZooKeeper session ended before {what} was answered; "
            "what it owned now has no owner: start over with the new session"
        )


class SessionClosed(SessionLost):
    """This side closed the session."""


class PathError(CoordinationError):
    """The server's answer concerns one path."""

    reason = "refused"

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"znode {_shown(path)}: {self.reason}")


class NoNode(PathError):
    reason = "it does not exist"


class NodeExists(PathError):
    reason = "it exists already"


class NotEmpty(PathError):
    reason = "it still has children"


class BadVersion(PathError):
    reason = "it was changed since it was read"


class AccessDenied(PathError):
    is_final = True
    reason = (
        "its access list does not let us; check the credentials of this process, in the setting "
        "`zookeeper_credential` (credential of ZkSession), and the list (zkCli: getAcl)"
    )


class QuotaExceeded(PathError):
    reason = (
        "the ZooKeeper quota of a node above it is used up; raise it (zkCli: setquota) or delete "
        "what is not needed"
    )


class InvalidPath(PathError):
    is_final = True
    reason = "ZooKeeper does not accept this path; avoid control characters, '.', '..' and '//'"


class ServerError(PathError):
    """Any other error code. ``code`` is ZooKeeper's number."""

    def __init__(self, path: str, code: int, name: str) -> None:
        self.code, self.reason = code, f"the server answered {name} ({code})"
        super().__init__(path)


class TooLarge(CoordinationError):
    """``size`` and ``limit`` in bytes. It was not sent: the server would close the connection."""

    is_final = True

    def __init__(self, what: str, size: int, limit: int) -> None:
        self.what, self.size, self.limit = what, size, limit
        super().__init__(
            f"{_shown(what)} needs {size} bytes, and ZooKeeper accepts requests of {limit}; store "
            "less, or raise jute.maxbuffer on every server and then the setting "
            "`zookeeper_max_request_bytes` (max_request_bytes of ZkSession)"
        )


class MalformedRequest(CoordinationError):
    """``why`` says which value has no form on the wire. It was not sent."""

    is_final = True

    def __init__(self, what: str, why: str) -> None:
        self.what, self.why = what, why
        super().__init__(f"{_shown(what)} cannot be sent to ZooKeeper: {_shown(why)}")


class TransactionFailed(CoordinationError):
    """Nothing of a multi happened.

    ``results`` has one entry for each operation: None, except at ``failed_at``, where the
    PathError says why that operation could not be done.
    """

    def __init__(self, results: Sequence[PathError | None]) -> None:
        self.results: list[Any] = list(results)
        self.failed_at = next(index for index, result in enumerate(results) if result is not None)
        self.cause: PathError = self.results[self.failed_at]
        self.is_final = self.cause.is_final
        super().__init__(
            f"transaction of {len(results)} operations rolled back by number {self.failed_at}: "
            f"{self.cause}"
        )


class NotOwner(CoordinationError):
    def __init__(self, partition: int, owner_id: str) -> None:
        self.partition, self.owner_id = partition, owner_id
        super().__init__(
            f"{owner_id} does not own partition {partition} (any longer); "
            "Owners.owner_of returns the owner"
        )


class NotLeader(CoordinationError):
    def __init__(self, election: str, candidate_id: str) -> None:
        self.election, self.candidate_id = election, candidate_id
        super().__init__(
            f"{candidate_id} does not lead {election!r} (any longer); leader_of returns the leader"
        )


class StaleEpoch(CoordinationError):
    def __init__(self, path: str, ours: int, newest: int) -> None:
        self.path, self.ours, self.newest = path, ours, newest
        super().__init__(
            f"znode {path}: a process with epoch {newest} has followed our {ours}; stop writing"
        )


class Mismatch(CoordinationError):
    """The tree in ZooKeeper was prepared with something that this program cannot work with."""

    is_final = True


class BindingRefused(Mismatch):
    """The tree does not belong to the database, or the worker, that it was to serve."""


class DuplicateMember(CoordinationError):
    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        super().__init__(
            f"two members have the id {member_id!r}, so the owners of partitions are ambiguous; "
            "give every member an id of its own"
        )


class IllegalGroupTransition(CoordinationError):
    def __init__(self, state: str, signal: str) -> None:
        self.state, self.signal = state, signal
        super().__init__(f"a group that is {state} has no transition for {signal}; report this")


class GroupError(CoordinationError):
    """A member's request was refused. ``group`` is the group's name."""

    is_final = True

    def __init__(self, group: str, message: str) -> None:
        self.group = group
        super().__init__(f"group {group!r}: {message}")


class UnknownMemberId(GroupError):
    def __init__(self, group: str, member_id: str) -> None:
        self.member_id = member_id
        super().__init__(
            group,
            f"there is no member {member_id} (any longer); "
            "what it owned is lost: join again without an id",
        )


class MemberIdRequired(GroupError):
    """``member_id`` is the id to use."""

    def __init__(self, group: str, member_id: str) -> None:
        self.member_id = member_id
        super().__init__(group, f"a new member needs an id; join again as {member_id}")


class FencedInstanceId(GroupError):
    def __init__(self, group: str, member_id: str, instance_id: str) -> None:
        self.member_id, self.instance_id = member_id, instance_id
        super().__init__(
            group,
            f"another process has joined as instance {instance_id!r}, so member {member_id} is "
            "out; stop, and give every process an instance_id of its own",
        )


class IllegalGeneration(GroupError):
    def __init__(self, group: str, theirs: int, current: int) -> None:
        self.theirs, self.current = theirs, current
        super().__init__(
            group, f"generation {theirs} is not the present one ({current}); join again"
        )


class RebalanceInProgress(GroupError):
    def __init__(self, group: str) -> None:
        super().__init__(group, "a rebalance is in progress; join again")


class InconsistentGroupProtocol(GroupError):
    def __init__(
        self, group: str, offered: Sequence[str], supported: Sequence[Sequence[str]]
    ) -> None:
        self.offered, self.supported = list(offered), [list(names) for names in supported]
        super().__init__(
            group,
            f"no assignor of {self.offered} is supported by all members ({self.supported}); "
            "configure one that all have",
        )


class AssignorFailed(GroupError):
    """Raised to the leader, which ran the assignor."""

    def __init__(self, group: str, assignor: str, what: str) -> None:
        self.assignor = assignor
        super().__init__(
            group, f"its assignor {assignor!r} {what}; correct it, this member has left the group"
        )


class CoordinatorNotAvailable(GroupError):
    def __init__(self, group: str) -> None:
        super().__init__(group, "it was deleted; create it anew, or join another one")


class GroupTooLarge(GroupError):
    """``partitions`` is the number that all members would ask for, ``fit`` how many may."""

    def __init__(self, group: str, members: int, partitions: int, fit: int, limit: int) -> None:
        self.members, self.partitions, self.fit = members, partitions, fit
        super().__init__(
            group,
            f"{members} member{'s' * (members != 1)} with {partitions} partitions would not fit; "
            f"at most {fit} partitions do, in requests of {limit} bytes; share fewer, use several "
            "groups, or raise jute.maxbuffer on every server and then the setting "
            "`zookeeper_max_request_bytes` (max_request_bytes of ZkSession)",
        )


class GroupNotEmpty(GroupError):
    """``members`` are the ids of those whose sessions live, as far as they are known."""

    def __init__(self, group: str, members: Sequence[str]) -> None:
        self.members = list(members)
        shown = [*self.members[:3], *(["…"] if len(self.members) > 3 else [])]
        who = ", ".join(shown) or "one that is just joining"
        super().__init__(group, f"it has members ({who}); stop them, then delete it again")


class MessageTooLarge(CoordinationError):
    """``size`` and ``limit`` in bytes, with the key and the id."""

    def __init__(self, topic: str, message_id: str, size: int, limit: int) -> None:
        self.topic, self.message_id, self.size, self.limit = topic, message_id, size, limit
        super().__init__(
            f"message {message_id!r} for topic {topic!r} has {size} bytes, {limit} are allowed; "
            "store the payload elsewhere and send its address"
        )


def _shown(text: str) -> str:
    """Return ``text`` without lone surrogates, cut to 200 characters."""
    text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= 200 else f"{text[:200]}… ({len(text)} characters)"
