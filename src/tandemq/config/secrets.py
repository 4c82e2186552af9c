"""Secrets that settings name by the file that holds them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tandemq.config.fields import BadSetting

if TYPE_CHECKING:
    from tandemq.config.settings import Settings


def tokens_from(path: str) -> tuple[str, ...]:
    """Read a file of tokens: one a line, empty lines and lines that begin with ``#`` left out.

    Raises:
        BadSetting: it cannot be read or holds no token.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not UTF-8 text"
        raise BadSetting(f"token_file {path} cannot be read: {reason}", "token_file") from None
    stripped = (line.strip() for line in lines)
    tokens = tuple(line for line in stripped if line and not line.startswith("#"))
    if not tokens:
        raise BadSetting(f"token_file {path} holds no token: write one a line", "token_file")
    return tokens


def superuser_password(settings: Settings) -> str:
    """Return the password of the superuser that is to be made, without the file's last line end.

    Raises:
        BadSetting: there is none, or its file cannot be read.
    """
    path, password = settings.superuser_password_file, settings.superuser_password or ""
    if path is not None:
        try:
            password = Path(path).read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            reason = getattr(problem, "strerror", None) or "it is not UTF-8 text"
            text = f"superuser_password_file {path} cannot be read: {reason}"
            raise BadSetting(text, "superuser_password_file") from None
        password = password.removesuffix("\n").removesuffix("\r")
    if not password:
        where = "it is empty" if path is not None else "none is given"
        text = (
            f"the superuser {settings.superuser_name!r} needs a password, and {where}: name a file "
            "of it (--superuser-password-file) or set TANDEMQ_SUPERUSER_PASSWORD"
        )
        raise BadSetting(text, "superuser", "superuser_password_file")
    return password
