"""Every mutation. A new safety check gets one here, and a test that notices its loss."""

from tests.mutations.catalogue import (
    admission,
    backfills,
    children,
    coordination,
    database,
    group,
    hand_on,
    master,
    secrets,
    slots,
    worker,
)
from tests.mutations.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = (
    *database.MUTATIONS,
    *coordination.MUTATIONS,
    *group.MUTATIONS,
    *master.MUTATIONS,
    *hand_on.MUTATIONS,
    *admission.MUTATIONS,
    *backfills.MUTATIONS,
    *children.MUTATIONS,
    *slots.MUTATIONS,
    *worker.MUTATIONS,
    *secrets.MUTATIONS,
)
