"""A package brings a kind of data source: found, checked, resolved, connected."""

from pathlib import Path

import pytest

from shoal.core.data_sources.kind import UnknownSourceKind
from shoal.core.data_sources.resolution import rendered
from shoal.core.data_sources.spec import DataSourceSpec, findings, password_problem
from shoal.core.errors import UnusablePlugin
from shoal.runtime.source_kinds import load_source_kind, source_kinds
from shoal.worker.types.sql import drivers
from shoal.worker.types.sql.session import ErrorVerdict
from tests.support.packages import installed

GROUP = "shoal.data_source_kinds"
KIND = """
from pydantic import Field
from shoal.core.data_sources.kind import FieldNeed, ServerOptions
from shoal.worker.types.sql.databases import DatabaseKind
from shoal.worker.types.sql.statements.dialects import Dialect

class Options(ServerOptions):
    shade: str = Field(default="blue", description="Colour of the feathers.")

class Parrot(DatabaseKind):
    title = "Parrot"
    Options = Options
    port = 4711
    user = FieldNeed.OPTIONAL
    password_needs = ("shade", "green")
    driver = "parrot_driver"
    library = "parrots"
    install = "pip install parrots"
    dialect = Dialect()
    version = "select 'Parrot 1'"
"""
DRIVER = """
from shoal.worker.types.sql.drivers import sqlite
from dataclasses import replace

def connect(source, **options):
    return sqlite.connect(replace(source, database=":memory:", options={}), **options)

settle = sqlite.settle
"""


def test_kind_of_a_package_is_used_as_a_built_in_one(tmp_path: Path) -> None:
    modules = {"parrot_kind": KIND, "parrot_driver": DRIVER}
    with installed(tmp_path, GROUP, {"parrot": "parrot_kind:Parrot"}, **modules):
        assert {"parrot", "postgresql"} <= set(source_kinds())
        kind = load_source_kind("parrot")
        spec = DataSourceSpec(kind="parrot", host="${cage}", options={"shade": "${shade}"})
        assert findings(spec, kind) == []
        assert "shade=green" in (password_problem(spec, kind) or "")
        wrong = DataSourceSpec(kind="parrot", options={"shad": "x"})
        assert dict(findings(wrong, kind)).keys() == {"host", "options.shad"}
        source = rendered("p", spec, kind, lambda text: text.strip("${}"))
        assert (source.kind, source.host) == ("parrot", "cage")
        assert source.options == {"shade": "shade", "connect_timeout": 10}
        session = drivers.connect(
            source, tag="t", attempt=1, log=print, read_only=True, statement_timeout_s=None
        )
        assert list(session.execute("select 'Parrot 1'")) == [("Parrot 1",)]
        session.close()
    with pytest.raises(UnknownSourceKind, match="unknown kind of data source 'parrot'") as gone:
        load_source_kind("parrot")
    assert drivers.classify(gone.value) is ErrorVerdict.PERMANENT


def test_package_that_is_broken_is_told_with_its_entry_point(tmp_path: Path) -> None:
    broken = {
        "Parrot = 1": "not a SourceKind",
        "import nowhere": "nowhere",
        "": "Parrot",
        "class Parrot(": "SyntaxError: ",
        "raise KeyError": "KeyError; repair",
        "from pydantic import BaseModel\nclass O(BaseModel):\n    a: int\nO(a='x')": (
            "ValidationError: 1 validation error for O a Input should be a valid integer"
        ),
        "from pydantic import BaseModel\nclass O(BaseModel):\n    a: object()": "Pydantic",
    }
    for number, (text, words) in enumerate(broken.items()):
        point = {"parrot": "parrot_kind:Parrot"}
        with (
            installed(tmp_path / str(number), GROUP, point, parrot_kind=text),
            pytest.raises(UnusablePlugin, match=f"parrot_kind:Parrot: .*{words}"),
        ):
            load_source_kind("parrot")
