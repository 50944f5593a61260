"""Python functions as tasks: the function's source becomes the script of a PYTHON task.

::

    with Workflow("daily", parameters={"date": Parameter(type="date"), "limit": 10}) as daily:

        @python_task(retries=2)
        def report(date: dt.date, limit: int, title: str = "Report") -> None:
            from pathlib import Path
            Path("report.txt").write_text(f"{title} of {date}, {limit} lines")

        fetch >> report()

The worker runs the source alone, so the function imports what it needs itself and uses nothing
from around it. Its arguments are the parameters of the same names, of the task or the workflow,
converted by their annotation (int, float, bool, str, date) or else by the parameter's declared
type. What a task upstream gives on is such a parameter: ``parameters={"rows": "${rows}"}``. If the
function returns a dict, these are the outputs of its own task.
"""

import ast
import builtins
import datetime as dt
import dis
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import CodeType
from typing import Any, ParamSpec, TypeVar

from shoal.client.errors import AuthoringError
from shoal.core.macros.placeholders import escape

P = ParamSpec("P")
R = TypeVar("R")

# How the text of a parameter becomes a value, as an expression over ``text``.
_CONVERSIONS = {
    "str": "{text}",
    "int": "int({text})",
    "float": "float({text})",
    "bool": "{{'true': True, 'false': False}}[{text}]",
    "date": "datetime.date.fromisoformat({text})",
}
_DECLARED = {"integer": "int", "number": "float", "boolean": "bool", "date": "date"}
# Texts that would not reach the interpreter as they are written.
_MARKS = ("$[", "$${", "${system.")
_CONSTANTS = (str, int, float, bool, dt.date)
# What becomes of a function's result. JSON writes dates and the like as their text.
_GIVE_ON = """\
    if isinstance(result, dict):
        with open(os.environ['SHOAL_OUTPUT'], 'a', encoding='utf-8') as file:
            file.write(json.dumps(result, ensure_ascii=False, default=str) + '\\n')
"""


# -- source ----------------------------------------------------------------------------------


def standalone_source(function: Callable[..., Any]) -> str:
    """Return the source of a function without decorators and indentation."""
    if not inspect.isfunction(function):
        raise AuthoringError(f"{function!r} is not a function that def makes")
    what = f"{function.__name__}()"
    if function.__name__ == "<lambda>":
        raise AuthoringError("a lambda cannot be a task; write a function with def")
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise AuthoringError(f"{what} is async or a generator; a task is a plain function")
    if inspect.isasyncgenfunction(function):
        raise AuthoringError(f"{what} is async or a generator; a task is a plain function")
    source, node = _parsed_source(function)
    if len(node.decorator_list) > 1:
        raise AuthoringError(f"{what} has another decorator, which the worker would not have")
    foreign = sorted({*_foreign_names(function), *_foreign_in_defaults(node)})
    if foreign:
        names = ", ".join(map(repr, foreign))
        raise AuthoringError(
            f"{what} uses {names} from outside of itself, which the worker does not have; "
            "import or define it inside the function, or make it an argument"
        )
    return source


def _parsed_source(function: Callable[..., Any]) -> tuple[str, ast.FunctionDef]:
    what = f"{function.__name__}()"
    try:
        lines, _ = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise AuthoringError(f"the source of {what} is not to be had; put it into a file") from None
    text = "".join(lines)
    # Below "if True" the function may stay indented, and text inside it as it is.
    indented = text[:1].isspace()
    try:
        module = ast.parse(f"if True:\n{text}" if indented else text)
    except SyntaxError:
        raise AuthoringError(f"the source of {what} cannot be taken out of its file") from None
    block = module.body[0]
    node = block.body[0] if indented and isinstance(block, ast.If) else block
    if not isinstance(node, ast.FunctionDef):
        raise AuthoringError(f"the source of {what} is not a single def")
    offset = 2 if indented else 1
    body = "".join(lines[node.lineno - offset : (node.end_lineno or 0) - offset + 1])
    body = body if body.endswith("\n") else body + "\n"
    return _unindented(body, node) if indented else body, node


def _unindented(body: str, node: ast.FunctionDef) -> str:
    dedented = textwrap.dedent(body)
    plain = ast.parse(f"if True:\n{body}").body[0]
    assert isinstance(plain, ast.If)
    try:
        if ast.dump(ast.parse(dedented).body[0]) == ast.dump(plain.body[0]):
            return dedented
    except SyntaxError:
        pass
    # A text of several lines inside the function would change: leave the indentation.
    return f"if True:\n{body}"


