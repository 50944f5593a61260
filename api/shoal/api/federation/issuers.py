"""The providers and the directory of the settings, opened. What they need is imported only then."""

import os
import ssl
import stat
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.api.federation.errors import BadFederation
from shoal.api.settings import ApiSettings

if TYPE_CHECKING:
    from shoal.api.federation.directory import Directory
    from shoal.api.federation.provider import Provider

CALLBACK = "/api/v1/login/oidc/{name}/callback"


@dataclass(frozen=True)
class Federation:
    """Where people sign in besides here."""

    providers: "Mapping[str, Provider]"
    directory: "Directory | None" = None


async def open_federation(stack: AsyncExitStack, settings: ApiSettings) -> Federation:
    """Return what the settings name; ``stack`` closes it. Nothing is asked yet.

    Raises BadFederation.
    """
    providers = {name: await _provider(stack, settings, name) for name in settings.oidc}
    return Federation(providers, _directory(stack, settings))


async def _provider(stack: AsyncExitStack, settings: ApiSettings, name: str) -> "Provider":
    try:
        from shoal.api.federation.provider import Provider, new_client
    except ImportError as error:
        raise BadFederation(_missing(f"api.oidc.{name}", "oidc", error)) from error
    found = settings.oidc[name]
    where = f"api.oidc.{name}"
    client = await stack.enter_async_context(new_client(_trusting(where, found.ca)))
    file, secret = found.client_secret_file, None
    if file is not None:
        secret = _secret(f"{where}: client_secret_file", file)
        if not secret.isascii():
            raise BadFederation(f"{where}: client_secret_file: {file} holds more than ASCII")
    return Provider(
        name,
        found,
        client,
        secret,
        settings.public_url.rstrip("/") + CALLBACK.format(name=name),
        now_s=time.time,
    )


def _directory(stack: AsyncExitStack, settings: ApiSettings) -> "Directory | None":
    found = settings.ldap
    if found is None:
        return None
    try:
        from shoal.api.federation.directory import Directory
    except ImportError as error:
        raise BadFederation(_missing("api.ldap", "ldap", error)) from error
    file = found.bind_password_file
    password = None if file is None else _secret("api.ldap: bind_password_file", file)
    try:
        directory = Directory(found, password, _trusting("api.ldap", found.ca))
    except ValueError as error:
        raise BadFederation(f"api.ldap: groups: {error}") from error
    stack.callback(directory.close)
    return directory


def _trusting(where: str, ca: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if ca is None else str(ca))
    except OSError as error:  # ssl's own errors are, too
        reason = error.strerror or str(error)
        raise BadFederation(f"{where}: ca: the PEM file {ca} cannot be used: {reason}") from error


def _secret(where: str, file: Path) -> str:
    """Return the first line of a file that other users cannot read."""
    try:
        with file.open(encoding="utf-8") as opened:
            if stat.S_IMODE(os.fstat(opened.fileno()).st_mode) & 0o077:
                raise BadFederation(f"{where}: others may read {file}; run: chmod 600 '{file}'")
            text = opened.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFederation(f"{where}: cannot read {file}: {error}") from error
    if not text:
        raise BadFederation(f"{where}: the first line of {file} is empty; write the secret there")
    return text


def _missing(where: str, extra: str, error: ImportError) -> str:
    install = f"pip install 'shoal[{extra}]'"
    return f"{where} needs packages that are not installed ({error.name}): {install}"
