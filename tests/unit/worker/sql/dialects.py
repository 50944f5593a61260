"""The dialects of the installed databases, and of those that plug-ins bring."""

from shoal.runtime.source_kinds import load_source_kind, source_kinds
from shoal.worker.types.sql.databases import DatabaseKind
from shoal.worker.types.sql.statements.dialects import Blocks, Dialect, Nested

DIALECTS: dict[str, Dialect] = {
    "oracle": Dialect(Blocks.PLSQL, quoted_by_choice=True),
    "sqlserver": Dialect(Blocks.BATCH, brackets=True, bracket_escape=True, nested=Nested.YES),
    "clickhouse": Dialect(
        identifiers='"`',
        backslash="'\"`",
        dollar_quotes=True,
        hash_comments=True,
        nested=Nested.UNSURE,
    ),
}
for name in source_kinds():
    kind = load_source_kind(name)
    if issubclass(kind, DatabaseKind):
        DIALECTS[name] = kind.dialect
