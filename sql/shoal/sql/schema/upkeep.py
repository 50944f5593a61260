"""The cluster itself: partitions, what is in quarantine, events, purges."""

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, Table, false

from shoal.sql.schema.metadata import metadata, row_id
from shoal.sql.schema.types import Json, OneLine, Prose, UtcDateTime

# One row, whose number is 1. ``uid`` is random and no other cluster's. ``tree`` is the id of the
# ZooKeeper tree from which the database is served (NULL: not bound yet), ``tree_address`` where
# that tree was when it was bound, ``tree_beats`` grows while masters serve it. Written by roles
# that bind, and by masters. See ``coordination/cluster/binding.py``.
cluster = Table(
    "cluster",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("uid", OneLine(36), nullable=False),
    Column("tree", OneLine(36)),
    Column("tree_address", Prose),
    Column("tree_beats", BigInteger, nullable=False, server_default="0"),
)

# What the cluster has been called, oldest first; the last row has its present name. A copy that was
# given a new name has the original's before it. ``after_…``: the highest ids when the name was new.
cluster_name = Table(
    "cluster_name",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("uid", OneLine(36), nullable=False),
    Column("after_attempt", BigInteger, nullable=False),
    Column("after_resource", BigInteger, nullable=False),
)

# One row, whose number is 1: ids of keys. ``primary_key`` encrypts secrets and passwords, NULL: the
# first key of the file; ``next_key`` is to take its place; ``old`` may still be in use, ``retired``
# never again.
sealing = Table(
    "sealing",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("primary_key", OneLine(20)),
    Column("next_key", OneLine(20)),
    Column("old", Json(list, texts=True), nullable=False),
    Column("retired", Json(list, texts=True), nullable=False),
)

# Rows that processes write to see whether the database stores anything. Each has a random number,
# so that they seldom wait for each other. See ``write_check.py``.
write_check = Table(
    "write_check",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("writes", BigInteger, nullable=False),
)

# ``epoch`` is written by the partition's owner when it takes over, and checked by every write.
partition = Table(
    "partition",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, nullable=False),
    Column("owner", OneLine(255)),
    Column("purged_at", UtcDateTime),  # when all rules were last applied; NULL: not yet
)

