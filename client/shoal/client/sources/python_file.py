"""Read definitions that are written in Python: run the file, collect its workflows.

The file is an ordinary program of the user and may do whatever they may. Modules beside it can be
imported. What it prints goes to standard error, since standard output is for results.
"""

import importlib.util
import linecache
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType

from shoal.client.errors import AuthoringError
from shoal.client.sdk.workflow import Workflow
from shoal.core.checks.workflow import DefinitionProblem
from shoal.runtime.documents.source import DocumentSource


def read_python(file: Path, problems: list[DefinitionProblem]) -> list[DocumentSource]:
    """Return the workflows at the top level of ``file``; what is wrong goes to ``problems``."""
    name = str(file)
    try:
        with _as_program(file) as module, redirect_stdout(sys.stderr):
            assert module.__spec__ is not None
            assert module.__spec__.loader is not None
            module.__spec__.loader.exec_module(module)
    except SyntaxError as error:
        where = error.filename if error.filename not in (None, str(file.absolute())) else name
        problems.append(
            DefinitionProblem((), f"is not Python: {error.msg}", where, error.lineno or 1)
        )
        return []
    except SystemExit as error:
        message = f"ends the program (SystemExit: {error.code}); put that under __main__"
        problems.append(DefinitionProblem((), message, name, _line_in(file, error)))
        return []
    except AuthoringError as error:
        problems.append(DefinitionProblem((), str(error), name, _line_in(file, error)))
        return []
    except Exception as error:  # noqa: BLE001  the user's program may fail in any way
        problems.append(DefinitionProblem((), _in_words(error), name, _line_in(file, error)))
        return []
    workflows = [value for value in vars(module).values() if isinstance(value, Workflow)]
    unique = list({id(workflow): workflow for workflow in workflows}.values())
    if not unique:
        message = "has no Workflow in a variable of the module, so it defines nothing"
        problems.append(DefinitionProblem((), message, name, 1))
    sources = []
    for workflow in unique:
        try:
            sources.append(workflow.source(shown_as={str(file.absolute()): name}))
        except Exception as error:  # noqa: BLE001  what a program has done to its workflow since
            message = f"workflow {workflow.name!r} cannot be read: {_in_words(error)}"
            problems.append(DefinitionProblem((), message, name, workflow.position.line))
    return sources


def _in_words(error: Exception) -> str:
    if isinstance(error, AuthoringError):
        return str(error)
    return " ".join(f"{type(error).__name__}: {error}".rstrip(": ").split())


@contextmanager
def _as_program(file: Path) -> Iterator[ModuleType]:
    """Make a module of ``file`` for the block, with its folder first in the search path."""
    folder = str(file.absolute().parent)
    before = dict(sys.modules)
    spec = importlib.util.spec_from_file_location(f"_shoal_definition_{file.stem}", file.absolute())
    assert spec is not None, "the suffix is .py"
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where inspect and dataclasses look for it
    sys.path.insert(0, folder)
    writes_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    linecache.checkcache()
    try:
        yield module
    finally:
        sys.dont_write_bytecode = writes_bytecode
        sys.path.remove(folder)
        # The next file may have a helper module of the same name in another folder.
        for name, found in list(sys.modules.items()):
            if name not in before and _is_below(found, folder):
                del sys.modules[name]


def _is_below(module: ModuleType | None, folder: str) -> bool:
    path = getattr(module, "__file__", None)
    return isinstance(path, str) and Path(path).is_relative_to(folder)


def _line_in(file: Path, error: BaseException) -> int:
    """Return the line of ``file`` that the error came through last."""
    path = str(file.absolute())
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == path and frame.lineno is not None
    ]
    return lines[-1] if lines else 1
