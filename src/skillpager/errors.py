"""Every error a user can cause, as one tree.

    SkillPagerError
    ├── SkillError          a skill cannot be found, read or parsed
    │   └── UnknownSkillError   no skill of a library has this name
    ├── SettingsError       a setting, flag or configuration file is wrong
    ├── MissingExtraError   an optional package is needed: names the `pip install` that mends it
    ├── EncoderError        an encoder cannot be loaded, or its endpoint fails
    ├── ClassifierError     a classifier cannot be loaded, or its endpoint fails
    ├── StoreError          the index store cannot be opened, read or written
    ├── StrategyError       a strategy's model cannot be loaded, or its endpoint fails
    ├── BenchError          data or results of the benchmark are missing or wrong, or a judge fails
    └── NodeNotFoundError   a node, line range or section asked for is not in the skill

Messages are one paragraph: what is wrong, where (file, line, value), and the way out.
Mistakes of a programmer are plain `ValueError` and `TypeError`.
"""

__all__ = [
    "BenchError",
    "ClassifierError",
    "EncoderError",
    "MissingExtraError",
    "NodeNotFoundError",
    "SettingsError",
    "SkillError",
    "SkillPagerError",
    "StoreError",
    "StrategyError",
    "UnknownSkillError",
    "require_extra",
]

from importlib import import_module
from types import ModuleType


class SkillPagerError(Exception):
    """Base of every error that a user can cause and mend."""


class SkillError(SkillPagerError):
    """A skill cannot be found, read or parsed."""


class UnknownSkillError(SkillError):
    """No skill of a library has this name."""


class SettingsError(SkillPagerError):
    """A setting, flag or configuration file is wrong."""


class MissingExtraError(SkillPagerError):
    """An optional package is needed; the message names the install command."""


class EncoderError(SkillPagerError):
    """An encoder cannot be loaded, or its endpoint fails."""


class ClassifierError(SkillPagerError):
    """A classifier cannot be loaded, or its endpoint fails."""


class StoreError(SkillPagerError):
    """The index store cannot be opened, read or written."""


class StrategyError(SkillPagerError):
    """A strategy's model cannot be loaded, or its endpoint fails."""


class BenchError(SkillPagerError):
    """Data or results of the benchmark are missing or wrong, or a judge fails."""


class NodeNotFoundError(SkillPagerError):
    """A node, line range or section asked for is not in the skill."""


def require_extra(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional module, or say which extra brings it.

    Args:
        module: Dotted name of the module to import.
        extra: Name of the extra in `pyproject.toml` that installs it.
        purpose: What needs it, as the subject of a sentence.

    Returns:
        The imported module.

    Raises:
        MissingExtraError: The module is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f'{purpose} needs the package "{module.partition(".")[0]}", which is not installed: '
            f'run `pip install "skillpager[{extra}]"`.'
        ) from error
