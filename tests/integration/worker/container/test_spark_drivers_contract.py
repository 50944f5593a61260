"""Drivers of Spark in Kubernetes, at a stand-in for its API server: no driver runs here."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.worker.types.kubernetes.client import TAG as LABEL
from shoal.worker.types.spark.command import POD_LABEL, options, pod_conf, pod_namespace
from shoal.worker.types.spark.kind import Spark, SparkParams
from tests.integration.worker.sql.kit import TAG, Ended, ran
from tests.support.servers.kubernetes_api import KubernetesApi, Pod, serving


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    with serving() as one:
        yield one


def driver(api: KubernetesApi, tag: str, namespace: str = "spark") -> Pod:
    template = {"metadata": {"labels": {POD_LABEL: tag}}, "spec": {"containers": []}}
    job = {"metadata": {"name": "driver", "uid": "u"}, "spec": {"template": template}}
    with api.changed:
        api.add_pod(namespace, job)
        pod = list(api.pods.values())[-1]
    pod.body["status"] = {"phase": "Running"}
    return pod


def params(url: str) -> dict[str, object]:
    return {
        "application": "local:///job.py",
        "master": f"k8s://{url}",
        "deploy_mode": "cluster",
        "conf": {"spark.kubernetes.namespace": "spark"},
    }


def settled(api: KubernetesApi, folder: Path, url: str, **settings: str) -> Ended:
    return ran(None, params(url), folder / "a", kind=Spark, settle=True, settings=settings)


def test_driver_that_an_attempt_has_left_is_ended(api: KubernetesApi, tmp_path: Path) -> None:
    of_task, of_other = driver(api, TAG), driver(api, "shoal-other")
    ended_one = driver(api, TAG)
    ended_one.body["status"] = {"phase": "Failed"}
    elsewhere = driver(api, TAG, "default")
    config = str(api.kubeconfig(tmp_path))
    ended = settled(api, tmp_path, api.url, kubernetes_config=config)
    assert ended.code == 0, ended.log
    assert of_task.name not in api.pods
    assert {of_other.name, ended_one.name, elsewhere.name} == api.pods.keys()


def test_driver_is_looked_for_where_it_was_submitted_alone(
    api: KubernetesApi, tmp_path: Path
) -> None:
    """The worker's token goes to no server that a task names."""
    config = str(api.kubeconfig(tmp_path))
    ended = settled(api, tmp_path, "https://other.example.org", kubernetes_config=config)
    assert ended.code == 65
    assert f"kubernetes_config is for {api.url}, not for https://other" in ended.reason
    assert not api.asked


def test_worker_without_kubernetes_says_what_to_look_for(
    api: KubernetesApi, tmp_path: Path
) -> None:
    ended = settled(api, tmp_path, api.url)
    assert ended.code == 1
    assert "has not set kubernetes_config: see whether one of this task's still" in ended.reason


def test_driver_and_executors_carry_the_tag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = SparkParams.model_validate(params("https://k:1"))
    conf = pod_conf(TAG, pod_namespace(given, tmp_path))
    argv = options(given, "name", conf)
    assert POD_LABEL == LABEL
    assert f"spark.kubernetes.driver.label.shoal-tag={TAG}" in argv
    assert f"spark.kubernetes.executor.label.shoal-tag={TAG}" in argv
    assert argv.count("spark.kubernetes.namespace=spark") == 1

    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text("spark.kubernetes.namespace   of-worker\n")
    without = given.model_copy(update={"conf": {}})
    assert pod_namespace(without, tmp_path) == "of-worker"
    (tmp_path / "spark-defaults.conf").unlink()
    assert pod_namespace(without, tmp_path) == "default"


def test_label_is_not_the_tasks_to_set() -> None:
    conf = {"spark.kubernetes.driver.label.shoal-tag": "other"}
    with pytest.raises(ValueError, match="cannot be set by a task"):
        SparkParams.model_validate({**params("https://k:1"), "conf": conf})
