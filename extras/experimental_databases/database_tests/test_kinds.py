"""The kinds are found by their entry points, with everything that a kind must say."""

import sys

import pytest

from shoal.core.data_sources import DataSource
from shoal.core.data_sources.kind import options_schema
from shoal.core.data_sources.spec import DataSourceSpec, findings
from shoal.runtime.source_kinds import load_source_kind
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql import drivers
from shoal.worker.types.sql.databases import DatabaseKind

DANGEROUS = {
    "oracle": ["wallet_location", "config_dir", "ssl_server_dn_match"],
    "sqlserver": ["trust_server_certificate", "driver", "app"],
    "clickhouse": ["verify", "proxy_path"],
}


def test_kinds_are_installed_and_describe_their_options() -> None:
    for name, dangerous in DANGEROUS.items():
        kind = load_source_kind(name)
        assert issubclass(kind, DatabaseKind), name
        properties = options_schema(kind.Options)["properties"]
        assert all(one["description"] for one in properties.values()), name
        fields = {"kind": name, "host": "db", "database": "d", "user": "u"}
        assert findings(DataSourceSpec.model_validate(fields), kind) == []
        for option in dangerous:
            spec = DataSourceSpec.model_validate({**fields, "options": {option: "x"}})
            assert "is not an option" in dict(findings(spec, kind))[f"options.{option}"], name


def test_missing_library_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in DANGEROUS:
        kind = load_source_kind(name)
        assert issubclass(kind, DatabaseKind)
        monkeypatch.delitem(sys.modules, kind.driver, raising=False)
        monkeypatch.setitem(sys.modules, kind.library, None)
        with pytest.raises(WorkFailed, match="pip install shoal-experimental-databases") as failed:
            drivers.settle(DataSource("d", name, "host", None, "db"), tag="tag", attempt=1)
        assert not failed.value.permanent  # another worker may have it
