"""The description of the API, made without a cluster."""

import json
from pathlib import Path
from typing import Any, cast

from shoal.api.app import create_app
from shoal.api.pages.openapi import describe
from shoal.api.services import Services
from shoal.api.settings import ApiSettings


class _Described:
    """The services that an application needs to be described, and no more."""

    settings = ApiSettings()
    data, token = Path(), ""


def described() -> dict[str, Any]:
    """Return the OpenAPI description. Its version is that of the API, as in /api/v1."""
    return describe(create_app(cast("Services", _Described()), version="1"))


def text_of(description: dict[str, Any]) -> str:
    """Return it as the committed file has it: sorted, so that a change is a small difference."""
    return json.dumps(description, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
