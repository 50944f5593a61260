"""A master process: put the parts together, run until told to stop, leave in order."""

import asyncio
import contextlib
import os
import signal
import socket
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime

import structlog

from shoal.coordination import Bells, Members, Membership, TaskQueue, ZkSession, layout
from shoal.coordination.bell import ring
from shoal.core.settings import ClusterSettings
from shoal.master.engine import Engine
from shoal.master.partitions import PartitionKeeper
from shoal.master.perform import Performer
from shoal.master.rpc import MasterRpc
from shoal.master.scan import Scanner
from shoal.master.schedules import Scheduler
from shoal.master.settings import MasterSettings
from shoal.master.sweep import Sweeper
from shoal.master.timers import Timers
from shoal.proto.channels import Channels
from shoal.proto.server import start_server
from shoal.proto.shoal_pb2_grpc import add_MasterServiceServicer_to_server
from shoal.proto.tls import TlsFiles
from shoal.sql import Database

log = structlog.get_logger()

_STOP_GRACE_S = 5.0


def utc_now() -> datetime:
    """The clock of a master."""
    return datetime.now(UTC)