def _foreign_names(function: Callable[..., Any]) -> Iterator[str]:
    """Yield the names that the function takes from around it."""
    code = function.__code__
    yield from (name for name in code.co_freevars if name != function.__name__)
    own = {function.__name__, *dir(builtins)}
    for inner in _all_code(code):
        for instruction in dis.get_instructions(inner):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL"):
                name = str(instruction.argval)
                if name not in own and not (inner is not code and name in _class_names(inner)):
                    yield name


def _all_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all_code(constant)


def _class_names(code: CodeType) -> set[str]:
    """Names that a class body inside the function stores before it reads them."""
    stored = {str(i.argval) for i in dis.get_instructions(code) if i.opname == "STORE_NAME"}
    return stored | {"__name__", "__module__", "__qualname__"}


def _foreign_in_defaults(node: ast.FunctionDef) -> Iterator[str]:
    """Yield names in default values; annotations are never evaluated."""
    defaults = [*node.args.defaults, *node.args.kw_defaults]
    for default in defaults:
        for part in ast.walk(default) if default is not None else ():
            if isinstance(part, ast.Name) and part.id not in dir(builtins):
                yield part.id


def script_of(
    function: Callable[..., Any],
    source: str,
    fixed: Mapping[str, Any],
    *,
    own: Collection[str],
    workflow: str,
    declared: Mapping[str, str],
) -> str:
    """Return the script of a task that calls a function. Raises AuthoringError.

    ``source``: from ``standalone_source``. ``fixed``: values of arguments by name. ``own``: names
    of the task's parameters. ``workflow``: its name; ``declared``: types of its parameters.
    """
    called = function.__name__
    arguments = list(_arguments(function, fixed, own, workflow, declared))
    lines = [f"        {argument}," for argument in arguments]
    result = f"    result = {called}("
    call = "\n".join([result, *lines, "    )"]) if lines else f"{result})"
    read = "    with open(os.environ['SHOAL_PARAMETERS'], encoding='utf-8') as file:\n"
    read += "        given = json.load(file)\n"
    text = (
        "from __future__ import annotations\n\n\n"
        f"{source}\n\n"
        "def _shoal_main() -> None:\n"
        "    import datetime\n    import json\n    import os\n\n"
        f"{read if any('given[' in a for a in arguments) else ''}"
        f"{call}\n{_GIVE_ON}\n\n_shoal_main()\n"
    )
    # The function means what it says; $[…] in it is not a date expression.
    return escape(text) if any(mark in text for mark in _MARKS) else text


# -- arguments -------------------------------------------------------------------------------


def _arguments(
    function: Callable[..., Any],
    fixed: Mapping[str, Any],
    own: Collection[str],
    workflow: str,
    declared: Mapping[str, str],
) -> Iterator[str]:
    """Yield the arguments of the call as source text."""
    what = f"{function.__name__}()"
    parameters = inspect.signature(function).parameters
    if unknown := sorted(set(fixed) - set(parameters)):
        raise AuthoringError(f"{what} has no argument {', '.join(unknown)}")
    for name, parameter in parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise AuthoringError(f"{what}: *{name} has no parameters to take; name each argument")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise AuthoringError(f"{what}: argument {name!r} is positional only; remove the /")
        if name in fixed:
            yield f"{name}={_constant(what, name, fixed[name])}"
        elif name in own or name in declared:
            kind = _kind(what, name, parameter.annotation)
            kind = kind or _DECLARED.get(declared.get(name, "string"), "str")
            yield f"{name}=" + _CONVERSIONS[kind].format(text=f"given[{name!r}]")
        elif parameter.default is parameter.empty:
            known = ", ".join(declared) or "none"
            raise AuthoringError(
                f"{what} wants {name!r}, but workflow {workflow!r} has no such parameter "
                f"(it has {known}); declare it, give the task a parameter {name}, or fix a value "
                f"with {function.__name__}({name}=…)"
            )


def _kind(what: str, name: str, annotation: Any) -> str | None:
    """Return the conversion for an annotation; None if there is none."""
    if annotation is inspect.Parameter.empty:
        return None
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", None)
    kind = str(text or annotation).removesuffix(" | None").rpartition(".")[2]
    if kind not in _CONVERSIONS:
        raise AuthoringError(
            f"{what}: argument {name!r} is annotated {text or annotation}, but a parameter becomes "
            f"{', '.join(_CONVERSIONS)} only"
        )
    return kind


def _constant(what: str, name: str, value: Any) -> str:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return f"datetime.date({value.year}, {value.month}, {value.day})"
    if value is None or type(value) in _CONSTANTS:
        return repr(value)
    if isinstance(value, Path):
        return repr(str(value))
    raise AuthoringError(
        f"{what}: {name}={value!r} cannot be written into a script; give text, numbers, truth "
        "values or dates"
    )
