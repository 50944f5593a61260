"""The task types that run programs of your own, for the Python SDK."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, Unpack

from shoal.client.errors import AuthoringError
from shoal.client.sdk.arguments import typed
from shoal.client.sdk.author_files import call_site, read_script
from shoal.client.sdk.workflow import Task, TaskOptions

File: TypeAlias = str | Path


class Shell(Task):
    """A script for ``sh`` or ``bash``; parameters are its environment variables.

    ``file`` is a resource of the project, ``script_file`` a file that is read here and now.
    """

    @typed
    def __init__(
        self,
        name: str,
        *,
        script: str | None = None,
        script_file: File | None = None,
        file: str | None = None,
        interpreter: Literal["sh", "bash"] | None = None,
        arguments: Sequence[str] = (),
        **options: Unpack[TaskOptions],
    ) -> None:
        params = given(interpreter=interpreter, arguments=arguments)
        params |= program(name, "script", script, script_file, file)
        super().__init__(name, type="SHELL", params=params, **options)


class Python(Task):
    """A Python program; see ``python_task`` for a function instead.

    ``file`` is a resource of the project, ``script_file`` a file that is read here and now.
    """

    @typed
    def __init__(
        self,
        name: str,
        *,
        script: str | None = None,
        script_file: File | None = None,
        file: str | None = None,
        interpreter: str | None = None,
        arguments: Sequence[str] = (),
        spark: Literal["connect"] | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        params = given(interpreter=interpreter, arguments=arguments, spark=spark)
        params |= program(name, "script", script, script_file, file)
        super().__init__(name, type="PYTHON", params=params, **options)


class Spark(Task):
    """A PySpark program (``script``, ``script_file``), or an application from elsewhere."""

    @typed
    def __init__(
        self,
        name: str,
        *,
        script: str | None = None,
        script_file: File | None = None,
        application: str | None = None,
        main_class: str | None = None,
        arguments: Sequence[str] = (),
        master: str | None = None,
        deploy_mode: Literal["client", "cluster"] | None = None,
        app_name: str | None = None,
        driver_memory: str | None = None,
        driver_cores: int | None = None,
        executor_memory: str | None = None,
        executor_cores: int | None = None,
        num_executors: int | None = None,
        queue: str | None = None,
        py_files: Sequence[str] = (),
        jars: Sequence[str] = (),
        files: Sequence[str] = (),
        conf: Mapping[str, str] | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        params = given(
            application=application,
            main_class=main_class,
            arguments=arguments,
            master=master,
            deploy_mode=deploy_mode,
            name=app_name,
            driver_memory=driver_memory,
            driver_cores=driver_cores,
            executor_memory=executor_memory,
            executor_cores=executor_cores,
            num_executors=num_executors,
            queue=queue,
            py_files=py_files,
            jars=jars,
            files=files,
            conf=conf,
        )
        if application is None or script is not None or script_file is not None:
            params |= program(name, "script", script, script_file)
        super().__init__(name, type="SPARK", params=params, **options)


class MapReduce(Task):
    """A MapReduce program in a jar."""

    @typed
    def __init__(
        self,
        name: str,
        *,
        jar: str,
        main_class: str | None = None,
        arguments: Sequence[str] = (),
        queue: str | None = None,
        files: Sequence[str] = (),
        jars: Sequence[str] = (),
        conf: Mapping[str, str] | None = None,
        overwrite: str | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        params = given(
            jar=jar,
            main_class=main_class,
            arguments=arguments,
            queue=queue,
            files=files,
            jars=jars,
            conf=conf,
            overwrite=overwrite,
        )
        super().__init__(name, type="MR", params=params, **options)


def given(**values: Any) -> dict[str, Any]:
    """Return what was given: None and empty lists were not."""
    return {key: value for key, value in values.items() if value not in (None, (), [], {})}


def program(
    task: str, field: str, text: str | None, file: File | None, resource: str | None = None
) -> dict[str, str]:
    """Return a program: its text, given itself or as a file, or the name of a resource.

    Raises AuthoringError.
    """
    if sum(one is not None for one in (text, file, resource)) != 1:
        raise AuthoringError(f"task {task!r}: give exactly one of {field} and {field}_file")
    if resource is not None:
        return {"file": resource}
    if text is not None:
        return {field: text}
    assert file is not None
    # Relative to the program that says so, wherever it is run from.
    folder = Path(call_site().file).absolute().parent
    try:
        return {field: read_script(folder / Path(file).expanduser())}
    except ValueError as error:
        raise AuthoringError(f"task {task!r}: {error}") from None
