"""Settings: one frozen value, read once at start, then passed as an argument."""

from __future__ import annotations

from tandemq.config.fields import BadSetting, Field
from tandemq.config.read import Configuration, read
from tandemq.config.secrets import tokens_from
from tandemq.config.settings import FIELDS, Settings

__all__ = ["FIELDS", "BadSetting", "Configuration", "Field", "Settings", "read", "tokens_from"]
