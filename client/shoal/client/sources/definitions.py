"""Load workflow definitions from files and folders, and report every problem of all of them.

What files may hold beyond the model: ``script_file`` in a task's ``params`` names a file (from the
definition's folder) whose text becomes ``script``, ``sql_file`` one that becomes ``sql``, and
``${file.directory}`` in any text is the absolute folder of the definition.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.client.sdk.author_files import read_script
from shoal.client.sources.folders import DefinitionFile, find_files, read_text
from shoal.client.sources.json_file import read_json
from shoal.core.checks.workflow import DefinitionProblem, InvalidDefinition
from shoal.core.checks.workflow import Path as ValuePath
from shoal.core.definition.model import WorkflowSpec
from shoal.runtime.documents.source import DocumentSource, SourcePosition
from shoal.runtime.documents.yaml_file import read_yaml
from shoal.runtime.plugins import check_definition

# A second $ in front makes it plain text.
_PROGRAMS = ("script", "sql")  # fields of params whose text may stand in a file
_FILE_DIRECTORY = re.compile(r"(?<!\$)\$\{file\.directory\}")
_MARKS_OF_A_WORKFLOW = frozenset({"tasks", "task", "schedules", "on_failure"})


@dataclass(frozen=True)
class Definition:
    """A workflow that is ready to be published, and where it is written."""

    spec: WorkflowSpec
    source: DocumentSource = field(repr=False)

    @property
    def position(self) -> SourcePosition:
        """Where the definition begins."""
        return self.source.where(())

    def locate(self, problem: DefinitionProblem) -> DefinitionProblem:
        """Return ``problem`` with its file and line."""
        return self.source.locate(problem)


@dataclass(frozen=True)
class Loaded:
    """What was found. ``skipped``: YAML and JSON files of folders that hold none."""

    definitions: list[Definition]
    skipped: list[Path]


def load_definitions(
    paths: Sequence[Path], on_file: Callable[[int, int], None] | None = None
) -> Loaded:
    """Return all definitions of files and folders.

    ``on_file`` is called with how many files of how many are done. Raises InvalidDefinition with
    the problems of all files, each with its file and line.
    """
    problems: list[DefinitionProblem] = []
    files = find_files(paths, problems)
    loader = _Loader(problems)
    for number, file in enumerate(files, 1):
        loader.load(file)
        if on_file is not None:
            on_file(number, len(files))
    if not problems and not loader.definitions:
        where = ", ".join(map(str, paths))
        problems.append(DefinitionProblem((), "no workflow definition was found here", where, 1))
    if problems:
        raise InvalidDefinition(problems)
    return Loaded(loader.definitions, loader.skipped)


class _Loader:
    """Loads one file after the other; problems are collected."""

    def __init__(self, problems: list[DefinitionProblem]) -> None:
        self.problems = problems
        self.definitions: list[Definition] = []
        self.skipped: list[Path] = []
        self._first: dict[tuple[str, str], SourcePosition] = {}

    def load(self, file: DefinitionFile) -> None:
        before = len(self.problems)
        text = read_text(file, self.problems)
        if text is None:
            if len(self.problems) == before and file.kind != ".py":  # programs are expected
                self.skipped.append(file.path)
            return
        sources = _read(file, text, self.problems)
        if not file.named and file.kind != ".py":
            sources = [
                source
                for source in sources
                if isinstance(source.value, dict)
                and any(str(key).lower() in _MARKS_OF_A_WORKFLOW for key in source.value)
            ]
        if not sources and len(self.problems) == before:
            if file.named:
                message = "holds no workflow definition"
                self.problems.append(DefinitionProblem((), message, str(file.path), 1))
            else:
                self.skipped.append(file.path)
        for source in sources:
            self._check(file, source)

    def _check(self, file: DefinitionFile, source: DocumentSource) -> None:
        before = len(self.problems)
        value = _Preparation(file.path, source, self.problems).prepare()
        try:
            spec = check_definition(value)
        except InvalidDefinition as error:
            known = {(p.path, p.message) for p in self.problems[before:]}
            self.problems += [
                source.locate(problem)
                for problem in error.problems
                if (problem.path, problem.message) not in known
            ]
            return
        key = (spec.project, spec.name)
        if first := self._first.get(key):
            message = f"workflow {spec.project}/{spec.name} is defined already at {first}"
            self.problems.append(source.locate(DefinitionProblem(("name",), message)))
        self._first.setdefault(key, source.where(()))
        if len(self.problems) == before:
            self.definitions.append(Definition(spec, source))


def _read(
    file: DefinitionFile, text: str, problems: list[DefinitionProblem]
) -> list[DocumentSource]:
    match file.kind:
        case ".yaml":
            return read_yaml(text, str(file.path), problems)
        case ".json":
            return read_json(text, str(file.path), problems)
        case _:
            from shoal.client.sources.python_file import read_python

            return read_python(file.path, problems)


class _Preparation:
    """Replaces what only files may hold."""

    def __init__(
        self, file: Path, source: DocumentSource, problems: list[DefinitionProblem]
    ) -> None:
        self._folder = file.absolute().parent
        self._source, self._problems = source, problems

    def prepare(self) -> Any:
        """Return the definition with the fields of the model."""
        value = self._with_folder(self._source.value, ())
        tasks = value.get("tasks") if isinstance(value, dict) else None
        if isinstance(tasks, list):
            value = {**value, "tasks": [self._task(task, n) for n, task in enumerate(tasks)]}
        return value

    def _note(self, path: ValuePath, message: str) -> None:
        self._problems.append(self._source.locate(DefinitionProblem(path, message)))

    def _with_folder(self, value: Any, path: ValuePath) -> Any:
        match value:
            case str() if "${file.directory}" in value:
                folder = str(self._folder)
                if "${" in folder or "$[" in folder or not _encodable(folder):
                    self._note(path, f"the name of the folder {folder!r} cannot be used in a text")
                    return value
                return _FILE_DIRECTORY.sub(lambda _: folder, value)
            case dict():
                return {k: self._with_folder(v, (*path, k)) for k, v in value.items()}
            case list():
                return [self._with_folder(v, (*path, n)) for n, v in enumerate(value)]
            case _:
                return value

    def _task(self, task: Any, index: int) -> Any:
        params = task.get("params") if isinstance(task, dict) else None
        if not isinstance(params, dict):
            return task
        for program in _PROGRAMS:
            params = self._with_program(params, index, program)
        return {**task, "params": params}

    def _with_program(self, params: dict[Any, Any], index: int, program: str) -> dict[Any, Any]:
        """Return the params with the text of the file that is named for a program."""
        named = f"{program}_file"
        if named not in params:
            return params
        path: ValuePath = ("tasks", index, "params", named)
        rest = {key: value for key, value in params.items() if key != named}
        if program in rest:
            self._note(path, f"give {program} or {named}, not both")
        elif isinstance(name := params[named], str) and name:
            rest[program] = self._script(path, self._folder / Path(name).expanduser())
        else:
            self._note(path, "must be the name of a file")
            rest[program] = "?"  # so that the lack of a script is not a second problem
        return rest

    def _script(self, path: ValuePath, file: Path) -> str:
        try:
            return read_script(file)
        except ValueError as error:
            self._note(path, str(error))
            return "?"  # so that the lack of a script is not a second problem


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
