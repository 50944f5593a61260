"""Task types that speak to databases, clusters, engines and other machines, for the SDK."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from shoal.client.sdk.arguments import typed
from shoal.client.sdk.tasks import File, given, program
from shoal.client.sdk.workflow import Task, TaskOptions


class Sql(Task):
    """Statements on a data source; ``${name}`` in them is a bound value.

    ``file`` is a resource of the project, ``sql_file`` a file that is read here and now.
    """

    @typed
    def __init__(
        self,
        name: str,
        *,
        data_source: str,
        sql: str | None = None,
        sql_file: File | None = None,
        file: str | None = None,
        before: str | None = None,
        after: str | None = None,
        result: Literal["none", "value", "row", "rows", "file"] | None = None,
        file_name: str | None = None,
        max_rows: int | None = None,
        on_more: Literal["fail", "truncate"] | None = None,
        types: Mapping[str, str] | None = None,
        identifiers: Mapping[str, str] | None = None,
        transaction: Literal["task", "statement"] | None = None,
        read_only: bool | None = None,
        statement_timeout: str | None = None,
        fail_if: str | None = None,
        idempotent: bool | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        params = given(
            data_source=data_source,
            before=before,
            after=after,
            result=result,
            file_name=file_name,
            max_rows=max_rows,
            on_more=on_more,
            types=types,
            identifiers=identifiers,
            transaction=transaction,
            read_only=read_only,
            statement_timeout=statement_timeout,
            fail_if=fail_if,
            idempotent=idempotent,
        )
        params |= program(name, "sql", sql, sql_file, file)
        super().__init__(name, type="SQL", params=params, **options)


class Procedure(Task):
    """A procedure or function of a database; ``arguments`` are by the names of its parameters."""

    @typed
    def __init__(
        self,
        name: str,
        *,
        data_source: str,
        procedure: str,
        arguments: Mapping[str, str | int | float | bool | None] | None = None,
        transaction: Literal["task", "own"] | None = None,
        result: Literal["none", "rows"] | None = None,
        max_rows: int | None = None,
        on_more: Literal["fail", "truncate"] | None = None,
        statement_timeout: str | None = None,
        idempotent: bool | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        params = given(
            data_source=data_source,
            name=procedure,
            arguments=arguments,
            transaction=transaction,
            result=result,
            max_rows=max_rows,
            on_more=on_more,
            statement_timeout=statement_timeout,
            idempotent=idempotent,
        )
        super().__init__(name, type="PROCEDURE", params=params, **options)


class DataQuality(Task):
    """Checks of a table; each is a mapping, such as ``{"check": "rows", "min": 1}``."""

    @typed
    def __init__(
        self,
        name: str,
        *,
        data_source: str,
        table: str,
        checks: Sequence[Mapping[str, Any]],
        where: str | None = None,
        types: Mapping[str, str] | None = None,
        on_failure: Literal["block", "warn"] | None = None,
        hide: Sequence[str] = (),
        **options: Unpack[TaskOptions],
    ) -> None:
        params = given(
            data_source=data_source,
            table=table,
            checks=[dict(check) for check in checks],
            where=where,
            types=types,
            on_failure=on_failure,
            hide=hide,
        )
        super().__init__(name, type="DATA_QUALITY", params=params, **options)


class Http(Task):
    """One request, or the same until something is true (``poll``).

    ``deadline`` is the field ``timeout`` of the request; ``timeout`` is the task's, as everywhere.
    """

    @typed
    def __init__(
        self,
        name: str,
        *,
        url: str,
        method: str | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        auth: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        deadline: str | None = None,
        success: Mapping[str, Any] | None = None,
        poll: Mapping[str, Any] | None = None,
        outputs: Mapping[str, str] | None = None,
        idempotent: bool | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        params = given(
            url=url,
            method=method,
            query=query,
            headers=headers,
            auth=auth,
            body=body,
            timeout=deadline,
            success=success,
            poll=poll,
            outputs=outputs,
            idempotent=idempotent,
        )
        super().__init__(name, type="HTTP", params=params, **options)


class WaitFile(Task):
    """Waits for files at a ``path`` of the worker, or at a ``url``; holds no slot meanwhile."""

    @typed
    def __init__(
        self,
        name: str,
        *,
        path: str | None = None,
        url: str | None = None,
        what: Literal["file", "folder", "any"] | None = None,
        at_least: int | None = None,
        min_size: int | None = None,
        stable_for: str | None = None,
        newer_than: str | None = None,
        every: str | None = None,
        back_off: float | None = None,
        every_max: str | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        params = given(
            path=path,
            url=url,
            what=what,
            at_least=at_least,
            min_size=min_size,
            stable_for=stable_for,
            newer_than=newer_than,
            every=every,
            back_off=back_off,
            every_max=every_max,
        )
        super().__init__(name, type="WAIT_FILE", params=params, **options)


class WaitSql(Task):
    """Waits until the first row of a query says so; holds no slot meanwhile."""

    @typed
    def __init__(
        self,
        name: str,
        *,
        data_source: str,
        sql: str,
        until: str | None = None,
        types: Mapping[str, str] | None = None,
        statement_timeout: str | None = None,
        every: str | None = None,
        back_off: float | None = None,
        every_max: str | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        params = given(
            data_source=data_source,
            sql=sql,
            until=until,
            types=types,
            statement_timeout=statement_timeout,
            every=every,
            back_off=back_off,
            every_max=every_max,
        )
        super().__init__(name, type="WAIT_SQL", params=params, **options)


class Ssh(Task):
    """A script on another host."""

    @typed
    def __init__(
        self,
        name: str,
        *,
        data_source: str,
        script: str | None = None,
        script_file: File | None = None,
        file: str | None = None,
        interpreter: Literal["sh", "bash"] | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        params = given(data_source=data_source, file=file, interpreter=interpreter)
        params |= program(name, "script", script, script_file, file)
        super().__init__(name, type="SSH", params=params, **options)


class Flink(Task):
    """A job of a jar in a Flink session cluster."""

    @typed
    def __init__(
        self,
        name: str,
        *,
        data_source: str,
        jar: str,
        main_class: str | None = None,
        arguments: Sequence[str] = (),
        parallelism: int | None = None,
        savepoint: str | None = None,
        allow_non_restored_state: bool | None = None,
        wait: Literal["finished", "running"] | None = None,
        cancel: Literal["cancel", "stop_with_savepoint"] | None = None,
        savepoint_folder: str | None = None,
        resume: bool | None = None,
        conf: Mapping[str, str] | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        params = given(
            data_source=data_source,
            jar=jar,
            main_class=main_class,
            arguments=arguments,
            parallelism=parallelism,
            savepoint=savepoint,
            allow_non_restored_state=allow_non_restored_state,
            wait=wait,
            cancel=cancel,
            savepoint_folder=savepoint_folder,
            resume=resume,
            conf=conf,
        )
        super().__init__(name, type="FLINK", params=params, **options)


class Container(Task):
    """An image at a container engine of the worker, or as a Job in Kubernetes.

    ``env`` are variables of the container, the ``environment`` of its params.
    ``secrets`` are texts such as ``${secret.NAME}`` by the names of their files in
    ``/shoal/secrets``; ``mounts`` are mappings with ``source``, ``target`` and ``read_only``.
    """

    @typed
    def __init__(
        self,
        name: str,
        *,
        engine: Literal["docker", "podman", "kubernetes"],
        image: str,
        command: Sequence[str] = (),
        arguments: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        working_dir: str | None = None,
        user: str | None = None,
        cpus: float | None = None,
        memory: str | None = None,
        pids: int | None = None,
        network: str | None = None,
        mounts: Sequence[Mapping[str, Any]] = (),
        init: bool | None = None,
        pull: Literal["missing", "always", "never"] | None = None,
        registry: Mapping[str, str] | None = None,
        namespace: str | None = None,
        service_account: str | None = None,
        start_timeout: str | None = None,
        idempotent: bool | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        params = given(
            engine=engine,
            image=image,
            command=command,
            arguments=arguments,
            environment=env,
            secrets=secrets,
            working_dir=working_dir,
            user=user,
            cpus=cpus,
            memory=memory,
            pids=pids,
            network=network,
            mounts=[dict(mount) for mount in mounts],
            init=init,
            pull=pull,
            registry=registry,
            namespace=namespace,
            service_account=service_account,
            start_timeout=start_timeout,
            idempotent=idempotent,
        )
        super().__init__(name, type="CONTAINER", params=params, **options)
