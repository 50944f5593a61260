"""What the process of an HTTP attempt does."""

import asyncio
from collections.abc import Mapping

from shoal.core.timing.durations import format_duration
from shoal.runtime.outbound.addresses import AddressPolicy
from shoal.runtime.outbound.guard import AddressRefused, Proxy
from shoal.worker.supervisor.shim.outputs import LONGEST_VALUE, MOST_BYTES
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.work import Work
from shoal.worker.types.http.answer import HttpAnswer, Unusable, as_text
from shoal.worker.types.http.checks import GOOD, SearchTooSlow, has_status, missed
from shoal.worker.types.http.conversation import Conversation, advice, show_body
from shoal.worker.types.http.disclosure import Shown
from shoal.worker.types.http.failures import Fate, may_pass
from shoal.worker.types.http.kind import HttpParams
from shoal.worker.types.http.values import Source
from shoal.worker.types.http.wire.exchange import (
    BODY_FILE,
    Exchange,
    Limits,
    NoAnswer,
    Ways,
)


async def run(work: Work[HttpParams]) -> None:
    """Send the request, judge the answer, give its values on. Raises WorkFailed."""
    work.settled()  # no worker can end what a server does; of the request nothing goes on after us
    shown = Shown.of(work.secrets.values(), work.params.auth)
    try:
        await _within_deadline(work, shown)
    except WorkFailed as failed:
        raise WorkFailed(shown.masked(str(failed)), exit_code=failed.exit_code) from None


async def _within_deadline(work: Work[HttpParams], shown: Shown) -> None:
    params = work.params
    fate = Fate(is_idempotent=params.is_idempotent, note=work.not_repeatable)
    exchange = Exchange(
        _ways(work),
        work.folder,
        Limits(params.most_bytes, params.download is not None),
        sent=fate.sent,
        received=lambda done, total: work.progress(done, total, "bytes"),
    )
    conversation = Conversation(work, exchange, shown, fate)
    try:
        async with asyncio.timeout(params.timeout) as deadline:
            answer = await conversation.hold()
            _judge(work, answer, shown, fate)
            _give(work, answer, shown, fate)
    except TimeoutError:
        if not deadline.expired():
            raise
        text = f"not done within {format_duration(params.timeout)}: {conversation.doing}"
        raise fate.failure(text, may_pass=True) from None
    except NoAnswer as error:
        raise fate.failure(str(error), may_pass=error.may_pass) from error
    except AddressRefused as error:
        raise WorkFailed(str(error), permanent=True) from error
    except SearchTooSlow:
        text = "success or until: the regular expression takes too long for this body"
        raise WorkFailed(text, permanent=True) from None


def _ways(work: Work[HttpParams]) -> Ways:
    try:
        policy = AddressPolicy.of(work.settings)
    except ValueError as error:
        text = f"the worker's settings http_allow and http_deny: {error}"
        raise WorkFailed(text) from None
    return Ways(policy, Proxy.of(work.settings), work.params.ca_certificate)


def _judge(work: Work[HttpParams], answer: HttpAnswer, shown: Shown, fate: Fate) -> None:
    """Raise WorkFailed if the answer is not what it has to be."""
    params = work.params
    until = params.poll.until.status if params.poll is not None else None
    good = params.success.status or until or GOOD
    problem = missed(params.success, answer, good)
    if problem is None:
        if params.log_body and params.download is None:
            show_body(work, shown, answer)
        return
    show_body(work, shown, answer)
    passes = has_status(answer, good) or may_pass(answer.status)
    raise fate.failure(problem + advice(answer, shown), may_pass=passes)


def _give(work: Work[HttpParams], answer: HttpAnswer, shown: Shown, fate: Fate) -> None:
    """Set the outputs, and leave the download under its name. Raises WorkFailed."""
    params = work.params
    file = work.folder / (params.download or BODY_FILE)
    try:
        if params.download is not None:
            answer.body.rename(file)
        values = {
            name: shown.masked(as_text(answer.value(Source.read(source), file)))
            for name, source in params.outputs.items()
        }
    except (Unusable, OSError) as error:
        show_body(work, shown, answer)
        raise fate.failure(f"outputs: {error}", may_pass=True) from error
    _require_usable(values)
    if values:
        work.output(**values)


def _require_usable(values: Mapping[str, str]) -> None:
    """Raise WorkFailed for outputs that no task could receive, before the worker refuses them."""
    sizes = {}
    for name, value in values.items():
        try:
            sizes[name] = len(value.encode("utf-8"))
        except UnicodeEncodeError:
            raise WorkFailed(
                f"outputs: the value of {name} holds half of a character", permanent=True
            ) from None
        if "\0" in value:
            text = f"outputs: the value of {name} holds a NUL character"
            raise WorkFailed(text, permanent=True)
        if sizes[name] > LONGEST_VALUE:
            raise WorkFailed(
                f"outputs: the value of {name} has {sizes[name]:,} bytes, at most "
                f"{LONGEST_VALUE:,} are allowed; take a part of it by a JSON path, or download it",
                permanent=True,
            )
    if (total := sum(len(name) + size for name, size in sizes.items())) > MOST_BYTES:
        text = f"outputs: they make {total:,} bytes, at most {MOST_BYTES:,} are allowed"
        raise WorkFailed(text, permanent=True)
