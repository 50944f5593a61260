"""Shoal for people and programs: author workflows in Python, call the API, use the shell.

::

    from shoal.client import Shell, Workflow

    with Workflow("hello") as hello:
        Shell("greet", script="echo hello") >> Shell("part", script="echo bye")

The names below are imported when they are first used, so that a role of the local cluster does
not load what it never needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.client.discovery import find_api as find_api
    from shoal.client.errors import ApiProblem as ApiProblem
    from shoal.client.errors import ApiUnreachable as ApiUnreachable
    from shoal.client.errors import AuthoringError as AuthoringError
    from shoal.client.rest.async_client import AsyncShoalClient as AsyncShoalClient
    from shoal.client.rest.client import ShoalClient as ShoalClient
    from shoal.client.sdk.logic import Conditions as Conditions
    from shoal.client.sdk.logic import Dependent as Dependent
    from shoal.client.sdk.logic import Map as Map
    from shoal.client.sdk.logic import SubWorkflow as SubWorkflow
    from shoal.client.sdk.logic import Switch as Switch
    from shoal.client.sdk.logic import all_of as all_of
    from shoal.client.sdk.logic import any_of as any_of
    from shoal.client.sdk.logic import ended as ended
    from shoal.client.sdk.logic import none_of as none_of
    from shoal.client.sdk.logic import ran as ran
    from shoal.client.sdk.schedules import Schedule as Schedule
    from shoal.client.sdk.services import Container as Container
    from shoal.client.sdk.services import DataQuality as DataQuality
    from shoal.client.sdk.services import Flink as Flink
    from shoal.client.sdk.services import Http as Http
    from shoal.client.sdk.services import Procedure as Procedure
    from shoal.client.sdk.services import Sql as Sql
    from shoal.client.sdk.services import Ssh as Ssh
    from shoal.client.sdk.services import WaitFile as WaitFile
    from shoal.client.sdk.services import WaitSql as WaitSql
    from shoal.client.sdk.tasks import MapReduce as MapReduce
    from shoal.client.sdk.tasks import Python as Python
    from shoal.client.sdk.tasks import Shell as Shell
    from shoal.client.sdk.tasks import Spark as Spark
    from shoal.client.sdk.workflow import Parameter as Parameter
    from shoal.client.sdk.workflow import Task as Task
    from shoal.client.sdk.workflow import Workflow as Workflow
    from shoal.client.sdk.workflow import python_task as python_task
    from shoal.client.sources.definitions import Definition as Definition
    from shoal.client.sources.definitions import load_definitions as load_definitions

__all__ = [
    "ApiProblem",
    "ApiUnreachable",
    "AsyncShoalClient",
    "AuthoringError",
    "Conditions",
    "Container",
    "DataQuality",
    "Definition",
    "Dependent",
    "Flink",
    "Http",
    "Map",
    "MapReduce",
    "Parameter",
    "Procedure",
    "Python",
    "Schedule",
    "Shell",
    "ShoalClient",
    "Spark",
    "Sql",
    "Ssh",
    "SubWorkflow",
    "Switch",
    "Task",
    "WaitFile",
    "WaitSql",
    "Workflow",
    "all_of",
    "any_of",
    "ended",
    "find_api",
    "load_definitions",
    "none_of",
    "python_task",
    "ran",
]

_HOMES = {
    "ApiProblem": "errors",
    "ApiUnreachable": "errors",
    "AsyncShoalClient": "rest.async_client",
    "AuthoringError": "errors",
    "Conditions": "sdk.logic",
    "Container": "sdk.services",
    "DataQuality": "sdk.services",
    "Definition": "sources.definitions",
    "Dependent": "sdk.logic",
    "Flink": "sdk.services",
    "Http": "sdk.services",
    "Map": "sdk.logic",
    "MapReduce": "sdk.tasks",
    "Parameter": "sdk.workflow",
    "Procedure": "sdk.services",
    "Python": "sdk.tasks",
    "Schedule": "sdk.schedules",
    "Shell": "sdk.tasks",
    "ShoalClient": "rest.client",
    "Spark": "sdk.tasks",
    "Sql": "sdk.services",
    "Ssh": "sdk.services",
    "SubWorkflow": "sdk.logic",
    "Switch": "sdk.logic",
    "Task": "sdk.workflow",
    "WaitFile": "sdk.services",
    "WaitSql": "sdk.services",
    "Workflow": "sdk.workflow",
    "all_of": "sdk.logic",
    "any_of": "sdk.logic",
    "ended": "sdk.logic",
    "find_api": "discovery",
    "load_definitions": "sources.definitions",
    "none_of": "sdk.logic",
    "python_task": "sdk.workflow",
    "ran": "sdk.logic",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # The attribute of a submodule, not the submodule of the same name.
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
