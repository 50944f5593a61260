"""Tables on their way between processes, as bytes, and in files that all machines see.

Spark sends whole tables from step to step, not rows: what it does for a row costs more than what
the jobs do with it.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import feather
from pyspark import RDD

_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_Value = TypeVar("_Value")


def packed(table: pa.Table) -> bytes:
    """Return a table as bytes."""
    sink = pa.BufferOutputStream()
    lean = _lean(table)
    with pa.ipc.new_stream(sink, lean.schema, options=_LZ4) as writer:
        writer.write_table(lean, max_chunksize=max(1, lean.num_rows))
    content: bytes = sink.getvalue().to_pybytes()
    return content


def unpacked(content: bytes) -> pa.Table:
    """Return the table of ``packed``."""
    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()


def joined(tables: Iterable[pa.Table]) -> pa.Table:
    """Return the rows of some tables as one; columns that a table has not are NULL."""
    whole = pa.concat_tables(tables, promote_options="default")
    return whole.unify_dictionaries().combine_chunks()


def written(table: pa.Table, path: Path) -> None:
    """Write a table to a file, which is there as a whole or not at all.

    Two processes may do so at once: Spark may start a step a second time.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    rows = max(1, table.num_rows)
    feather.write_feather(table, str(draft), compression="lz4", chunksize=rows)
    draft.replace(path)


def read(path: Path, schema: pa.Schema, columns: Sequence[str]) -> pa.Table:
    """Return some columns of a file of ``written``; of one that is not there no rows.

    ``schema``: the types of columns that the file does not have; those are NULL.
    """
    if not path.exists():
        return schema.empty_table().select(list(columns))
    with pa.memory_map(str(path)) as source:
        names = pa.ipc.open_file(source).schema.names
    there = [name for name in columns if name in names]
    table = feather.read_table(str(path), columns=there, memory_map=True, use_threads=False)
    for name in columns:
        if name not in names:
            nothing = pa.nulls(table.num_rows, schema.field(name).type)
            table = table.append_column(name, nothing)
    return table.select(list(columns))


def sent(pieces: "RDD[tuple[int, _Value]]", places: int) -> "RDD[tuple[int, _Value]]":
    """Send pieces to the place that each names: a partition, 0 … ``places`` - 1."""
    return pieces.partitionBy(places, _itself)


def by_place(pieces: Iterable[tuple[int, _Value]]) -> Iterator[tuple[int, list[_Value]]]:
    """Return the pieces of a partition, those of one place at a time."""
    found: dict[int, list[_Value]] = {}
    for place, piece in pieces:
        found.setdefault(place, []).append(piece)
    for place in sorted(found):
        yield place, found.pop(place)


def _itself(place: int) -> int:
    return place


def _lean(table: pa.Table) -> pa.Table:
    """Return a table without the texts of other tables that were cut from the same."""
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(at).combine_chunks()
            if len(column.dictionary) > len(column):
                texts = column.cast(column.type.value_type)
                table = table.set_column(at, field, pc.dictionary_encode(texts))
    return table
