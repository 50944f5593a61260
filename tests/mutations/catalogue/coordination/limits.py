"""What ZooKeeper would not accept is refused before it is sent."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_WIRE = Place("shoal.coordination.session.wire")
_LIMITS = "tests/integration/coordination/session/test_limits.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.PROGRESS.broken_if(
        "a request that is too large for the server is sent",
        _WIRE["serialize"].never("size > limit"),
        f"{_LIMITS}::test_a_session_may_be_given_another_limit",
    ),
)
