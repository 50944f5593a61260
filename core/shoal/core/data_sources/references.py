"""References to data sources in the params of a task: the texts that are marked ``SourceName``.

The mark may stand on a field, on the items of a list or mapping, or on a field of a nested model.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain, repeat
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticUndefined

from shoal.core.definition.fields import NAME_PATTERN, PARAMETER_PATTERN

SOURCE_NAME_PATTERN = PARAMETER_PATTERN


@dataclass(frozen=True)
class SourceName:
    """Marks a text field of ``Params`` that names a data source of the project.

    The payload of the task contains the data source then. ``kinds`` are the names of the kinds that
    fit; empty: all.
    """

    kinds: frozenset[str] = frozenset()

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Tell forms to offer the data sources of these kinds."""
        return {**handler(schema), "x-ref": "data-source", "x-kinds": sorted(self.kinds)}


Path = tuple[str | int, ...]
Named = tuple[Path, str, SourceName]  # where, the text, and what may stand there


def is_source_name(text: str) -> bool:
    """Say whether a text is a name of a data source as tasks write it: NAME or PROJECT/NAME."""
    project, slash, name = text.rpartition("/")
    is_of_project = not slash or re.fullmatch(NAME_PATTERN, project)
    return bool(is_of_project and re.fullmatch(SOURCE_NAME_PATTERN, name))


def sources_named(
    model: type[BaseModel], params: Mapping[str, Any], path: Path = ()
) -> Iterator[Named]:
    """Yield the texts of ``params`` that name data sources.

    ``params`` are as a person wrote them; a field that is not there has its default.
    """
    for name, field in model.model_fields.items() if names_sources(model) else ():
        written = field.alias if field.alias in params else name
        value = params.get(written or name, field.default)
        if value is not PydanticUndefined:
            mark = _mark(field.metadata)
            yield from _walk(field.annotation, value, mark, (*path, written or name))


@cache
def names_sources(model: type[BaseModel]) -> bool:
    """Say whether a field of a model, or of one inside of it, is marked."""
    return _is_marked(model, frozenset())


def _is_marked(annotation: Any, seen: frozenset[Any]) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation not in seen and any(
            _mark(field.metadata) is not None or _is_marked(field.annotation, seen | {annotation})
            for field in annotation.model_fields.values()
        )
    parts = get_args(annotation)
    return _mark(parts) is not None or any(_is_marked(part, seen) for part in parts)


def _mark(metadata: Any) -> SourceName | None:
    return next((one for one in metadata if isinstance(one, SourceName)), None)


def _walk(annotation: Any, value: Any, mark: SourceName | None, path: Path) -> Iterator[Named]:
    """Walk along a type and a value together. ``mark``: of what the type stands in."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _walk(parts[0], value, _mark(parts[1:]) or mark, path)
    elif origin in (Union, UnionType):
        yield from _first(parts, value, mark, path)
    elif isinstance(value, str):
        if mark is not None:
            yield path, value, mark
    elif isinstance(value, BaseModel):  # a default
        yield from sources_named(type(value), dict(value), path)
    elif isinstance(value, Mapping):
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from sources_named(annotation, value, path)
        else:
            for key, item in value.items():
                yield from _walk(parts[-1] if parts else Any, item, mark, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, (part, item) in enumerate(zip(_item_types(parts), value, strict=False)):
            yield from _walk(part, item, mark, (*path, index))


def _first(
    parts: tuple[Any, ...], value: Any, mark: SourceName | None, path: Path
) -> Iterator[Named]:
    """Walk along the first member of a union in which the value names anything."""
    for part in parts:
        if part is not NoneType and (found := list(_walk(part, value, mark, path))):
            yield from found
            return


def _item_types(parts: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the types of a list's or tuple's items, for as long as it may be."""
    if len(parts) > 1 and parts[-1] is not Ellipsis:
        return chain(parts, repeat(Any))
    return repeat(parts[0] if parts else Any)
