"""Where settings come from: flags before environment before file before reference names.

Each source becomes a layer of texts with their origins; the highest layer that gives a setting
wins, and only what wins is parsed. So a bad text that nothing uses disturbs nobody, except for
names that do not exist: those are errors wherever they stand.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from msgspec import Struct

from tandemq.config.compat import reference_layer
from tandemq.config.fields import BadSetting, Field
from tandemq.config.layers import Given, Layer
from tandemq.config.settings import FIELDS, Settings

DEFAULT_FILE = "tandemq.toml"

_PREFIX = "TANDEMQ_"
_ALIASES = {"TANDEMQ_TOKENS_FILE": "token_file"}
_OF_THE_COMMAND_LINE = ("TANDEMQ_CONFIG", "TANDEMQ_COMPAT_ENV")
_ONE_TOKEN = "TANDEMQ_TOKEN"
_OF_CLIENTS = ("TANDEMQ_URL", _ONE_TOKEN)
_VARIABLES = {field.env: name for name, field in FIELDS.items()} | _ALIASES

# Kubernetes gives every pod the address of a service named "tandemq" in such variables.
_SERVICE_LINK = re.compile(r"TANDEMQ_(SERVICE_(HOST|PORT.*)|PORT_[0-9]+_(TCP|UDP|SCTP).*)")
_SERVICE_URL = re.compile(r"(tcp|udp|sctp)://.*")


class Configuration(Struct, frozen=True):
    """Settings, and for each one where its value came from."""

    settings: Settings
    origins: dict[str, str]


def read(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    *,
    file: str | None = None,
    compat_env: bool = False,
    folder: Path = Path(),
) -> Configuration:
    """Read every source and decide.

    ``flags`` maps names of settings to what the command line gave. Without ``file`` the
    file is ``tandemq.toml`` in ``folder``, when it exists.

    Raises:
        BadSetting: an unknown name, or a value that is not allowed; the text names its source.
    """
    layers = [
        reference_layer(environ) if compat_env else {},
        _file_layer(Path(file)) if file else _default_file_layer(folder / DEFAULT_FILE),
        _client_layer(environ),
        _environment_layer(environ),
        {name: Given(raw, FIELDS[name].flag) for name, raw in flags.items()},
    ]
    return _decided(_merged(layers))


def _merged(layers: list[Layer]) -> Layer:
    chosen: Layer = {}
    for layer in layers:
        both = [layer[name].source for name in ("tokens", "token_file") if name in layer]
        if len(both) == 2:
            raise BadSetting(f"{both[0]} and {both[1]}: give one of them, not both")
        if both:  # the higher source of tokens replaces the lower one, of whichever kind
            chosen = {k: v for k, v in chosen.items() if k not in ("tokens", "token_file")}
        chosen = chosen | layer
    return chosen


def _decided(chosen: Layer) -> Configuration:
    values = {name: _parsed(FIELDS[name], given) for name, given in chosen.items()}
    origins = {n: chosen[n].source if n in chosen else "default" for n in FIELDS}
    if values.get("durability") == "memory" and "data" not in values:
        values["data"], origins["data"] = "memory", "implied by durability"
    try:
        settings = Settings(**values)
    except BadSetting as problem:
        sources = _sources(problem.names, chosen)
        raise BadSetting(f"{problem} ({sources})" if sources else str(problem)) from None
    if settings.durability != values.get("durability", FIELDS["durability"].default):
        origins["durability"] = "implied by data"
    if settings.token_file:
        origins["tokens"] = origins["token_file"]
    return Configuration(settings, origins)


def _parsed(field: Field, given: Given) -> Any:
    try:
        return field.parse(given.raw)
    except ValueError:
        shown = "what was given" if field.secret else repr(given.raw)
        raise BadSetting(f"{given.source} must be {field.allowed()}, not {shown}") from None


def _sources(names: tuple[str, ...], chosen: Layer) -> str:
    return ", ".join(f"{name} from {chosen[name].source}" for name in names if name in chosen)


def _client_layer(environ: Mapping[str, str]) -> Layer:
    """Nobody who sets the client's token for a server means a server that asks for none."""
    token = environ.get(_ONE_TOKEN)
    return {"tokens": Given((token,), _ONE_TOKEN)} if token else {}


def _environment_layer(environ: Mapping[str, str]) -> Layer:
    layer: Layer = {}
    for variable, text in environ.items():
        if not variable.startswith(_PREFIX) or _is_foreign(variable, text):
            continue
        if variable not in _VARIABLES:
            raise BadSetting(f"{variable} is no setting{_suggestion(variable, _VARIABLES)}")
        name = _VARIABLES[variable]
        if name in layer and text:
            raise BadSetting(f"{layer[name].source} and {variable} are the same: give one of them")
        if text:  # an empty variable is how compose files say "not set"
            layer[name] = Given(text, variable)
    return layer


def _is_foreign(variable: str, text: str) -> bool:
    return (
        variable in _OF_THE_COMMAND_LINE
        or variable in _OF_CLIENTS
        or _SERVICE_LINK.fullmatch(variable) is not None
        or (variable == "TANDEMQ_PORT" and _SERVICE_URL.fullmatch(text) is not None)
    )


def _default_file_layer(path: Path) -> Layer:
    return _file_layer(path) if path.exists() else {}


def _file_layer(path: Path) -> Layer:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise BadSetting(f"{path} cannot be read: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise BadSetting(f"{path} is not valid TOML: {problem}") from None
    for key in table:
        if key not in FIELDS:
            raise BadSetting(f"{path}: {key} is no setting{_suggestion(key, FIELDS)}")
    named = {key: Given(_as_tuple(raw), f"{key} in {path}") for key, raw in table.items()}
    return {key: given for key, given in named.items() if given.raw not in ("", ())}


def _as_tuple(raw: object) -> object:
    return tuple(raw) if isinstance(raw, list) else raw


def _suggestion(name: str, known: Mapping[str, object]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else "; `tandemq config show` lists them all"
