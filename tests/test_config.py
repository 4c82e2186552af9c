"""Settings: what they may be, where they come from, and what is never shown."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tandemq.config import FIELDS, BadSetting, Settings, read, tokens_from
from tandemq.config.report import rows, template
from tandemq.config.secrets import superuser_password

EMPTY = Path("/nonexistent")


def reading(
    environ: dict[str, str] | None = None, *, compat_env: bool = False, **flags: object
) -> Settings:
    return read(flags, environ or {}, compat_env=compat_env, folder=EMPTY).settings


def compat(**environ: str) -> Settings:
    return reading(environ, compat_env=True)


# Each setting by itself


def test_every_setting_is_documented_in_one_line_with_its_unit_and_bounds() -> None:
    for name, field in FIELDS.items():
        assert field.doc.endswith("."), name
        assert "\n" not in field.doc, name
        assert len(field.doc) < 80, name
        numeric = field.kind in (int, float)
        assert (field.bounds is not None) == numeric, name
        assert field.allowed(), name
        if name.endswith("_ms"):
            assert field.unit == "ms"
        if name.endswith("_bytes"):
            assert field.unit == "bytes"


def test_every_default_is_allowed() -> None:
    for field in FIELDS.values():
        assert field.check(field.default) == field.default


def test_the_defaults_are_those_of_the_documentation() -> None:
    settings = Settings()
    assert (settings.host, settings.port, settings.http_port) == ("127.0.0.1", 6789, 6790)
    assert (settings.data, settings.durability) == ("./tandemq.db", "commit")
    assert (settings.requests_per_minute, settings.login_limit) == (0, 10)
    assert settings.max_frame_bytes == settings.max_unread_bytes == 67_108_864


def test_settings_are_frozen_and_know_no_other_names() -> None:
    with pytest.raises(AttributeError):
        Settings().port = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        Settings(prot=1)  # type: ignore[call-arg]
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"prot": 1}, Settings)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("250", 250),
        ("500ms", 500),
        ("30s", 30_000),
        ("PT30S", 30_000),
        ("1.5s", 1_500),
        ("5m", 300_000),
        ("2h", 7_200_000),
        ("1d", 86_400_000),
        (" 2 h ", 7_200_000),
    ],
)
def test_durations_have_units_or_count_in_the_unit_of_their_setting(
    text: str, milliseconds: int
) -> None:
    assert reading({"TANDEMQ_WORKER_TIMEOUT_MS": text}).worker_timeout_ms == milliseconds


@pytest.mark.parametrize(("text", "seconds"), [("90", 90.0), ("500ms", 0.5), ("2m", 120.0)])
def test_a_plain_number_counts_seconds_where_the_setting_does(text: str, seconds: float) -> None:
    assert reading(half_frame_timeout=text).half_frame_timeout == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("65536", 65_536), ("64KiB", 65_536), ("1mib", 2**20), ("1.5MiB", 1_572_864)]
)
def test_sizes_have_units_or_count_bytes(text: str, size: int) -> None:
    assert reading(max_frame_bytes=text).max_frame_bytes == size


@pytest.mark.parametrize("text", ["true", "yes", "ON", "1"])
def test_switches_understand_the_usual_words(text: str) -> None:
    assert reading({"TANDEMQ_INSECURE": text}).insecure is True


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("port", "http", "a whole number from 0 to 65,535, not 'http'"),
        ("port", "70000", "from 0 to 65,535"),
        ("port", "-1", "from 0 to 65,535"),
        ("port", "1.5", "a whole number"),
        ("port", "5m", "a whole number"),
        ("durability", "fsync", "one of memory, buffered, commit, sync"),
        ("insecure", "maybe", "true or false"),
        ("half_frame_timeout", "0", "from 0.001 to"),
        ("half_frame_timeout", "3 weeks", "like 500ms, 30s, 5m, 2h"),
        ("half_frame_timeout", "nan", "like 500ms"),
        ("half_frame_timeout", "9" * 500, "like 500ms"),
        ("worker_timeout_ms", "0.5ms", "milliseconds"),
        ("max_frame_bytes", "65MiB", "from 1,024 to 67,108,864 bytes"),
        ("max_frame_bytes", "64M", "like 64KiB, 64MiB, 1GiB"),
        ("host", " ", "a text that is not empty"),
        ("log_level", "loud", "one of debug, info, warning, error"),
    ],
)
def test_a_bad_value_is_refused_with_its_source_and_what_is_allowed(
    name: str, text: str, says: str
) -> None:
    for flags, environ in (({name: text}, {}), ({}, {FIELDS[name].env: text})):
        with pytest.raises(BadSetting) as caught:
            read(flags, environ, folder=EMPTY)
        source = FIELDS[name].flag if flags else FIELDS[name].env
        assert str(caught.value).startswith(f"{source} must be ")
        assert says in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", True),
        ("port", "1"),
        ("half_frame_timeout", float("nan")),
        ("data", ""),
        ("durability", "never"),
        ("tokens", ("a", "")),
        ("tls_cert", 1),
        ("max_connections", 0),
    ],
)
def test_settings_made_in_a_program_are_checked_as_well(name: str, value: Any) -> None:
    with pytest.raises(BadSetting, match=name):
        Settings(**{name: value})


# Which source wins


def test_flags_win_over_environment_over_file_over_reference_names(tmp_path: Path) -> None:
    (tmp_path / "tandemq.toml").write_text("port = 3")
    sources: list[tuple[dict[str, Any], dict[str, str], Path]] = [
        ({}, {"TCP_PORT": "2"}, EMPTY),
        ({}, {"TCP_PORT": "2"}, tmp_path),
        ({}, {"TCP_PORT": "2", "TANDEMQ_PORT": "4"}, tmp_path),
        ({"port": "5"}, {"TCP_PORT": "2", "TANDEMQ_PORT": "4"}, tmp_path),
    ]
    found = [read(f, e, compat_env=True, folder=folder) for f, e, folder in sources]
    assert [each.settings.port for each in found] == [2, 3, 4, 5]
    file = tmp_path / "tandemq.toml"
    origins = [each.origins["port"] for each in found]
    assert origins == ["TCP_PORT", f"port in {file}", "TANDEMQ_PORT", "--port"]
    assert found[0].origins["max_connections"] == "default"


def test_a_named_file_replaces_the_one_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "tandemq.toml").write_text("port = 3")
    (tmp_path / "other.toml").write_text('port = 4\nhalf_frame_timeout = "500ms"\ntokens = ["a"]')
    other = str(tmp_path / "other.toml")
    settings = read({}, {}, file=other, folder=tmp_path).settings
    assert (settings.port, settings.half_frame_timeout, settings.tokens) == (4, 0.5, ("a",))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("prot = 1", "prot is no setting; did you mean port?"),
        ("port = 'x'", "port in .* must be a whole number"),
        ("port = true", "port in .* must be a whole number"),
        ("port = [1]", "port in .* must be a whole number"),
        ("port = \n", "is not valid TOML: .*line 1"),
        ("half_frame_timeout = inf", "half_frame_timeout in .* must be"),
        ("[port]\nport = 1", "port in .* must be a whole number"),
        ("entirely_else = 1", "entirely_else is no setting; `tandemq config show` lists"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "tandemq.toml").write_text(text)
    with pytest.raises(BadSetting, match=says):
        read({}, {}, folder=tmp_path)


def test_a_named_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="cannot be read: No such file"):
        read({}, {}, file=str(tmp_path / "none.toml"))


def test_an_unknown_variable_of_ours_is_refused_with_a_suggestion() -> None:
    with pytest.raises(BadSetting, match="TANDEMQ_PROT is no setting; did you mean TANDEMQ_PORT"):
        reading({"TANDEMQ_PROT": "1"})


def test_an_empty_variable_is_not_set() -> None:
    assert reading({"TANDEMQ_PORT": "", "TANDEMQ_TLS_CERT": ""}) == Settings()


def test_variables_of_a_kubernetes_service_of_our_name_are_not_ours() -> None:
    environ = {
        "TANDEMQ_PORT": "tcp://10.0.0.7:6789",
        "TANDEMQ_SERVICE_HOST": "10.0.0.7",
        "TANDEMQ_SERVICE_PORT": "6789",
        "TANDEMQ_SERVICE_PORT_WIRE": "6789",
        "TANDEMQ_PORT_6789_TCP": "tcp://10.0.0.7:6789",
        "TANDEMQ_PORT_6789_TCP_ADDR": "10.0.0.7",
    }
    assert reading(environ) == Settings()


def test_a_bad_value_that_loses_disturbs_nobody() -> None:
    assert reading({"TANDEMQ_PORT": "http"}, port="7").port == 7


# Settings that belong together


def test_data_in_memory_implies_durability_memory() -> None:
    assert Settings(data="memory", durability="sync").durability == "memory"
    found = read({"data": "memory"}, {"TANDEMQ_DURABILITY": "sync"}, folder=EMPTY)
    assert (found.settings.in_memory, found.settings.durability) == (True, "memory")
    assert found.origins["durability"] == "implied by data"


def test_durability_memory_keeps_no_file() -> None:
    found = read({"durability": "memory"}, {}, folder=EMPTY)
    assert (found.settings.data, found.origins["data"]) == ("memory", "implied by durability")
    with pytest.raises(BadSetting, match=r"keeps no file.*\(durability from --durability, data"):
        reading({"TANDEMQ_DATA": "./tandemq.db"}, durability="memory")


def test_certificate_and_key_are_given_both_or_neither() -> None:
    with pytest.raises(BadSetting, match=r"both or neither \(tls_cert from --tls-cert\)"):
        reading(tls_cert="x.pem")
    with pytest.raises(BadSetting, match="both or neither"):
        Settings(tls_key="x.key")


def test_the_two_ports_differ_unless_both_are_free_ones() -> None:
    assert Settings(port=0, http_port=0).port == 0
    with pytest.raises(BadSetting, match="port and http_port must differ, both are 6790"):
        Settings(port=6790)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_loopback_needs_no_token(host: str) -> None:
    assert Settings(host=host).on_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "queue.internal"])
def test_other_addresses_need_a_token_or_consent(host: str) -> None:
    with pytest.raises(BadSetting, match=r"--token.*127\.0\.0\.1.*--insecure.*host from --host"):
        reading(host=host)
    assert not reading(host=host, tokens=("t",)).on_loopback
    assert not reading(host=host, insecure=True).on_loopback


# Secrets


def test_tokens_come_from_flags_the_environment_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("one\n\n  two  \n# of the web team\nthree\r\n")
    assert reading(tokens=("a,b", "c")).tokens == ("a,b", "c")
    assert reading({"TANDEMQ_TOKENS": "a, b,"}).tokens == ("a", "b")
    assert reading({"TANDEMQ_TOKEN": "a,b"}).tokens == ("a,b",)
    for found in (
        reading({"TANDEMQ_TOKENS_FILE": str(path)}),
        reading({"TANDEMQ_TOKEN_FILE": str(path)}),
        reading(token_file=str(path)),
        Settings(token_file=str(path)),
    ):
        assert found.tokens == ("one", "two", "three")
        assert found.token_file == str(path)


def test_the_highest_source_of_tokens_replaces_the_others(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("filed\n")
    environ = {"TANDEMQ_TOKEN": "client", "TANDEMQ_TOKENS_FILE": str(path)}
    assert reading(environ).tokens == ("filed",)
    replaced = reading(environ, tokens=("flag",))
    assert (replaced.tokens, replaced.token_file) == (("flag",), None)


def test_two_sources_of_tokens_in_one_place_are_refused() -> None:
    with pytest.raises(BadSetting, match="--token and --token-file: give one of them"):
        reading(tokens=("a",), token_file="x")
    with pytest.raises(BadSetting, match="are the same: give one of them"):
        reading({"TANDEMQ_TOKENS_FILE": "x", "TANDEMQ_TOKEN_FILE": "x"})


@pytest.mark.parametrize(
    ("flags", "environ"),
    [({"tokens": ("",)}, {}), ({"token_file": ""}, {}), ({}, {"TANDEMQ_TOKENS": " , "})],
)
def test_a_token_that_came_out_empty_never_opens_the_server(
    flags: dict[str, object], environ: dict[str, str]
) -> None:
    with pytest.raises(BadSetting, match=r"empty|must be"):
        read(flags, environ, folder=EMPTY)


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", "holds no token"), (b"# none\n", "holds no token"), (b"\xff", "not UTF-8")],
)
def test_a_token_file_without_tokens_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "tokens"
    path.write_bytes(content)
    with pytest.raises(BadSetting, match=says):
        tokens_from(str(path))
    with pytest.raises(BadSetting, match="No such file"):
        tokens_from(str(tmp_path / "none"))


def test_secrets_are_never_shown() -> None:
    found = read({}, {"TANDEMQ_TOKENS": "hunter2,hunter3"}, folder=EMPTY)
    assert "hunter" not in repr(found.settings) + repr(found) + str(rows(found))
    assert ("tokens", "(2 hidden)", "", "TANDEMQ_TOKENS") in rows(found)
    with pytest.raises(BadSetting) as caught:
        Settings(tokens=("hunter2", 7))  # type: ignore[arg-type]
    assert "hunter" not in str(caught.value)


# The reference's names


def test_reference_names_need_compat_env() -> None:
    assert reading({"TCP_PORT": "1", "AUTH_TOKENS": "t", "HOST": "0.0.0.0"}) == Settings()


def test_without_variables_the_reference_defaults_hold_but_the_host_stays_local() -> None:
    settings = compat()
    assert settings.host == "127.0.0.1"
    assert settings.data == "memory"
    assert (settings.requests_per_minute, settings.request_window_ms) == (10_000, 60_000)
    assert settings.login_limit == 0
    assert compat(HOST="0.0.0.0").insecure


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("TCP_PORT", "7001", "port", 7001),
        ("HTTP_PORT", "7002", "http_port", 7002),
        ("BUNQUEUE_DATA_PATH", "a.db", "data", "a.db"),
        ("BQ_DATA_PATH", "a.db", "data", "a.db"),
        ("DATA_PATH", "a.db", "data", "a.db"),
        ("SQLITE_PATH", "a.db", "data", "a.db"),
        ("AUTH_TOKENS", "a, b", "tokens", ("a", "b")),
        ("RATE_LIMIT_MAX_REQUESTS", "6", "requests_per_minute", 6),
        ("RATE_LIMIT_WINDOW_MS", "1500", "request_window_ms", 1500),
        ("TCP_IDLE_TIMEOUT_MS", "400", "half_frame_timeout", 0.4),
        ("TCP_MAX_WRITE_QUEUE_BYTES", "65536", "max_unread_bytes", 65_536),
        ("SHUTDOWN_TIMEOUT_MS", "300", "shutdown_timeout", 0.3),
        ("BUNQUEUE_MAX_COMPLETED_JOBS", "5", "max_completed", 5),
        ("MAX_COMPLETED_JOBS", "5", "max_completed", 5),
        ("BUNQUEUE_COMPLETED_RETENTION_MS", "500", "completed_retention", 500),
        ("COMPLETED_RETENTION_MS", "500", "completed_retention", 500),
        ("WORKER_TIMEOUT_MS", "700", "worker_timeout_ms", 700),
        ("LOG_LEVEL", "WARN", "log_level", "warning"),
        ("LOG_FORMAT", "json", "log_format", "json"),
        ("LOG_FORMAT", "text", "log_format", "console"),
        ("METRICS_AUTH", "true", "metrics_auth", True),
    ],
)
def test_a_reference_name_sets_what_it_set_there(
    variable: str, text: str, name: str, value: object
) -> None:
    found = read({}, {variable: text}, compat_env=True, folder=EMPTY)
    assert getattr(found.settings, name) == value
    assert found.origins[name] == variable


def test_the_first_of_several_reference_names_wins() -> None:
    assert compat(SQLITE_PATH="c", DATA_PATH="b", BQ_DATA_PATH="a").data == "a"


def test_reference_names_of_other_features_are_ignored() -> None:
    environ = {"S3_BUCKET": "x", "STATS_INTERVAL_MS": "no", "TCP_PORT": ""}
    assert reading(environ, compat_env=True) == compat()


def test_a_bad_reference_value_is_an_error_that_names_it() -> None:
    with pytest.raises(BadSetting, match=r"SHUTDOWN_TIMEOUT_MS must be .* not 'soon'"):
        compat(SHUTDOWN_TIMEOUT_MS="soon")


# The superuser


def test_a_superuser_may_be_asked_for_in_three_ways(tmp_path: Path) -> None:
    assert not Settings().has_superuser
    named = Settings(superuser="root")
    assert (named.has_superuser, named.superuser_name) == (True, "root")
    for settings in (
        reading({"TANDEMQ_SUPERUSER_PASSWORD": "x"}),
        reading(superuser_password_file="f"),
    ):
        assert (settings.has_superuser, settings.superuser_name) == (True, "vibemq")
    (tmp_path / "tandemq.toml").write_text('superuser = "root"\nsuperuser_password = "x"')
    assert read({}, {}, folder=tmp_path).settings.superuser_password == "x"


def test_its_password_is_given_once() -> None:
    with pytest.raises(BadSetting, match=r"give one of them, not both .*TANDEMQ_SUPERUSER_PASS"):
        reading({"TANDEMQ_SUPERUSER_PASSWORD": "x"}, superuser_password_file="f")


def test_the_file_of_the_password_is_read_only_when_it_is_asked_for(tmp_path: Path) -> None:
    settings = Settings(superuser_password_file=str(tmp_path / "password"))
    with pytest.raises(BadSetting, match="cannot be read: No such file"):
        superuser_password(settings)
    (tmp_path / "password").write_bytes(b"\xff")
    with pytest.raises(BadSetting, match="it is not UTF-8 text"):
        superuser_password(settings)
    (tmp_path / "password").write_bytes(b" two \n lines\r\n\n")
    assert superuser_password(settings) == " two \n lines\r\n"


def test_a_superuser_is_enough_to_listen_beyond_this_machine() -> None:
    Settings(host="0.0.0.0", superuser="root")
    with pytest.raises(BadSetting, match="or a superuser"):
        Settings(host="0.0.0.0")


def test_a_single_secret_is_never_shown_and_has_no_flag() -> None:
    environ = {"TANDEMQ_SUPERUSER_PASSWORD": "hunter2"}
    configuration = read({}, environ, folder=EMPTY)
    shown = {row.name: row.value for row in rows(configuration)}
    assert shown["superuser_password"] == "(hidden)"
    assert "hunter2" not in repr(configuration.settings)
    assert FIELDS["superuser_password"].flagless
    assert "--superuser-password," not in template()
    assert "(TANDEMQ_SUPERUSER_PASSWORD)" in template()
    with pytest.raises(BadSetting) as caught:
        reading({"TANDEMQ_SUPERUSER_PASSWORD": " "})
    assert "not what was given" in str(caught.value)


# Files and imports


def test_the_template_without_its_comments_is_the_default(tmp_path: Path) -> None:
    lines = template().splitlines()
    named = [line.removeprefix("# ") for line in lines if line.startswith("# ") and " = " in line]
    text = "\n".join(named)
    assert list(tomllib.loads(text)) == list(FIELDS)
    assert all(len(line) <= 100 for line in lines)
    assert tomllib.loads(template()) == {}
    (tmp_path / "tandemq.toml").write_text(text)
    assert read({}, {}, folder=tmp_path).settings == Settings()


def test_the_how_to_names_every_setting() -> None:
    page = Path(__file__).parents[1] / "docs" / "how-to" / "configure.md"
    text = page.read_text(encoding="utf-8")
    for field in FIELDS.values():
        assert f"| `{field.name}` |" in text
        assert f"| {field.doc}" in text


def test_config_imports_the_standard_library_and_msgspec_only() -> None:
    code = "import sys; before = set(sys.modules); import tandemq.config; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    ours = {name for name in loaded if name.startswith("tandemq.")}
    assert all(name.startswith(("tandemq.config", "tandemq.amounts")) for name in ours)
    assert not {"asyncio", "click", "ssl", "sqlite3", "logging"} & set(loaded)
