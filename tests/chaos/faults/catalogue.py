"""All faults there are, by name."""

import random
from collections.abc import Callable, Mapping

from shoal.runtime import failpoints
from tests.chaos.cluster.cluster import POSTGRESQL
from tests.chaos.faults import (
    clocks,
    database_work,
    gray,
    intruders,
    network,
    packets,
    points,
    processes,
    purges,
    rows,
    servers,
    storage,
    strangers,
    tenants,
)
from tests.chaos.faults.fault import Fault

Maker = Callable[[random.Random], Fault]

_SIMPLE: tuple[type[Fault], ...] = (
    processes.KillMaster,
    processes.KillTwoMasters,
    processes.KillApi,
    processes.KillAlertServer,
    processes.PauseAlertServer,
    processes.KillWorker,
    processes.KillLauncher,
    processes.KillWatchdog,
    processes.KillSupervision,
    processes.PauseMasterBriefly,
    processes.PauseMasterAlmost,
    processes.PauseMaster,
    processes.PauseMasterLong,
    processes.PauseWorker,
    processes.FreezeWorker,
    processes.RestartMaster,
    processes.RestartWorker,
    servers.KillZooKeeperLeader,
    servers.KillZooKeeperFollower,
    servers.RollZooKeeper,
    servers.LoseQuorum,
    servers.RestartDatabase,
    servers.FlapDatabase,
    servers.StopDatabase,
    servers.PowerCut,
    network.ExpireMaster,
    network.ExpireWorker,
    network.CutMaster,
    network.CutWorker,
    network.LoseRepliesToMaster,
    network.LoseRequestsOfWorker,
    network.ExpireWorkerInTheDark,
    network.FlapMaster,
    network.FlapWorker,
    network.CutMasterFromDatabase,
    packets.LoseWorkerToMaster,
    packets.LoseMasterToWorker,
    packets.LoseToZooKeeper,
    packets.LoseFromZooKeeper,
    packets.LoseFromDatabase,
    packets.PartWorkerAndMasters,
    packets.PartMasterAndWorker,
    packets.PartHostAndLeader,
    packets.PartHostAndFollower,
    packets.CutMasterFromWorkers,
    packets.CutWorkerFromMasters,
    packets.RefuseWorkerToMasters,
    packets.DeleteClaimsOutOfReach,
    network.SwallowClaim,
    network.SwallowRequeue,
    network.SwallowDispatch,
    network.SwallowCommit,
    points.LoseAnswers,
    points.StallMaster,
    points.StallWorker,
    points.FailMasterOnce,
    points.FailWorkerOnce,
    storage.FillDisk,
    clocks.JumpOfMaster,
    clocks.JumpOfWorker,
    clocks.JumpOfApi,
    clocks.JumpOfEverybody,
    clocks.JumpOfDatabase,
    clocks.JumpOfLeader,
    gray.FailOverDatabase,
    gray.SlowDatabase,
    gray.SilenceDatabase,
    gray.ExhaustDescriptors,
    gray.ExhaustProcesses,
    intruders.DeleteOwners,
    intruders.DeleteClaims,
    intruders.DeleteMembers,
    intruders.WriteJunk,
    intruders.WipeZooKeeper,
    strangers.StrangerMaster,
    strangers.RaiseEpochs,
    rows.JunkDefinition,
    rows.JunkParameters,
    rows.JunkOutputs,
    rows.StayQuarantined,
    rows.JunkCommand,
    rows.JunkForReaders,
    purges.KillPurgingMaster,
    database_work.LockRows,
    database_work.LongTransaction,
    database_work.FreezeDatabase,
    database_work.MoveDatabase,
    database_work.HangStandby,
    database_work.ReadOnlyDatabase,
    storage.FillDatabaseDisk,
    storage.MoveSqlite,
    storage.FillPostgres,
    storage.FillZooKeeper,
    storage.SlowPostgres,
    storage.SlowZooKeeper,
    network.ForgetDatabase,
    network.ForgetZooKeeper,
    gray.ExhaustMemory,
    storage.LoseArchive,
    storage.LoseResources,
    storage.HangChannel,
    tenants.Flood,
)


def _at_point(kind: type[points.KillAtPoint], point: str) -> Maker:
    return lambda dice: kind(dice, point)


def _any_point(kind: type[points.KillAtPoint], names: Mapping[str, str]) -> Maker:
    return lambda dice: kind(dice, dice.choice(sorted(names)))


# What a plan draws from; a kind for each, so that the many points do not crowd out the rest.
FAULTS: Mapping[str, Maker] = {
    **{fault.name: fault for fault in _SIMPLE},
    "failpoint-master": _any_point(points.KillMasterAtPoint, failpoints.MASTER),
    "failpoint-worker": _any_point(points.KillWorkerAtPoint, failpoints.WORKER),
}
# Can be asked for by name: "failpoint:claim.after_multi".
POINTS: Mapping[str, Maker] = {
    **{f"failpoint:{p}": _at_point(points.KillMasterAtPoint, p) for p in failpoints.MASTER},
    **{f"failpoint:{p}": _at_point(points.KillWorkerAtPoint, p) for p in failpoints.WORKER},
}


def chosen(names: str, database: str = POSTGRESQL) -> dict[str, Maker]:
    """Return the faults named, separated by commas; all kinds for "".

    A name's beginning chooses all that begin so. Faults that ``database`` cannot have are left out.
    Raises ValueError for a name that chooses nothing.
    """
    without = {fault.name for fault in _SIMPLE if database not in fault.databases}
    faults = {name: maker for name, maker in FAULTS.items() if name not in without}
    if not names:
        return faults
    every = {**faults, **POINTS}
    found: dict[str, Maker] = {}
    for name in names.split(","):
        some = {name: every[name]} if name in every else _beginning(name, every)
        if not some:
            raise ValueError(f"no fault is called {name!r}; there are {', '.join(every)}")
        found |= some
    return found


def _beginning(prefix: str, every: Mapping[str, Maker]) -> dict[str, Maker]:
    return {name: maker for name, maker in every.items() if name.startswith(prefix)}
