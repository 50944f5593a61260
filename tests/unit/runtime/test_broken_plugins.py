"""A package whose plug-in cannot be imported or used is one finding; the process continues."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel

from shoal.alert.jobs.sender import AlertSender
from shoal.api.endpoints.plugins import usable_plugins
from shoal.client.local.doctor import CheckVerdict, DoctorFinding, _plugins
from shoal.core.alerts.channels import Channel
from shoal.core.alerts.receivers import ChannelSpec
from shoal.core.data_sources.kind import SourceKind
from shoal.core.errors import UnusablePlugin
from shoal.core.task_types import TaskKind
from shoal.runtime.plugins import (
    channel_kinds,
    check_definition,
    load_channel,
    load_task_type,
    task_type_names,
)
from shoal.runtime.secret_stores.store import SecretStore
from shoal.runtime.secret_stores.stores import load_store_kind
from shoal.runtime.source_kinds import load_source_kind, source_kinds
from tests.support.packages import installed

#: By entry point group: how a plug-in is loaded, its base class, and what its model is called.
GROUPS: dict[str, tuple[Callable[[str], type], type, str]] = {
    "shoal.task_types": (load_task_type, TaskKind, "Params"),
    "shoal.alert_channels": (load_channel, Channel, "Options"),
    "shoal.data_source_kinds": (load_source_kind, SourceKind, "Options"),
    "shoal.secret_stores": (load_store_kind, SecretStore, "Settings"),
}
#: A module that fails, and a part of the message.
BROKEN = {
    "import nowhere": "No module named 'nowhere'",
    "class Broken(": "SyntaxError",
    "raise KeyError('LD')": "KeyError: 'LD'",
    "raise SystemExit('needs a licence')": "SystemExit: needs a licence",
    "import sys; sys.exit(3)": "SystemExit: 3",
    "raise TypeError('x' * 100_000)": "xxx…",
    "1 / 0": "ZeroDivisionError",
    "": "has no attribute 'Broken'",
    "Broken = 1": "it is not a ",
    "from {module} import {base} as Broken": "{model}|does not define",
    "from {module} import {base}\nclass Broken({base}):\n    {model} = dict\n"
    "    async def run(self, *_): ...\n    async def send(self, *_): ...\n"
    "    def read(self, *_): ...": "its {model} is not a ",
}


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("text", BROKEN)
def test_error_names_the_plug_in_its_package_and_the_problem(
    tmp_path: Path, group: str, text: str
) -> None:
    load, base, model = GROUPS[group]
    words = {"module": base.__module__, "base": base.__name__, "model": model}
    source, expected = text, BROKEN[text]
    for key, value in words.items():
        source = source.replace("{" + key + "}", value)
        expected = expected.replace("{" + key + "}", value)
    with (
        installed(tmp_path, group, {"BROKEN": "broken_one:Broken"}, broken_one=source),
        pytest.raises(UnusablePlugin, match=f"(?s){expected}") as raised,
    ):
        load("BROKEN")
    message = str(raised.value)
    assert "'BROKEN' cannot be loaded from broken_one:Broken: " in message
    assert message.endswith("; repair or remove the package plug-in 1.0")
    assert len(message) < 1_000


#: The body of a kind of data source that is incomplete or has a value of a wrong type, and the
#: problem.
INCOMPLETE = {
    "probe = 'm:f'": "it does not define title",
    "title = 'T'": "it does not define probe",
    "title, probe = 5, 'm:f'": "its title is invalid: Input should be a valid string",
    "title, probe, port = 'T', 'm:f', 'often'": "its port is invalid: Input should be a valid int",
    "title, probe, host = 'T', 'm:f', 'maybe'": "its host is invalid: Input should be 'required'",
    "title, probe, instead = 'T', 'm:f', 7": "its instead is invalid: ",
    "probe = 'm:f'\n    title = property(lambda self: 1 / 0)": "its title is invalid: ",
}


@pytest.mark.parametrize("body", INCOMPLETE)
def test_class_whose_attributes_are_missing_or_wrong_is_the_same_error(
    tmp_path: Path, body: str
) -> None:
    text = (
        "from shoal.core.data_sources.kind import SourceKind, SourceOptions\n"
        f"class Broken(SourceKind):\n    Options = SourceOptions\n    {body}\n"
    )
    with (
        installed(
            tmp_path, "shoal.data_source_kinds", {"broken": "broken_one:Broken"}, broken_one=text
        ),
        pytest.raises(UnusablePlugin, match=INCOMPLETE[body]),
    ):
        load_source_kind("broken")


@pytest.mark.parametrize("value", ["nowhere:Broken", "not an entry point", ":", "a.b:c.d", ""])
def test_entry_point_that_leads_nowhere_is_the_same_error(tmp_path: Path, value: str) -> None:
    with (
        installed(tmp_path, "shoal.task_types", {"BROKEN": value}),
        pytest.raises(UnusablePlugin, match="task type 'BROKEN' cannot be loaded"),
    ):
        load_task_type("BROKEN")


def test_repaired_package_needs_no_restart(tmp_path: Path) -> None:
    with installed(
        tmp_path, "shoal.task_types", {"MENDED": "mended:Mended"}, mended="import nowhere"
    ) as site:
        with pytest.raises(UnusablePlugin):
            load_task_type("MENDED")
        (site / "mended.py").write_text(
            "from shoal.core.task_types import TaskParams, TaskType\n"
            "class Mended(TaskType):\n    Params = TaskParams\n    async def run(self, *_): ...\n"
        )
        assert load_task_type("MENDED").__name__ == "Mended"


def test_everything_installed_is_usable() -> None:
    loaded: list[type] = [load_task_type(name) for name in task_type_names()]
    loaded += [load_channel(kind) for kind in channel_kinds()]
    loaded += [load_source_kind(kind) for kind in source_kinds()]
    assert len(loaded) > 20
    assert [one.verdict for one in _plugins()] == [CheckVerdict.OK]


def test_definition_that_uses_it_has_one_finding(tmp_path: Path) -> None:
    task = {"name": "t", "type": "BROKEN"}
    good = {"name": "good", "type": "SHELL", "params": {"script": "true"}}
    with installed(tmp_path, "shoal.task_types", {"BROKEN": "nowhere:Broken"}):
        with pytest.raises(ValueError, match="nowhere:Broken") as raised:
            check_definition({"name": "w", "project": "p", "tasks": [task, good]})
        (problem,) = raised.value.problems  # type: ignore[attr-defined]
        assert problem.path == ("tasks", 0, "type")
        check_definition({"name": "w", "project": "p", "tasks": [good]})


@pytest.mark.parametrize("group", GROUPS)
def test_doctor_names_each_broken_one(tmp_path: Path, group: str) -> None:
    points = {"BROKEN": "nowhere:Broken", "WORSE": "worse:Worse"}
    with installed(tmp_path, group, points, worse="exit()"):
        found: list[DoctorFinding] = list(_plugins())
    assert {one.verdict for one in found} == {CheckVerdict.FAILED}
    assert ["'BROKEN'" in found[0].found, "'WORSE'" in found[1].found] == [True, True]


def test_lists_leave_out_what_cannot_be_shown(tmp_path: Path) -> None:
    class Unwritable(BaseModel):
        model_config = {"arbitrary_types_allowed": True}
        lock: asyncio.Lock

    class OfWrongType(BaseModel):
        title: str

    failures: dict[str, Callable[[], Any]] = {
        "unwritable": Unwritable.model_json_schema,
        "wrong type": lambda: OfWrongType.model_validate({"title": 5}),
        "no attribute": lambda: cast("Any", OfWrongType).nothing,
        "exits": lambda: sys.exit("needs a licence"),
    }

    def show(name: str) -> Any:
        if name in failures:
            return failures[name]()
        return load_task_type(name).__name__

    with installed(tmp_path, "shoal.task_types", {"BROKEN": "nowhere:Broken"}):
        assert usable_plugins(["BROKEN", "SHELL", *failures, "PYTHON"], show) == [
            "Shell",
            "Python",
        ]


async def test_message_waits_for_a_channel_that_is_broken(tmp_path: Path) -> None:
    delivery: Any = type("Delivery", (), {"channel": "c", "recipients": (), "id": 1})()
    spec = ChannelSpec.model_construct(kind="broken", options={}, enabled=True)
    with installed(tmp_path, "shoal.alert_channels", {"broken": "worse:Worse"}, worse="exit()"):
        sender = AlertSender.__new__(AlertSender)
        sent, may_pass, said = await sender._attempt(delivery, cast("Any", None), spec, {})
    assert (sent, may_pass) == (False, True)
    assert "kind of channel 'broken' cannot be loaded from worse:Worse" in said
