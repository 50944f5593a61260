"""Each kind of channel, against the real thing on the other side."""

import asyncio
import hashlib
import hmac
import json
import os
import signal
import socket
import ssl
import subprocess
import threading
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from shoal.alert.channels import chat, snmp
from shoal.alert.channels.chat import Chat, ChatOptions
from shoal.alert.channels.email import Email, EmailOptions
from shoal.alert.channels.script import Script, ScriptOptions
from shoal.alert.channels.snmp import Snmp, SnmpOptions
from shoal.alert.channels.webhook import Webhook, WebhookOptions
from shoal.core.alerts.channels import ChannelFailed, Way
from shoal.core.alerts.messages.message import AlertMessage
from shoal.core.alerts.records import DeliveryKind
from shoal.core.alerts.rules import Severity
from tests.support.programs import program
from tests.support.servers.authority import Authority
from tests.support.servers.http_server import HttpServer, Received, answer, says
from tests.support.waiting import DEADLINE_S, eventually

ROOT = Path(__file__).parents[3]
MESSAGE = AlertMessage(
    "cluster-7",
    DeliveryKind.FIRING,
    Severity.CRITICAL,
    "p",
    "[critical] p: daily failed\nBcc: all@example.org",
    "daily failed\n  exit code 3: $(id) `id` ; <b>\n",
    "<p>daily failed</p>",
    {"key": "cluster-7", "alerts": [{"workflow": "daily"}], "url": "https://shoal.example/runs/7"},
)
LOOPBACK = {"http_allow": "127.0.0.0/8"}


def way(*to: str, settings: dict[str, str] | None = None, **secrets: str) -> Way:
    return Way(to, secrets, LOOPBACK if settings is None else settings)


# -- webhooks ---------------------------------------------------------------------------------


@pytest.fixture
async def sink() -> AsyncIterator[HttpServer]:
    async with HttpServer({"/": says(answer(200, "thanks"))}) as server:
        yield server


async def test_webhooks_are_signed_and_have_a_key(sink: HttpServer) -> None:
    options = WebhookOptions(url=f"{sink.url}/", signing_secret="s", headers={"X-Team": "ops"})
    said = await Webhook().send(MESSAGE, options, way(signing_secret="hush"))
    [request] = sink.received
    assert said == "200 thanks"
    assert json.loads(request.body) == MESSAGE.facts
    assert request.headers["x-team"] == "ops"
    assert request.headers["idempotency-key"] == "cluster-7"
    at, made = (part.split("=")[1] for part in request.headers["shoal-signature"].split(","))
    signed = hmac.new(b"hush", f"{at}.".encode() + request.body, hashlib.sha256)
    assert made == signed.hexdigest()


@pytest.mark.parametrize(
    ("status", "may_pass"),
    [(500, True), (503, True), (429, True), (408, True), (400, False), (404, False), (302, False)],
)
async def test_answers_of_webhooks(sink: HttpServer, status: int, may_pass: bool) -> None:
    sink.handlers["/"] = says(answer(status, "no", Location=f"{sink.url}/other"))
    with pytest.raises(ChannelFailed, match=f"^{status} no") as failed:
        await Webhook().send(MESSAGE, WebhookOptions(url=f"{sink.url}/"), way())
    assert failed.value.may_pass is may_pass
    assert len(sink.received) == 1


async def test_a_webhook_reaches_no_address_that_is_refused(sink: HttpServer) -> None:
    for url in (f"{sink.url}/", "http://localhost/", "http://169.254.169.254/latest"):
        with pytest.raises(ChannelFailed, match="may not be reached") as failed:
            await Webhook().send(MESSAGE, WebhookOptions(url=url), way(settings={}))
        assert not failed.value.may_pass
    assert not sink.received


