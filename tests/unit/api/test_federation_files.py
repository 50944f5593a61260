"""The files that the settings of providers and directories name."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from shoal.api.federation.errors import BadFederation
from shoal.api.federation.issuers import open_federation
from shoal.api.settings import ApiSettings


def settings(**changes: Any) -> ApiSettings:
    """Settings with a provider."""
    main = {"issuer": "https://id.example", "client_id": "shoal", **changes}
    return ApiSettings.model_validate(
        {"public_url": "https://shoal.example", "oidc": {"main": main}}
    )


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        ("secret", 0o644, "others may read"),
        ("secret", 0o620, "others may read"),
        ("", 0o600, "is empty"),
        ("\nsecret", 0o600, "is empty"),
        (None, 0o600, "cannot read"),
    ],
)
async def test_file_of_a_secret_is_private_and_there(
    tmp_path: Path, content: str | None, mode: int, words: str
) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_text(content)
        file.chmod(mode)
    async with AsyncExitStack() as stack:
        with pytest.raises(BadFederation, match=words) as refused:
            await open_federation(stack, settings(client_secret_file=str(file)))
    assert "api.oidc.main: client_secret_file" in str(refused.value)


async def test_authority_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    for content in (None, "no PEM"):
        if content is not None:
            file.write_text(content)
        async with AsyncExitStack() as stack:
            with pytest.raises(BadFederation, match=r"api\.oidc\.main: ca"):
                await open_federation(stack, settings(ca=str(file)))


async def test_groups_of_a_directory_are_names_of_its_tree(tmp_path: Path) -> None:
    ldap = {
        "servers": "ldaps://ldap.example",
        "user_dn": "uid={name},dc=example",
        "groups": {"analysts": "analysts"},
    }
    async with AsyncExitStack() as stack:
        with pytest.raises(BadFederation, match="'analysts' is not a DN"):
            await open_federation(stack, ApiSettings.model_validate({"ldap": ldap}))


async def test_nothing_in_the_settings_opens_nothing() -> None:
    async with AsyncExitStack() as stack:
        found = await open_federation(stack, ApiSettings())
    assert (found.providers, found.directory) == ({}, None)
