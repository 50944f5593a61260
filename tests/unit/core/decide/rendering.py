"""Texts rendered at one moment, a Saturday morning in Berlin."""

from datetime import datetime
from zoneinfo import ZoneInfo

from shoal.core.macros import placeholders as macros

BERLIN = ZoneInfo("Europe/Berlin")
BASE = datetime(2026, 8, 1, 10, 20, 30, 45_600, tzinfo=BERLIN)  # a Saturday


def render(text: str, base: datetime = BASE, /, **parameters: str) -> str:
    return macros.render(text, base=base, parameters=parameters)
