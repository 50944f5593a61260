"""Stored data sources, resolved for one attempt."""

from collections.abc import Callable

from shoal.core.data_sources.kind import SourceKind
from shoal.core.data_sources.model import DataSource
from shoal.core.data_sources.spec import DataSourceSpec, findings, texts_of
from shoal.core.errors import ShoalError, shortened
from shoal.core.macros import placeholders
from shoal.core.macros.placeholders import is_open

_LONGEST_SHOWN = 100  # characters of a definition


class UnusableDataSource(ShoalError):
    """A data source cannot be used as it is stored, or with the parameters of this task."""

    def __init__(self, name: str, field: str, problem: str) -> None:
        self.name, self.field = name, field
        super().__init__(
            f"data source {name}: {field} {problem}; change it with `shoal data-source set`"
        )


def rendered(
    name: str,
    spec: DataSourceSpec,
    kind: type[SourceKind],
    render: Callable[[str], str],
    *,
    password: str = "",
    version: int = 0,
) -> DataSource:
    """Return the data source with all its texts rendered, and with the defaults of its options.

    Raises UnusableDataSource, and what ``render`` raises.
    """
    done: dict[str, str] = {}
    for field, text in texts_of(spec).items():
        done[field] = _render(name, field, text, render) if is_open(text) else text
    options = {key: done.get(f"options.{key}", value) for key, value in spec.options.items()}
    plain = {field: done[field] for field in ("host", "database", "user")}
    # Once more: only now is it known what stands there. What has been rendered is final, also if
    # it looks like a placeholder again.
    closed = spec.model_copy(update={**plain, "options": options, "shared_with": []})
    found = findings(closed, kind)
    open_again = [field for field, text in texts_of(closed).items() if is_open(text)]
    found += [(field, "renders to a text that contains a placeholder") for field in open_again]
    for field, problem in found:
        was = texts_of(spec).get(field, "")
        if is_open(was):
            problem = f"({shortened(was, _LONGEST_SHOWN)}) {problem}"
        raise UnusableDataSource(name, field, problem)
    return DataSource(
        name,
        spec.kind,
        host=plain["host"],
        port=spec.port,
        database=plain["database"],
        user=plain["user"],
        options=kind.Options.model_validate(options).model_dump(by_alias=True, exclude_none=True),
        password=password,
        version=version,
    )


def _render(name: str, field: str, text: str, render: Callable[[str], str]) -> str:
    value = render(text)
    unknown = sorted(one for one in placeholders.names(text) if "${" + one + "}" in value)
    if unknown:
        shown = shortened(text, _LONGEST_SHOWN)
        problem = f"({shown}) names a parameter that the task does not have: {unknown[0]}"
        raise UnusableDataSource(name, field, problem)
    return value