# Takeovers of partitions, for people; only the newest are kept.
takeover = Table(
    "takeover",
    metadata,
    row_id(),
    Column("at", UtcDateTime, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("owner", OneLine(255), nullable=False),
    Column("previous_owner", OneLine(255)),  # None: it never had one
    sqlite_autoincrement=True,
)

# What a consumer cannot work with: see ``shoal.core.runs.quarantine``. Rows with a partition are
# written by its owner.
quarantine = Table(
    "quarantine",
    metadata,
    Column("consumer", OneLine(20), primary_key=True),
    Column("kind", OneLine(20), primary_key=True),
    Column("item", OneLine(255), primary_key=True),  # its id as text, or its name
    Column("partition", Integer, index=True),  # NULL: not of a partition
    Column("project", OneLine(100)),
    Column("workflow", OneLine(100)),
    Column("reason", Prose, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("since", UtcDateTime, nullable=False),
    Column("last_at", UtcDateTime),  # of the last try; NULL: ``since``
    Column("is_skipped", Boolean, nullable=False, server_default=false()),  # never tried again
    Column("retry_at", UtcDateTime),  # when a retry was requested that is not done yet
)

# No foreign keys: events are pruned by age alone.
event = Table(
    "event",
    metadata,
    row_id(),
    Column("at", UtcDateTime, nullable=False, index=True),
    Column("kind", OneLine(50), nullable=False),
    Column("project", OneLine(100), nullable=False),
    Column("workflow_instance_id", BigInteger),
    Column("task_instance_id", BigInteger),
    Column("data", Json(dict), nullable=False),
    sqlite_autoincrement=True,
)
Index(None, event.c.workflow_instance_id, event.c.id)

# A request to delete history; each partition's owner does its own part. See ``purges.py``.
purge = Table(
    "purge",
    metadata,
    row_id(),
    Column("is_rehearsal", Boolean, nullable=False),  # count, delete nothing
    Column("before", UtcDateTime),  # NULL: what the masters' rules say
    Column("project", OneLine(100)),
    Column("workflow_id", BigInteger),
    Column("requested_by", OneLine(255), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("even_if_not_exported", Boolean, nullable=False, server_default=false()),
    sqlite_autoincrement=True,
)

purge_part = Table(
    "purge_part",
    metadata,
    Column("purge_id", ForeignKey("purge.id"), primary_key=True, autoincrement=False),
    Column("partition", Integer, primary_key=True, autoincrement=False),
    Column("instances", BigInteger, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("events", BigInteger, nullable=False),
    Column("commands", BigInteger, nullable=False),
    Column("backfills", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False, server_default="0"),  # they wait for the export
    Column("oldest", UtcDateTime),  # end of the oldest instance that goes
    Column("finished_at", UtcDateTime),
)
IS_OPEN_PART = purge_part.c.finished_at.is_(None)
Index(
    "ix_purge_part_open",
    purge_part.c.partition,
    purge_part.c.purge_id,
    sqlite_where=IS_OPEN_PART,
    postgresql_where=IS_OPEN_PART,
)

# How far the history was exported; one row, whose number is 1. ``sequence`` counts the exports,
# ``manifest`` is that of the last one.
history_export = Table(
    "history_export",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("sequence", BigInteger, nullable=False),
    Column("position", Json(dict), nullable=False),
    Column("manifest", Json(dict), nullable=False),
)

# Which batch of roll-ups counts, by the result of a job for a day. ``digest`` is the SHA-256 of the
# file that it came from, ``rows`` how many that has.
rollup_day = Table(
    "rollup_day",
    metadata,
    Column("job", OneLine(50), primary_key=True),
    Column("day", OneLine(10), primary_key=True),  # YYYY-MM-DD
    Column("batch", BigInteger, nullable=False),
    Column("digest", OneLine(64), nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("stored_at", UtcDateTime, nullable=False),
)

# Batches that do not count: those that are being written, and those that are to be removed, whose
# ``touched_at`` is NULL. Whatever is in ``rollup`` is of a batch here or in ``rollup_day``.
rollup_batch = Table(
    "rollup_batch",
    metadata,
    row_id(),
    Column("job", OneLine(50), nullable=False),
    Column("day", OneLine(10), nullable=False),
    Column("touched_at", UtcDateTime),
    sqlite_autoincrement=True,
)

# The rows of a batch, a block for each workflow (see ``NewBlock``); a large one is divided,
# ``place`` 0 first. Rows of no project are in the block whose project and workflow are empty. So
# are aggregates, which have places below 0.
rollup = Table(
    "rollup",
    metadata,
    Column("batch", BigInteger, primary_key=True, autoincrement=False),
    Column("project", OneLine(100), primary_key=True),
    Column("workflow", OneLine(100), primary_key=True),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("body", Json(list), nullable=False),
)

# Up to where the exported history was found whole in its storage, which the purge goes by; one row,
# whose number is 1. The numbers are those of ``history_export.position``, of the export
# ``sequence``. ``checked``: the file that was looked at last. ``trouble``: why it is behind.
history_verified = Table(
    "history_verified",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("sequence", BigInteger, nullable=False),
    Column("event", BigInteger, nullable=False),
    Column("instances", BigInteger, nullable=False),
    Column("instances_end", BigInteger, nullable=False),
    Column("command", BigInteger, nullable=False),
    Column("open_commands", Json(list), nullable=False),
    Column("takeover", BigInteger, nullable=False),
    Column("verified_at", UtcDateTime),
    Column("checked", OneLine(255), nullable=False),
    Column("trouble", Prose),
    Column("trouble_since", UtcDateTime),
)
