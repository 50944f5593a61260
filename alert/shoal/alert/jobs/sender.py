"""The job that sends a share of the messages.

A message is stored as SENDING before it leaves, and what came of it afterwards. So a server that
is killed in between leaves one that the next server sends again: at least once, and after one
death at most twice. Each channel has a limit of its own, so a dead one holds up no other. Projects
take turns (``Deliveries.due``), so one that floods its channels delays no other by more than a
message in each turn.

A message that cannot be written as usual is sent as plain text. One that cannot be sent at all
fails. Both are quarantined with the reason, and hold up no other.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog
from pydantic import ValidationError

from shoal.alert.jobs.catalog import Catalog, Named
from shoal.alert.jobs.quarantine import quarantined
from shoal.alert.settings import AlertSettings
from shoal.core.alerts.channels import SEND_S, ChannelFailed, Way
from shoal.core.alerts.messages.composition import reworded, write
from shoal.core.alerts.messages.fallback import MOST_PLAIN, write_plain
from shoal.core.alerts.messages.message import AlertMessage
from shoal.core.alerts.receivers import ChannelSpec
from shoal.core.alerts.records import AlertDelivery, AlertState, DeliveryKind, DeliveryState, Try
from shoal.core.alerts.rules import Language, RuleSpec
from shoal.core.alerts.shares import job_of
from shoal.core.alerts.times import pause_s
from shoal.core.errors import ShoalError, UnusablePlugin
from shoal.core.runs.quarantine import ItemKind, QuarantinedItem, reason_of
from shoal.runtime.plugins import load_channel
from shoal.runtime.secret_stores.resolver import Resolver
from shoal.runtime.side.templates import Templates
from shoal.runtime.vault import Vault
from shoal.sql import Database, UnitOfWork
from shoal.sql.errors import JobTaken, UnreadableRow
from shoal.sql.isolation import is_outage

log = structlog.get_logger()

_TAKEN_AT_ONCE = 20  # messages
_MOST_MENTIONED = 100_000  # alerts of a message
_LONGEST_ANSWER = 1_000  # characters
_LEAVE_S = 10.0  # for messages that are under way when the job moves to another server


@dataclass
class _ChannelQueue:
    """What one channel is at."""

    sending: int = 0
    sent_at: list[float] = field(default_factory=list)  # in the last minute, monotonic

    def has_room(self, spec: ChannelSpec, at_once: int, now_s: float) -> bool:
        """Say whether another message may leave now."""
        self.sent_at = [one for one in self.sent_at if now_s - one < 60.0]
        return self.sending < at_once and len(self.sent_at) < spec.per_minute


class ChannelSecrets:
    """Opens them, as masters do for tasks."""

    def __init__(self, database: Database, vault: Vault, resolver: Resolver) -> None:
        self._database, self._vault, self._resolver = database, vault, resolver

    async def of(self, project: str, options: Mapping[str, object], asker: int) -> dict[str, str]:
        """Return the values by the names of the options: those that end in ``_secret``.

        Raises ChannelFailed, VaultError, SecretStoreError.
        """
        wanted = {
            key: name
            for key, name in options.items()
            if key.endswith("_secret") and isinstance(name, str) and name
        }
        if not wanted:
            return {}
        async with self._database.unit_of_work(read_only=True) as uow:
            stored = await uow.secrets.stored(project)
        found = {}
        for key, name in wanted.items():
            one = stored.get(name)
            if one is None:
                text = f"{key}: the project {project} has no secret {name}"
                raise ChannelFailed(text, may_pass=False)
            if one.reference is not None:
                found[key] = await self._resolver.value(project, one.reference, asker)
            else:
                found[key] = await asyncio.to_thread(
                    self._vault.open, project, name, one.ciphertext
                )
        return found


class AlertSender:
    """Sends the messages of a share for one epoch of its job."""

    def __init__(
        self,
        database: Database,
        share: int,
        epoch: int,
        settings: AlertSettings,
        clock: Callable[[], datetime],
        secrets: ChannelSecrets,
        cluster: str,
        templates: Templates,
    ) -> None:
        self._database, self._share, self._epoch = database, share, epoch
        self._settings, self._clock = settings, clock
        self._secrets, self._cluster, self._templates = secrets, cluster, templates
        self._catalog = Catalog()
        self._lines: defaultdict[Named, _ChannelQueue] = defaultdict(_ChannelQueue)
        self._under_way: set[asyncio.Task[None]] = set()
        self._last_project = ""  # whose turn it was last
        self._ended: Exception | None = None

    async def run(self) -> None:
        """Send until cancelled; messages under way may end then. Raises JobTaken, SqlError."""
        async with self._database.unit_of_work() as uow:
            await uow.alert_jobs.begin(job_of(self._share), self._epoch)
            again = await uow.deliveries.take_back(self._share, self._clock())
            await uow.commit()
        if again:
            log.warning("messages of another server are sent again", count=again)
        try:
            while self._ended is None:
                if not await self._take():
                    await asyncio.sleep(self._settings.poll_s)
            raise self._ended
        finally:
            if self._under_way:
                _, late = await asyncio.wait(set(self._under_way), timeout=_LEAVE_S)
                for task in late:
                    task.cancel()
                await asyncio.gather(*late, return_exceptions=True)

    async def _take(self) -> int:
        """Begin to send what is due and has room; return how many messages were looked at."""
        now = self._clock()
        async with self._database.unit_of_work(read_only=True) as uow:
            await self._catalog.refresh(uow, now)
            bad: list[UnreadableRow] = []
            due = await uow.deliveries.due(
                self._share,
                now,
                _TAKEN_AT_ONCE,
                self._busy(),
                bad.append,
                each=self._settings.at_once,
                after=self._last_project,
            )
        for row in bad:
            await self._give_up(int(str(row.key)), None, row)
        if not due:
            return 0
        looked_at = 0
        for delivery in due:
            place = delivery.project, delivery.channel
            channel = self._catalog.channels.get(place)
            line = self._lines[place]
            if channel is not None and not line.has_room(
                channel, self._settings.at_once, time.monotonic()
            ):
                continue
            looked_at += 1
            self._last_project = delivery.project
            try:
                message = await self._claim(delivery, now)
            except Exception as error:
                if is_outage(error):
                    raise
                await self._give_up(delivery.id, delivery.project, error)
                continue
            if message is None:
                continue
            line.sending += 1
            line.sent_at.append(time.monotonic())
            task = asyncio.create_task(self._send(delivery, *message, channel, line))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
        return looked_at

    def _busy(self) -> list[Named]:
        now_s = time.monotonic()
        return [
            place
            for place, line in self._lines.items()
            if (spec := self._catalog.channels.get(place)) is not None
            and not line.has_room(spec, self._settings.at_once, now_s)
        ]

    async def _claim(
        self, delivery: AlertDelivery, now: datetime
    ) -> tuple[AlertMessage, RuleSpec | None] | None:
        """Store that a message is being sent; return it, and the rule that has its templates.

        None: it is not to be sent.
        """
        async with self._database.unit_of_work() as uow:
            await uow.alert_jobs.require(job_of(self._share), self._epoch)
            if not await uow.deliveries.claim(delivery.id):
                return None
            mentioned = await uow.deliveries.mentioned(delivery.id, _MOST_MENTIONED)
            if await self._is_withdrawn(uow, delivery, mentioned):
                await uow.deliveries.settle(
                    delivery.id,
                    DeliveryState.WITHDRAWN,
                    now,
                    "it had recovered before the message left",
                )
                await uow.commit()
                return None
            await uow.commit()
        # Nothing more is added to a message that is being sent, so it can be written now.
        try:
            return await self._written(delivery, mentioned, now)
        except Exception as error:
            if is_outage(error):
                raise
            return await self._plain(delivery, mentioned, error), None

    async def _written(
        self, delivery: AlertDelivery, mentioned: Sequence[int], now: datetime
    ) -> tuple[AlertMessage, RuleSpec | None]:
        """Return a message as it usually is, and its rule if that is still there."""
        async with self._database.unit_of_work(read_only=True) as uow:
            facts = await uow.alert_facts.read(delivery, mentioned, now)
        rule = self._catalog.rule(delivery.project, delivery.rule)
        language = rule.language if rule is not None else Language.ENGLISH
        return write(facts, language, self._settings.public_url, self._cluster), rule

    async def _plain(
        self, delivery: AlertDelivery, mentioned: Sequence[int], error: Exception
    ) -> AlertMessage:
        """Return a message that says less, and quarantine the usual one."""
        await self._quarantine(delivery.id, delivery.project, error)
        async with self._database.unit_of_work(read_only=True) as uow:
            alerts = await uow.alerts.known(mentioned[-MOST_PLAIN:])
        return write_plain(delivery, alerts, len(mentioned), self._cluster, reason_of(error))

    async def _give_up(self, delivery_id: int, project: str | None, error: Exception) -> None:
        """Quarantine a message that cannot be sent; it has failed."""
        record = self._record(delivery_id, project, error)
        async with self._database.unit_of_work() as uow:
            await uow.alert_jobs.require(job_of(self._share), self._epoch)
            await uow.quarantine.note(record)
            await uow.deliveries.settle(
                delivery_id, DeliveryState.FAILED, self._clock(), record.reason
            )
            await uow.commit()

    async def _quarantine(self, delivery_id: int, project: str | None, error: Exception) -> None:
        record = self._record(delivery_id, project, error)
        async with self._database.unit_of_work() as uow:
            await uow.alert_jobs.require(job_of(self._share), self._epoch)
            await uow.quarantine.note(record)
            await uow.commit()

    def _record(self, delivery_id: int, project: str | None, error: Exception) -> QuarantinedItem:
        now = self._clock()
        return quarantined(
            ItemKind.MESSAGE, delivery_id, error, now, project=project, is_skipped=True
        )

    async def _is_withdrawn(
        self, uow: UnitOfWork, delivery: AlertDelivery, mentioned: list[int]
    ) -> bool:
        """Say whether a message is unnecessary: none was sent, and all alerts have recovered."""
        if delivery.tries > 0 or delivery.kind in (DeliveryKind.RESOLVED, DeliveryKind.TEST):
            return False
        found = await uow.alerts.known(mentioned)
        # One that cannot be read may go on.
        return len(found) == len(mentioned) and all(
            one.state is AlertState.RESOLVED for one in found
        )

    async def _send(
        self,
        delivery: AlertDelivery,
        message: AlertMessage,
        rule: RuleSpec | None,
        channel: ChannelSpec | None,
        line: _ChannelQueue,
    ) -> None:
        began, started = self._clock(), time.monotonic()
        try:
            if rule is not None:  # here, where other projects do not wait for it
                message = await _reworded(self._templates, delivery.project, message, rule)
            secrets: dict[str, str] = {}
            is_sent, may_pass, answer = await self._attempt(delivery, message, channel, secrets)
            answer = _masked(answer, secrets.values())
            took_s = time.monotonic() - started
            number = delivery.tries + 1
            pause = pause_s(number) if may_pass else None
            state = DeliveryState.SENT if is_sent else DeliveryState.FAILED
            due_at = None
            if not is_sent and pause is not None:
                state, due_at = DeliveryState.PENDING, self._clock() + timedelta(seconds=pause)
            tried = Try(number, began, took_s, is_sent, answer)
            await self._store(delivery, state, tried, due_at)
            log.info(
                "message",
                delivery=delivery.id,
                channel=f"{delivery.project}/{delivery.channel}",
                state=state,
                attempt=number,
                seconds=round(took_s, 3),
                answer=answer,
            )
        except JobTaken as error:
            self._ended = error
        except Exception as error:  # noqa: BLE001 - of an outage, or of this message
            await self._not_stored(delivery, error)
        finally:
            line.sending -= 1

    async def _not_stored(self, delivery: AlertDelivery, error: Exception) -> None:
        """See to a message whose outcome could not be stored."""
        log.warning("what came of a message is not stored", delivery=delivery.id, error=str(error))
        if not is_outage(error):
            try:
                return await self._give_up(delivery.id, delivery.project, error)
            except Exception as again:  # noqa: BLE001 - then it is not of this message alone
                error = again
        self._ended = error  # the job begins anew, and sends it again
        return None

    async def _store(
        self, delivery: AlertDelivery, state: DeliveryState, tried: Try, due_at: datetime | None
    ) -> None:
        now = self._clock()
        async with self._database.unit_of_work() as uow:
            await uow.alert_jobs.require(job_of(self._share), self._epoch)
            await uow.deliveries.add_try(delivery.id, tried)
            await uow.deliveries.settle(delivery.id, state, now, tried.answer, due_at)
            if state is DeliveryState.SENT:
                await uow.alerts.note_told(delivery.id, now)
            await uow.commit()

    async def _attempt(
        self,
        delivery: AlertDelivery,
        message: AlertMessage,
        channel: ChannelSpec | None,
        secrets: dict[str, str],
    ) -> tuple[bool, bool, str]:
        """Return whether a message was sent, whether a failure may pass, and what was said.

        ``secrets`` gets those that the channel is given: what is said may hold them.
        """
        if channel is None:
            return False, False, f"there is no channel {delivery.channel}, or it was deleted"
        if not channel.enabled:
            return False, False, f"the channel {delivery.channel} is disabled"
        try:
            kind = load_channel(channel.kind)
            options = kind.Options.model_validate(channel.options)
            secrets |= await self._secrets.of(delivery.project, channel.options, delivery.id)
            way = Way(delivery.recipients, secrets, self._settings.for_channels())
            if kind.needs_addresses and not delivery.recipients:
                return False, False, f"receiver {delivery.receiver} names no address for it"
            async with asyncio.timeout(SEND_S):
                answer = await kind().send(message, options, way)
        except TimeoutError:
            return False, True, f"no answer within {SEND_S:g} s"
        except ChannelFailed as error:
            return False, error.may_pass, str(error)[:_LONGEST_ANSWER]
        except UnusablePlugin as error:  # on this server: another one may have a sound package
            return False, True, str(error)[:_LONGEST_ANSWER]
        except ValidationError as error:
            where = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            return False, False, f"the channel's options are wrong: {where}"[:_LONGEST_ANSWER]
        except ShoalError as error:
            return False, error.retriable, str(error)[:_LONGEST_ANSWER]
        except Exception as error:
            log.exception("a channel has failed in an unexpected way", delivery=delivery.id)
            return False, True, f"unexpected: {error!r}"[:_LONGEST_ANSWER]
        return True, False, answer[:_LONGEST_ANSWER]


def _masked(text: str, secrets: Iterable[str]) -> str:
    """Return what a channel has said without the secrets that it was given."""
    for one in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(one, "***")
    return text


async def _reworded(
    templates: Templates, project: str, message: AlertMessage, rule: RuleSpec
) -> AlertMessage:
    """Return a message as the rule's templates have it; where they fail, as it was, saying so."""
    facts = {**message.facts, "text": message.text}
    words = []
    try:
        for one in (rule.templates.subject, rule.templates.text):
            words.append(await templates.render(project, one, facts) if one else "")  # noqa: PERF401
    except Exception as error:  # noqa: BLE001 - whatever a template does, the message is sent
        said = f"{message.text}\nThe templates of the rule cannot be used: {reason_of(error)}\n"
        return reworded(message, "", said)
    return reworded(message, *words)
