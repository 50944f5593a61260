"""What the built-in task types accept, refuse, and make of it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from shoal.runtime.plugins import load_task_type, task_type_names
from shoal.worker.types.program import CannotRun, write_program
from shoal.worker.types.programs.python import PythonParams
from shoal.worker.types.programs.shell import ShellParams, require_variables
from shoal.worker.types.spark.command import find_spark, options
from shoal.worker.types.spark.kind import FIELDS, SparkParams


def spark(**fields: Any) -> SparkParams:
    return SparkParams.model_validate({"script": "print()", **fields})


def refusal(**fields: Any) -> str:
    with pytest.raises(ValidationError) as error:
        spark(**fields)
    return str(error.value)


def test_built_in_types_are_registered_like_any_plugin() -> None:
    assert {"SHELL", "PYTHON", "SPARK", "SQL", "PROCEDURE"} <= set(task_type_names())
    for name in ("SHELL", "PYTHON", "SPARK", "SQL", "PROCEDURE"):
        assert load_task_type(name).Params.model_json_schema()["properties"]


def test_importing_the_types_is_cheap() -> None:
    heavy = {"pyspark", "grpc", "kazoo", "asyncio", "numpy", "structlog"}
    code = (
        "import sys\n"
        "import shoal.worker.types.programs.shell, shoal.worker.types.programs.python\n"
        "import shoal.worker.types.spark.kind\n"
        f"print(sorted({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(eval(done.stdout)) <= {"asyncio"}  # pydantic's plugins may load it


@pytest.mark.parametrize("params", [ShellParams, PythonParams])
@pytest.mark.parametrize("script", ["", "  \n\t", "echo \0"])
def test_script_must_be_a_program(params: type[ShellParams], script: str) -> None:
    with pytest.raises(ValidationError):
        params(script=script)


def test_unknown_fields_and_interpreters_are_refused() -> None:
    with pytest.raises(ValidationError):
        ShellParams.model_validate({"script": "true", "shell": "bash"})
    with pytest.raises(ValidationError):
        ShellParams.model_validate({"script": "true", "interpreter": "/bin/evil"})
    with pytest.raises(ValidationError):
        PythonParams(script="1", interpreter="-c")


def test_program_is_written_byte_by_byte_and_private(tmp_path: Path) -> None:
    text = "#!/bin/sh\r\necho 'ö'\n\n"
    path = write_program(tmp_path, "script.sh", text)
    assert path.read_bytes() == text.encode()
    assert path.stat().st_mode & 0o777 == 0o700
    with pytest.raises(FileExistsError):
        write_program(tmp_path, "script.sh", text)


def test_spark_options_come_from_fields_alone() -> None:
    params = spark(
        master="spark://host:7077",
        driver_memory="1g",
        executor_cores=2,
        num_executors=3,
        queue="prod",
        py_files=["a.zip", "b.py"],
        jars=["x.jar"],
        conf={"spark.sql.ansi.enabled": "true; rm -rf /"},
    )
    assert options(params, "job") == [
        *("--master", "spark://host:7077", "--deploy-mode", "client", "--name", "job"),
        *("--driver-memory", "1g", "--executor-cores", "2", "--num-executors", "3"),
        *("--queue", "prod", "--py-files", "a.zip,b.py", "--jars", "x.jar"),
        *("--conf", "spark.sql.ansi.enabled=true; rm -rf /"),
    ]


def test_local_driver_stays_on_loopback_unless_told_otherwise() -> None:
    argv = options(spark(conf={"spark.ui.enabled": "true"}), "job")
    assert "spark.driver.bindAddress=127.0.0.1" in argv
    assert "spark.ui.enabled=true" in argv
    assert "spark.ui.enabled=false" not in argv


def test_exactly_one_of_script_and_application() -> None:
    assert "exactly one" in refusal(application="app.py")
    with pytest.raises(ValidationError, match="exactly one"):
        SparkParams()


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "--conf"},
        {"master": "--properties-file=/etc/passwd"},
        {"queue": "-q"},
        {"py_files": ["--jars"]},
        {"jars": ["-x"]},
        {"files": ["-"]},
        {"script": None, "application": "--class"},
        {"conf": {"spark.a": "-Dx"}},
        {"main_class": "-javaagent"},
        {"driver_memory": "-1g"},
    ],
)
def test_values_that_look_like_options_are_refused(fields: dict[str, Any]) -> None:
    refusal(**fields)


@pytest.mark.parametrize(
    "key",
    [
        "spark.driver.extraJavaOptions",
        "spark.executor.extraJavaOptions",
        "spark.driver.defaultJavaOptions",
        "spark.yarn.am.extraJavaOptions",
        "spark.driver.extraClassPath",
        "spark.executor.EXTRACLASSPATH",
        "spark.submit.anything",
        "spark.jars.packages",
        "spark.jars.ivySettings",
        "spark.plugins",
        "spark.extraListeners",
        "spark.sql.extensions",
        "spark.driver.resource.gpu.discoveryScript",
        "spark.pyspark.python",
        "spark.r.command",
        "spark.executorEnv.LD_PRELOAD",
        "spark.yarn.appMasterEnv.LD_PRELOAD",
        "spark.kubernetes.driver.podTemplateFile",
        "spark.metrics.conf",
        "spark.redaction.regex",
        "spark.yarn.tags",
        "spark.yarn.submit.waitAppCompletion",
        *FIELDS,
    ],
)
def test_dangerous_and_doubled_settings_are_refused_by_name(key: str) -> None:
    assert key in refusal(conf={key: "x"})


def test_driver_of_a_standalone_master_stays_on_the_worker() -> None:
    fields = {"script": None, "application": "a.jar", "deploy_mode": "cluster"}
    assert "use client" in refusal(master="spark://host:7077", **fields)
    assert "needs a cluster" in refusal(master="local[2]", **fields)


@pytest.mark.parametrize("key", ["hadoop.x", "spark.a b", "spark.a=b", "", "spark.x\nspark.y"])
def test_conf_keys_are_settings_of_spark(key: str) -> None:
    assert "is not a Spark setting" in refusal(conf={key: "x"})


@pytest.mark.parametrize("memory", ["1", "1.5g", "0g", "g", "1g 2g", "1gx"])
def test_memory_has_a_unit(memory: str) -> None:
    refusal(driver_memory=memory)


@pytest.mark.parametrize("memory", ["449m", "460799k", "100MB"])
def test_memory_that_no_driver_starts_with_is_refused(memory: str) -> None:
    assert "less than 450m" in refusal(driver_memory=memory)
    assert spark(driver_memory="450m")


@pytest.mark.parametrize(
    "master",
    ["local", "local[2]", "local[*]", "local[4,2]", "yarn", "spark://h:1", "k8s://https://h"],
)
def test_known_masters_are_accepted(master: str) -> None:
    assert spark(master=master).master == master


@pytest.mark.parametrize("master", ["", "mesos://x", "local[x]", "local;x", "spark://a b"])
def test_other_masters_are_refused(master: str) -> None:
    refusal(master=master)


def test_placeholders_are_left_for_the_master_to_fill() -> None:
    params = spark(master="${master}", driver_memory="${memory}", name="job-$[yyyyMMdd]")
    assert params.driver_memory == "${memory}"


def test_what_does_not_fit_together_is_refused() -> None:
    assert "deploy_mode cluster" in refusal(deploy_mode="cluster")
    assert "cannot read" in refusal(deploy_mode="cluster", master="yarn")
    assert "main_class" in refusal(main_class="com.example.Main")
    assert "carriage" in refusal(arguments=["a\rb"])
    assert "line ends" in refusal(name="a\nb")


def test_missing_spark_is_told_with_the_cure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(CannotRun, match=r"SPARK_HOME=.* has no bin/spark-submit"):
        find_spark()


@pytest.mark.parametrize(
    ("script", "named"),
    [
        ('echo "$big"', True),
        ("echo ${#big}", True),
        ('echo "${SHOAL_PARAM_BIG}"', True),
        ('python3 read.py "$SHOAL_PARAMETERS"', False),
        ("echo $bigger $small", False),
        ('test -z "${big+x}"; echo ${big:-none} ${big-none}', False),
    ],
)
def test_script_that_names_a_value_too_large_for_a_variable_fails(script: str, named: bool) -> None:
    parameters = {"big": "x" * 200_000, "small": "y", "bigger": "z"}
    if named:
        with pytest.raises(CannotRun, match=r"big.*200000 bytes.*SHOAL_PARAMETERS"):
            require_variables(script, parameters)
    else:
        require_variables(script, parameters)
