"""Where settings come from, and that the commented file tells the truth."""

import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic_settings import BaseSettings

from shoal.runtime.settings import ClusterSettings, InvalidSettings, load_settings

CONF = Path(__file__).parents[3] / "conf" / "shoal.toml"


def test_environment_goes_before_file_goes_before_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shoal.toml").write_text('[cluster]\npartitions = 4\nlog_level = "debug"\n')
    monkeypatch.setenv("SHOAL_LOG_LEVEL", "error")
    settings = load_settings(ClusterSettings, "cluster", tmp_path)
    assert (settings.partitions, settings.log_level) == (4, "error")
    assert settings.session_timeout_s == 10.0
    assert settings.data == tmp_path


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[cluster]\nlog_levle = 'info'\n", "log_levle"),
        ("[cluster]\npartitions = 0\n", "partitions"),
        ("[cluster]\nzookeeper_tls_ca = 'ca.pem'\n", "need zookeeper_tls = true"),
        ("[cluster]\nzookeeper_tls = true\nzookeeper_tls_key = 'k.pem'\n", "go together"),
        ("[cluster\n", "cannot read the settings file"),
        ("cluster = 3\n", r"\[cluster\] must be a table"),
    ],
)
def test_bad_files_are_named_with_the_setting(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "shoal.toml").write_text(content)
    with pytest.raises(InvalidSettings, match=words):
        load_settings(ClusterSettings, "cluster", tmp_path)


def test_a_file_that_is_empty_is_none_and_a_home_is_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_ZOOKEEPER_TLS_CERT", "")
    monkeypatch.setenv("HOME", "/home/ann")
    lines = ["zookeeper_tls = true", "zookeeper_tls_key = ''", "tls_ca = ''"]
    (tmp_path / "shoal.toml").write_text(
        "\n".join(["[cluster]", *lines, "zookeeper_tls_ca = '~/ca.pem'"])
    )
    settings = load_settings(ClusterSettings, "cluster", tmp_path)
    assert (settings.zookeeper_tls_cert, settings.zookeeper_tls_key) == (None, None)
    assert (settings.zookeeper_tls_ca, settings.tls_ca) == (Path("/home/ann/ca.pem"), None)


@pytest.mark.parametrize("value", ["inf", "nan", "0.0", "-1.0", "1e9"])
@pytest.mark.parametrize(
    ("section", "name"),
    [
        ("master", "scan_interval_s"),
        ("master", "sweep_interval_s"),
        ("master", "purge_interval_s"),
        ("master", "export_interval_s"),
        ("alert", "poll_s"),
        ("alert", "watch_s"),
    ],
)
def test_interval_of_which_no_next_time_can_be_computed_is_refused(
    tmp_path: Path, section: str, name: str, value: str
) -> None:
    from shoal.alert.settings import AlertSettings
    from shoal.master.settings import MasterSettings

    of: dict[str, type[BaseSettings]] = {"master": MasterSettings, "alert": AlertSettings}
    (tmp_path / "shoal.toml").write_text(f"[{section}]\n{name} = {value}\n")
    with pytest.raises(InvalidSettings, match=f"{name}: Input should be .*(finite|than)"):
        load_settings(of[section], section, tmp_path)
    (tmp_path / "shoal.toml").write_text(f"[{section}]\n{name} = 1e8\n")
    assert getattr(load_settings(of[section], section, tmp_path), name) == 1e8


def test_missing_file_that_was_asked_for_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(InvalidSettings, match="does not exist"):
        load_settings(ClusterSettings, "cluster", tmp_path)


def test_database_defaults_to_sqlite_in_the_data_folder(tmp_path: Path) -> None:
    settings = load_settings(ClusterSettings, "cluster", tmp_path)
    assert settings.database == f"sqlite:///{tmp_path / 'shoal.db'}"
    assert settings.token_file == tmp_path / "token"


def test_commented_file_lists_every_setting_with_its_default() -> None:
    from shoal.alert.settings import AlertSettings
    from shoal.api.settings import ApiSettings, LdapSettings, OidcSettings
    from shoal.master.settings import MasterSettings
    from shoal.runtime.secret_stores.files import FilesSettings
    from shoal.runtime.secret_stores.hashicorp import HashicorpSettings
    from shoal.runtime.secret_stores.store import StoreSettings
    from shoal.worker.settings import WorkerSettings

    def is_setting(line: str) -> bool:
        return line.startswith("# ") and (
            " = " in line or line.startswith(("# [api.", "# [cluster."))
        )

    text = "\n".join(
        line.removeprefix("# ") if is_setting(line) else line
        for line in CONF.read_text().splitlines()
    )
    listed = tomllib.loads(text)
    classes: dict[str, type[BaseModel]] = {
        "cluster": ClusterSettings,
        "master": MasterSettings,
        "worker": WorkerSettings,
        "alert": AlertSettings,
        "api": ApiSettings,
    }
    assert listed.keys() == classes.keys()
    assert listed["api"].keys() == ApiSettings.model_fields.keys()
    classes["api.ldap"], listed["api.ldap"] = LdapSettings, listed["api"].pop("ldap")
    classes["api.oidc"], listed["api.oidc"] = OidcSettings, listed["api"].pop("oidc")["example"]
    stores = listed["cluster"].pop("secret_stores")
    listed["cluster"]["secret_stores"] = ""
    classes["vault"], listed["vault"] = HashicorpSettings, stores["vault"]
    for name in StoreSettings.model_fields.keys() - stores["mounted"].keys():
        stores["mounted"][name] = stores["vault"][name]
    classes["mounted"], listed["mounted"] = FilesSettings, stores["mounted"]
    listed["api"] |= {"ldap": "", "oidc": {}}
    for section, cls in classes.items():
        assert listed[section].keys() == cls.model_fields.keys(), section
        for name, value in listed[section].items():
            default = cls.model_fields[name].get_default(call_default_factory=True)
            if cls.model_fields[name].is_required() or (section, name) == ("api.ldap", "bind_dn"):
                continue  # an example
            if isinstance(default, tuple):
                default = " ".join(default)
                value = " ".join(value) if isinstance(value, list) else value
            # An empty text in the file stands for "computed": the comment beside it says how.
            assert value == "" or value == default or value == str(default), f"{section}.{name}"


@pytest.mark.parametrize("text", ["a.example, b.example", '["a.example", "b.example"]'])
def test_names_of_the_api_are_a_list_or_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    from shoal.api.settings import ApiSettings

    written = text if text.startswith("[") else f"'{text}'"
    (tmp_path / "shoal.toml").write_text(f'[api]\nallowed_hosts = {written}\ntls_key = ""\n')
    found = load_settings(ApiSettings, "api", tmp_path)
    assert (found.allowed_hosts, found.tls_key) == (("a.example", "b.example"), None)
    monkeypatch.setenv("SHOAL_API_TRUSTED_PROXIES", "10.0.0.1 10.0.0.2")
    assert load_settings(ApiSettings, "api", tmp_path).trusted_proxies == ("10.0.0.1", "10.0.0.2")


def test_ipv6_addresses_are_names_of_the_api_with_and_without_brackets() -> None:
    from shoal.api.settings import ApiSettings
    from shoal.api.web.hosts import names_of

    found = names_of(ApiSettings(host="fd00::2", allowed_hosts=("[fd00::1]", "FD00::3", "a.")))
    assert found == {"127.0.0.1", "localhost", "[::1]", "[fd00::2]", "[fd00::1]", "[fd00::3]", "a"}