async def test_a_webhook_that_hangs_up_or_is_not_there_may_come_back(sink: HttpServer) -> None:
    async def hang_up(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.close()

    sink.handlers["/"] = hang_up
    for url in (f"{sink.url}/", "http://127.0.0.1:1/"):
        with pytest.raises(ChannelFailed) as failed:
            await Webhook().send(MESSAGE, WebhookOptions(url=url), way())
        assert failed.value.may_pass


async def test_an_endless_answer_is_cut_off(sink: HttpServer) -> None:
    async def endless(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    sink.handlers["/"] = endless
    async with asyncio.timeout(DEADLINE_S):
        said = await Webhook().send(MESSAGE, WebhookOptions(url=f"{sink.url}/"), way())
    assert len(said) < 400


async def test_certificates_of_webhooks_are_verified(tmp_path: Path) -> None:
    authority = Authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    files = authority.identity(tmp_path, "localhost")
    context.load_cert_chain(files.cert, files.key)
    async with HttpServer({"/": says(answer(200))}, tls=context) as server:
        url = server.url.replace("127.0.0.1", "localhost") + "/"
        known = WebhookOptions(url=url, ca_certificate=authority.pem.decode())
        assert await Webhook().send(MESSAGE, known, way()) == "200"
        for bad in (url, server.url + "/"):
            with pytest.raises(ChannelFailed, match="not trusted"):
                await Webhook().send(MESSAGE, WebhookOptions(url=bad), way())
        assert len(server.received) == 1


def test_a_webhook_has_one_address() -> None:
    for options in ({}, {"url": "http://a", "url_secret": "b"}, {"url": "ftp://a"}):
        with pytest.raises(ValueError):
            WebhookOptions.model_validate(options)


# -- e-mail -----------------------------------------------------------------------------------


class Mailbox:
    """Keeps what it is handed."""

    def __init__(self) -> None:
        self.taken: list[Envelope] = []

    async def handle_RCPT(  # noqa: N802 - the library's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address.startswith("nobody"):
            return "550 no such mailbox"
        if address.startswith("full"):
            return "452 mailbox full"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 - the library's name
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        self.taken.append(envelope)
        return "250 queued as 1"


@asynccontextmanager
async def smtp(
    tmp_path: Path, authority: Authority, *, encrypted: bool = False
) -> AsyncIterator[tuple[Mailbox, int]]:
    """A real SMTP server that wants ada to sign in with the password hush.

    ``encrypted``: from the start, not by STARTTLS.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    files = authority.identity(tmp_path / "smtp", "localhost")
    context.load_cert_chain(files.cert, files.key)

    def judge(
        server: SMTP, session: Session, envelope: Envelope, how: str, given: Any
    ) -> AuthResult:
        good = isinstance(given, LoginPassword) and given == LoginPassword(b"ada", b"hush")
        return AuthResult(success=good, handled=good)

    mailbox = Mailbox()

    def make() -> SMTP:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it does not see that TLS is there from the start
            return SMTP(
                mailbox,
                authenticator=judge,
                auth_required=True,
                auth_require_tls=not encrypted,
                require_starttls=not encrypted,
                tls_context=None if encrypted else context,
            )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(make, "127.0.0.1", 0, ssl=context if encrypted else None)
    try:
        yield mailbox, server.sockets[0].getsockname()[1]
    finally:
        server.close()


def mail(port: int, authority: Authority, **options: Any) -> EmailOptions:
    standard = {
        "host": "localhost",
        "port": port,
        "sender": "shoal@example.org",
        "user": "ada",
        "password_secret": "smtp",
        "ca_certificate": authority.pem.decode(),
    }
    return EmailOptions.model_validate(standard | options)


async def test_mail_is_handed_in_signed_in_and_encrypted(tmp_path: Path) -> None:
    authority = Authority()
    async with smtp(tmp_path, authority) as (mailbox, port):
        said = await Email().send(
            MESSAGE, mail(port, authority), way("a@x.org", "b@x.org", password_secret="hush")
        )
    assert "queued as 1" in said
    [envelope] = mailbox.taken
    assert envelope.rcpt_tos == ["a@x.org", "b@x.org"]
    content = envelope.content
    assert isinstance(content, bytes)
    found = message_from_bytes(content, policy=policy.default)
    assert found["Subject"] == "[critical] p: daily failed Bcc: all@example.org"
    assert (found["Bcc"], found["Importance"]) == (None, "high")
    assert found["Message-ID"] == "<cluster-7@example.org>"
    text, html = found.get_body(["plain"]), found.get_body(["html"])
    assert text is not None
    assert html is not None
    assert "exit code 3: $(id)" in text.get_content()
    assert "<p>daily failed</p>" in html.get_content()


async def test_mail_over_tls_from_the_start(tmp_path: Path) -> None:
    authority = Authority()
    async with smtp(tmp_path, authority, encrypted=True) as (mailbox, port):
        options = mail(port, authority, encryption="tls")
        await Email().send(MESSAGE, options, way("a@x.org", password_secret="hush"))
    assert len(mailbox.taken) == 1


@pytest.mark.parametrize(
    ("options", "to", "password", "words", "may_pass"),
    [
        ({}, "a@x.org", "wrong", "signing in was refused", True),
        ({}, "nobody@x.org", "hush", "no such mailbox", False),
        ({}, "full@x.org", "hush", "mailbox full", True),
        ({"ca_certificate": ""}, "a@x.org", "hush", "not trusted", True),
        ({"host": "127.0.0.1"}, "a@x.org", "hush", "not trusted", True),
        ({"encryption": "tls"}, "a@x.org", "hush", "localhost", True),
        ({"encryption": "none"}, "a@x.org", "hush", "AUTH extension is not supported", True),
    ],
)
async def test_mail_that_is_not_taken(
    tmp_path: Path, options: dict[str, Any], to: str, password: str, words: str, may_pass: bool
) -> None:
    authority = Authority()
    async with smtp(tmp_path, authority) as (mailbox, port):
        asked = mail(port, authority, **options)
        with pytest.raises(ChannelFailed, match=words) as failed:
            await Email().send(MESSAGE, asked, way(to, password_secret=password))
    assert failed.value.may_pass is may_pass
    assert not mailbox.taken


# -- scripts ----------------------------------------------------------------------------------


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    folder = tmp_path / "scripts"
    folder.mkdir()
    note = folder / "note.sh"
    note.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > args\ncat > facts\nenv > env\necho noted\n')
    fail = folder / "fail.sh"
    fail.write_text('#!/bin/sh\necho "no disk" >&2\nexit $1\n')
    for one in (note, fail):
        one.chmod(0o755)
    (tmp_path / "outside.sh").write_text("#!/bin/sh\ntouch outside\n")
    (tmp_path / "outside.sh").chmod(0o755)
    (folder / "link.sh").symlink_to(tmp_path / "outside.sh")
    return folder


async def test_a_script_gets_arguments_and_no_shell(
    scripts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4: whatever names and reasons hold is text."""
    monkeypatch.setenv("SHOAL_SECRET", "of the server")
    options = ScriptOptions(name="note.sh", arguments=("--to", "$(id)"))
    said = await Script().send(MESSAGE, options, way(settings={"scripts": str(scripts)}))
    assert said == "noted"
    given = (scripts / "args").read_text()
    assert given == f"--to\n$(id)\nFIRING\ncritical\np\n{MESSAGE.subject}\n"
    assert json.loads((scripts / "facts").read_text()) == MESSAGE.facts
    assert "SHOAL_SECRET" not in (scripts / "env").read_text()


@pytest.mark.parametrize("code", [1, 75])
async def test_a_script_says_whether_to_try_again(scripts: Path, code: int) -> None:
    options = ScriptOptions(name="fail.sh", arguments=(str(code),))
    with pytest.raises(ChannelFailed, match=f"ended with {code}: no disk") as failed:
        await Script().send(MESSAGE, options, way(settings={"scripts": str(scripts)}))
    assert failed.value.may_pass is (code == os.EX_TEMPFAIL)


@pytest.mark.parametrize("name", ["link.sh", "missing.sh"])
async def test_only_programs_of_the_folder_run(scripts: Path, name: str) -> None:
    with pytest.raises(ChannelFailed, match=r"leads out|there is no"):
        await Script().send(
            MESSAGE, ScriptOptions(name=name), way(settings={"scripts": str(scripts)})
        )
    with pytest.raises(ChannelFailed, match="has set no folder"):
        await Script().send(MESSAGE, ScriptOptions(name="note.sh"), way(settings={}))
    for bad in ("../outside.sh", "/bin/sh", "-x", "a/b", ""):
        with pytest.raises(ValueError):
            ScriptOptions(name=bad)


async def test_a_script_that_hangs_is_killed_with_what_it_started(scripts: Path) -> None:
    hang = scripts / "hang.sh"
    hang.write_text("#!/bin/sh\nsleep 1000 & echo $! > child\nwait\n")
    hang.chmod(0o755)
    sending = asyncio.create_task(
        Script().send(
            MESSAGE, ScriptOptions(name="hang.sh"), way(settings={"scripts": str(scripts)})
        )
    )
    child = scripts / "child"
    await eventually(lambda: child.exists() and child.read_text().strip() != "")
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    await eventually(lambda: not Path(f"/proc/{child.read_text().strip()}").exists())


async def test_a_script_that_is_cancelled_while_it_starts_is_killed(scripts: Path) -> None:
    hang = scripts / "hang.sh"
    hang.write_text("#!/bin/sh\nexec sleep 1000\n")
    hang.chmod(0o755)
    for turns in range(10):
        sending = asyncio.create_task(
            Script().send(
                MESSAGE, ScriptOptions(name="hang.sh"), way(settings={"scripts": str(scripts)})
            )
        )
        for _ in range(turns):
            await asyncio.sleep(0)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(DEADLINE_S):
                await sending


async def test_a_script_ends_although_it_leaves_something_that_writes(scripts: Path) -> None:
    leave = scripts / "leave.sh"
    leave.write_text("#!/bin/sh\nsetsid sleep 1000 &\necho $! > left\necho told\n")
    leave.chmod(0o755)
    options = ScriptOptions(name="leave.sh")
    async with asyncio.timeout(DEADLINE_S):
        answer = await Script().send(MESSAGE, options, way(settings={"scripts": str(scripts)}))
    os.kill(int((scripts / "left").read_text()), signal.SIGKILL)
    assert answer == "told"


# -- chats ------------------------------------------------------------------------------------


async def test_a_chat_is_told_by_apprise(sink: HttpServer) -> None:
    options = ChatOptions(url_secret="chat")
    address = f"ntfy://127.0.0.1:{sink.port}/alerts"
    assert await Chat().send(MESSAGE, options, way(url_secret=address)) == "taken"
    [request] = sink.received
    assert "daily failed" in request.body.decode() + str(request.headers)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("json://127.0.0.1/", "is not a service"),
        ("syslog://", "is not a service"),
        ("file:///etc/passwd", "is not a service"),
        ("slack://", "cannot read the address"),
    ],
)
async def test_what_is_no_chat_is_refused(address: str, words: str) -> None:
    with pytest.raises(ChannelFailed, match=words) as failed:
        await Chat().send(MESSAGE, ChatOptions(url_secret="chat"), way(url_secret=address))
    assert not failed.value.may_pass
    assert "passwd" not in str(failed.value)


async def test_a_chat_on_a_server_of_ones_own_is_guarded(sink: HttpServer) -> None:
    address = f"ntfy://127.0.0.1:{sink.port}/alerts"
    with pytest.raises(ChannelFailed, match="may not be reached"):
        await Chat().send(
            MESSAGE, ChatOptions(url_secret="chat"), way(settings={}, url_secret=address)
        )
    assert not sink.received


async def test_a_chat_that_does_not_take_it_may_later(sink: HttpServer) -> None:
    sink.handlers["/"] = says(answer(503))
    address = f"ntfy://127.0.0.1:{sink.port}/alerts"
    with pytest.raises(ChannelFailed) as failed:
        await Chat().send(MESSAGE, ChatOptions(url_secret="chat"), way(url_secret=address))
    assert failed.value.may_pass


async def test_chats_that_never_end_keep_few_threads(
    sink: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "WAIT_S", 0.3)
    monkeypatch.setattr(chat, "OF_PROJECT", 6)
    monkeypatch.setattr(chat, "OF_PROCESS", 8)
    released = asyncio.Event()

    async def drip(received: Received, writer: asyncio.StreamWriter) -> None:
        if b"broken" not in received.body:
            writer.write(answer(200, "ok"))
            return
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not released.is_set():  # sooner than apprise gives up to read
            writer.write(b"x")
            await asyncio.sleep(0.2)

    async def send(project: str, topic: str) -> str:
        address = f"ntfy://127.0.0.1:{sink.port}/{topic}?rto=60"
        where = way(url_secret=address)
        return await Chat().send(
            replace(MESSAGE, project=project), ChatOptions(url_secret="chat"), where
        )

    async def give_up(project: str, topic: str) -> None:
        sending = asyncio.create_task(send(project, topic))
        before = len(sink.received)
        await eventually(lambda: len(sink.received) > before or sending.done())
        sending.cancel()
        await asyncio.wait({sending})

    def threads() -> int:
        return sum(one.name == "chat" for one in threading.enumerate())

    sink.handlers["/"] = drip
    try:
        for _ in range(chat.OF_ADDRESS + 2):
            await give_up("p", "broken")
        await eventually(lambda: threads() == chat.OF_ADDRESS)
        with pytest.raises(ChannelFailed, match="4 earlier messages to this chat") as failed:
            await send("p", "broken")
        assert failed.value.may_pass
        assert await send("p", "sound") == "taken"
        for number in range(4):
            await give_up("p", f"broken{number}")
        await eventually(lambda: threads() == chat.OF_PROJECT)
        with pytest.raises(ChannelFailed, match="6 earlier messages to chats of project p"):
            await send("p", "sound")
        assert await send("q", "sound") == "taken"
        for number in range(4):
            await give_up("q", f"broken{number}")
        await eventually(lambda: threads() == chat.OF_PROCESS)
        with pytest.raises(ChannelFailed, match="8 earlier messages to chats by this alert server"):
            await send("r", "sound")
    finally:
        released.set()
        await eventually(lambda: threads() == 0)
    assert await send("p", "sound") == "taken"
    assert not chat._rooms._rooms, "forgotten with its last message"


# -- SNMP -------------------------------------------------------------------------------------

MIBS = f"{Path(snmp.__file__).parent}:{ROOT / 'tests/support/mibs'}"


@contextmanager
def trapd(folder: Path) -> Iterator[tuple[int, Path]]:
    """A real snmptrapd; its port, and the file that it writes traps to."""
    snmptrapd = program("snmptrapd")
    log, store = folder / "traps", folder / "store"
    store.mkdir()
    config = folder / "snmptrapd.conf"
    config.write_text(
        f"createUser -e 0x{snmp.ENGINE} shoal SHA-256 authpassphrase AES privpassphrase\n"
        "authUser log shoal priv\nauthCommunity log quiet\n"
    )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    process = subprocess.Popen(
        [snmptrapd, "-f", "-C", "-c", config, "-Lf", log, "-M", MIBS, "-m", "SHOAL-ALERT-MIB",
         "-OQ", f"udp:127.0.0.1:{port}"],
        env={**os.environ, "SNMP_PERSISTENT_DIR": str(store)},
    )  # fmt: skip
    try:
        yield port, log
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


@pytest.mark.parametrize("version", ["2c", "3"])
async def test_traps_arrive_and_the_mib_reads_them(tmp_path: Path, version: str) -> None:
    with trapd(tmp_path) as (port, log):
        options = SnmpOptions.model_validate(
            {
                "host": "127.0.0.1",
                "port": port,
                "version": version,
                "community_secret": "c",
                "user": "shoal",
                "authentication_secret": "a",
                "privacy_secret": "p",
            }
        )
        secrets = {
            "community_secret": "quiet",
            "authentication_secret": "authpassphrase",
            "privacy_secret": "privpassphrase",
        }
        await eventually(lambda: log.exists() and "NET-SNMP version" in log.read_text())
        await Snmp().send(MESSAGE, options, Way((), secrets, LOOPBACK))
        await eventually(lambda: "daily failed" in log.read_text())
    text = log.read_text()
    assert "SHOAL-ALERT-MIB::shoalAlert" in text
    assert "SHOAL-ALERT-MIB::shoalAlertSeverity.0 = critical" in text
    assert "SHOAL-ALERT-MIB::shoalAlertUrl.0 = https://shoal.example/runs/7" in text


async def test_traps_with_another_pass_phrase_are_not_taken(tmp_path: Path) -> None:
    with trapd(tmp_path) as (port, log):
        options = SnmpOptions.model_validate(
            {"host": "127.0.0.1", "port": port, "version": "2c", "community_secret": "c"}
        )
        await eventually(lambda: log.exists() and "NET-SNMP version" in log.read_text())
        await Snmp().send(MESSAGE, options, way(community_secret="loud"))
        await Snmp().send(MESSAGE, options, way(community_secret="quiet"))
        await eventually(lambda: "daily failed" in log.read_text())
    assert log.read_text().count("shoalAlertKey") == 1


def test_the_mib_has_no_mistakes() -> None:
    done = subprocess.run(
        [program("snmptranslate"), "-M", MIBS, "-m", "SHOAL-ALERT-MIB", "-On", "-Pw",
         "SHOAL-ALERT-MIB::shoalAlertSubject"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == f".{snmp.ROOT}.1.5"
    # Where none of these programs has run before, one says that it makes a folder.
    assert [line for line in done.stderr.splitlines() if "Created directory" not in line] == []


@pytest.mark.parametrize(
    "options",
    [
        {"version": "2c"},
        {"version": "3"},
        {"version": "3", "user": "a"},
        {"version": "3", "user": "a", "authentication": "none", "privacy_secret": "b"},
    ],
)
def test_options_of_traps_are_whole(options: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        SnmpOptions.model_validate({"host": "h", **options})
