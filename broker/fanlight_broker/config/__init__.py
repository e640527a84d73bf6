"""Settings: read from a TOML file, the environment and flags, checked, explained and reloaded.

    loaded = load(Sources(environment=os.environ))   # raises SettingsError, which lists all that is wrong
    loaded.settings.native_port, loaded.settings.limits.frame_bytes_max

settings.py declares them, keys.py makes a table of the declarations, and everything else walks the table.
"""

from fanlight_broker.config.checks import is_loopback
from fanlight_broker.config.exits import Exit
from fanlight_broker.config.keys import Key, keys
from fanlight_broker.config.load import (
    Change,
    Changes,
    Loaded,
    apply_reload,
    load,
    reload,
    reloadable_changes,
)
from fanlight_broker.config.problems import Problem, SettingsError
from fanlight_broker.config.settings import ClientCertificates, LogFormat, LogLevel, Settings, Sources, TlsVersion
from fanlight_broker.config.values import Secret

__all__ = [
    "Change",
    "Changes",
    "ClientCertificates",
    "Exit",
    "Key",
    "Loaded",
    "LogFormat",
    "LogLevel",
    "Problem",
    "Secret",
    "Settings",
    "SettingsError",
    "Sources",
    "TlsVersion",
    "apply_reload",
    "is_loopback",
    "keys",
    "load",
    "reload",
    "reloadable_changes",
]
