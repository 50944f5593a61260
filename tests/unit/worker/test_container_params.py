"""What a CONTAINER task may say, and what the worker's administrator allows of it."""

from typing import Any

import pytest
from pydantic import ValidationError

from shoal.core.task_types import CommandLine, Verbatim, fields_marked
from shoal.worker.types.container.kind import Container, ContainerParams, Mount, size
from shoal.worker.types.container.rules import NotAllowed, Rules


def params(**more: Any) -> ContainerParams:
    return ContainerParams.model_validate({"engine": "docker", "image": "etl/load:1", **more})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"engine": "rkt"}, "engine"),
        ({"image": ""}, "image"),
        ({"image": "-v /:/host"}, "is not a valid image"),
        ({"image": "a b"}, "is not a valid image"),
        ({"command": ["sh", "-c", "echo ${secret.pw}"]}, "in the field secrets"),
        ({"command": ["sh", "-c", "echo $SHOAL_SECRET_pw"]}, "read the file /shoal/secrets/pw"),
        ({"arguments": ["${secret.pw}"]}, "in the field secrets"),
        ({"environment": {"PW": "${secret.pw}"}}, "in the field secrets"),
        ({"environment": {"A-B": "x"}}, "not a name of a variable"),
        ({"environment": {"SHOAL_OUTPUT": "x"}}, "Shoal's own"),
        ({"secrets": {"../pw": "x"}}, "secrets"),
        ({"secrets": {"pw": "x" * 600_000}}, "at most 524,288 fit"),
        ({"user": "root"}, "number of a user"),
        ({"memory": "12"}, "is not a valid size"),
        ({"memory": "1m"}, "no container starts with less than 6m"),
        ({"cpus": 0}, "cpus"),
        ({"network": "container:other"}, "name of a network"),
        ({"mounts": [{"source": "data", "target": "/in"}]}, "absolute path"),
        ({"mounts": [{"source": "/a/../etc", "target": "/in"}]}, "absolute path"),
        ({"mounts": [{"source": "/a", "target": "/shoal/secrets"}]}, "over / or /shoal"),
        ({"mounts": [{"source": "/a", "target": "/"}]}, "over / or /shoal"),
        ({"privileged": True}, "privileged"),
        ({"namespace": "etl"}, "namespace is for kubernetes"),
        ({"engine": "kubernetes", "network": "x"}, "network is for docker and podman"),
        ({"engine": "kubernetes", "pids": 5}, "pids is for docker and podman"),
        ({"engine": "kubernetes", "mounts": [{"source": "/a", "target": "/b"}]}, "mounts is for"),
    ],
)
def test_mistakes_are_told(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said) as caught:
        params(**given)
    assert "x" * 100 not in str(caught.value)


def test_placeholders_wait_for_their_values() -> None:
    given = params(image="${registry}/load:$[yyyyMMdd]", memory="${memory}", user="${user}")
    assert given.memory == "${memory}"


def test_nothing_is_pasted_into_a_command_and_no_secret_stands_on_one() -> None:
    assert fields_marked(ContainerParams, Verbatim) == {"command"}
    assert fields_marked(ContainerParams, CommandLine) == {"arguments", "environment"}


def test_what_was_read_once_can_be_read_again() -> None:
    for engine in ("docker", "podman", "kubernetes"):
        given = params(engine=engine)
        assert ContainerParams.model_validate(given.model_dump(mode="json")) == given


@pytest.mark.parametrize(
    ("given", "repeats"),
    [
        ({}, False),
        ({"idempotent": True}, True),
        ({"engine": "kubernetes"}, True),
    ],
)
def test_container_that_nobody_else_reaches_is_not_begun_again(
    given: dict[str, Any], repeats: bool
) -> None:
    told = {"engine": "docker", "image": "a", **given}
    assert Container.repeats_after_loss(told) is repeats


def test_sizes() -> None:
    assert (size("6m"), size("2GB"), size("8k")) == (6 << 20, 2 << 30, 8 << 10)
    with pytest.raises(ValueError, match="not a size"):
        size("2t")


def test_first_of_what_is_allowed_is_the_usual_one() -> None:
    rules = Rules.of({"container_networks": "bridge none", "kubernetes_namespaces": "etl x"})
    assert rules.network(params()) == "bridge"
    assert rules.network(params(network="none")) == "none"
    assert rules.namespace(params(engine="kubernetes")) == "etl"
    assert Rules.of({}).network(params()) == "none"
    with pytest.raises(NotAllowed, match=r"'host' is not allowed .* only: bridge, none"):
        rules.network(params(network="host"))


@pytest.mark.parametrize("source", ["/data/in/below", "/data", "/data/in/", "/data/in/../in"])
def test_only_folders_that_are_listed_are_mounted(source: str) -> None:
    """Below one a link could lead anywhere, so it has to be the folder itself."""
    rules = Rules.of({"container_mounts": "/data/in /data/out:rw"})
    rules.require_mounts([Mount(source="/data/in", target="/in")])
    rules.require_mounts([Mount(source="/data/out", target="/out", read_only=False)])
    with pytest.raises(NotAllowed, match="may not be mounted"):
        rules.require_mounts([Mount.model_construct(source=source, target="/in", read_only=True)])
    with pytest.raises(NotAllowed, match="for reading only"):
        rules.require_mounts([Mount(source="/data/in", target="/in", read_only=False)])
