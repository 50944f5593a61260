"""A fault that swallows requests recognises them, and no others."""

from shoal.coordination.session import wire
from tests.chaos.faults.network import SwallowClaim, SwallowRequeue

ENTRY = "/queue/default/2-000000000/000000000001-2-00000000000/00000000000007-p003"
CLAIM = "/claims/07/7"


def test_requeues_are_told_from_claims_releases_and_transfers() -> None:
    create_claim = wire.create(CLAIM, b"worker-1", wire.EPHEMERAL)
    create_entry = wire.create(ENTRY, b"", wire.PERSISTENT)
    returned = wire.multi([wire.delete(CLAIM), create_entry])
    others = [
        wire.multi([wire.delete(ENTRY), create_claim, wire.delete(ENTRY), create_claim]),
        wire.multi([wire.delete(CLAIM), wire.delete(CLAIM)]),
        wire.multi([wire.delete(CLAIM), create_claim]),
    ]
    assert SwallowRequeue.pattern.search(returned.serialize())
    assert not any(SwallowRequeue.pattern.search(other.serialize()) for other in others)
    assert all(SwallowClaim.pattern in each.serialize() for each in (returned, *others))
