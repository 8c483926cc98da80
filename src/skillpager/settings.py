"""Settings, from keywords, environment, project file and user file, in this order of precedence.

A project file comes with a `git clone` and is not trusted: it may set the look and the size of pages, never
an endpoint, a model, a strategy that needs one, or a folder.
"""

import logging
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import platformdirs

from skillpager.errors import SettingsError

logger = logging.getLogger(__name__)

APP = "skillpager"
PROJECT_FILE = "skillpager.toml"
DEFAULT_MAX_CACHE_BYTES = 1024**3
# largest skill that is read, all files together
MAX_SKILL_BYTES = 8 * 1024 * 1024

# settings that an untrusted project file may set, and strategies that it may name: they load no model except
# the shipped ones and call no endpoint
PROJECT_KEYS = frozenset(
    {"scope", "style", "strategy", "mmr_lambda", "max_nodes", "max_tokens", "sufficiency"}
)
PROJECT_STRATEGIES = (
    *("navigator", "mmr", "topk", "full"),
    *("greedy_graph", "topk_dependency", "mmr_graph", "exec_only", "concept_only", "density"),
    *("head", "sections", "bm25", "hybrid", "dpp", "msd", "cover"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set outside of a call.

    Attributes:
        cache_dir: Folder of the index store and of paid LLM answers.
        skills_dir: Folders that are searched for skills before the conventional ones.
        encoder: `builtin`, `builtin:<folder>`, `hashing`, `sentence-transformers:<model>` or
            `openai:<model>`.
        classifier: `local` or `llm`.
        embedded_text: Which text of a node is embedded: `context`, `heading` or `bare`.
        llm_base_url: Chat endpoint, OpenAI-compatible.
        llm_api_key: Its key.
        llm_model: Its model.
        embed_base_url: Embeddings endpoint, OpenAI-compatible.
        embed_api_key: Its key.
        max_bytes: Largest skill, all files together, in bytes.
        max_cache_bytes: Size of the index store above which the least recently used indexes are evicted.
        scope: Default of `page`: `skill` or `body`.
        style: Default of `page`: `marked`, `plain` or `xml`.
        strategy: Default of `page`: `name` or `name:ARGUMENT` of `docs/strategies.md`; None for `navigator`,
            or `mmr` with an encoder other than the built-in one.
        mmr_lambda: Default of `page`.
        max_nodes: Default of `page`; None for the strategy's default.
        max_tokens: Default of `page`; None for no ceiling.
        sufficiency: Default of `page`; None to end a page when the best value per token falls below a
            fixed threshold.
    """

    cache_dir: Path = field(default_factory=lambda: platformdirs.user_cache_path(APP))
    skills_dir: tuple[Path, ...] = ()
    encoder: str = "builtin"
    classifier: str = "local"
    embedded_text: str = "context"
    llm_base_url: str | None = None
    llm_api_key: str | None = None
    llm_model: str | None = None
    embed_base_url: str | None = None
    embed_api_key: str | None = None
    max_bytes: int = MAX_SKILL_BYTES
    max_cache_bytes: int = DEFAULT_MAX_CACHE_BYTES
    scope: str = "skill"
    style: str = "marked"
    strategy: str | None = None
    mmr_lambda: float = 0.7
    max_nodes: int | None = None
    max_tokens: int | None = None
    sufficiency: float | None = None

    def __repr__(self) -> str:
        """Return the settings as text with keys hidden, so that no log or traceback shows a key."""
        shown = {item.name: getattr(self, item.name) for item in fields(self)}
        hidden = {name: "…" for name, value in shown.items() if name.endswith("_key") and value}
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in {**shown, **hidden}.items())})"


def load_settings(
    *,
    environ: Mapping[str, str] | None = None,
    project_file: Path | None = Path(PROJECT_FILE),
    user_file: Path | None = None,
) -> Settings:
    """Return the settings of this process.

    Args:
        environ: Environment variables; the process's own by default.
        project_file: `skillpager.toml` of the current folder; only defaults of `page` are read from it.
        user_file: `config.toml` of the user's configuration folder.

    Raises:
        SettingsError: A file or value is not valid.
    """
    environment = os.environ if environ is None else environ
    user_file = user_file or platformdirs.user_config_path(APP) / "config.toml"
    settings = _from_file(Settings(), user_file, trusted=True)
    if project_file is not None:
        settings = _from_file(settings, project_file, trusted=False)
    return _from_environment(settings, environment)


def _from_file(settings: Settings, path: Path, *, trusted: bool) -> Settings:
    try:
        loaded = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return settings
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid TOML ({error}): correct or remove the file.") from error
    known = {item.name for item in fields(Settings)}
    changes: dict[str, object] = {}
    for name, value in loaded.items():
        if name not in known:
            raise SettingsError(f"{path}: unknown setting {name!r}; known are {', '.join(sorted(known))}.")
        if not trusted and name not in PROJECT_KEYS:
            logger.warning("%s: %s is ignored, a project may only set %s", path, name, sorted(PROJECT_KEYS))
        elif not trusted and name == "strategy" and str(value).partition(":")[0] not in PROJECT_STRATEGIES:
            local = ", ".join(PROJECT_STRATEGIES)
            logger.warning(
                "%s: strategy %r is ignored, a project may only name one of %s", path, value, local
            )
        else:
            changes[name] = _convert(name, value, str(path))
    return replace(settings, **changes)  # type: ignore[arg-type]


def _from_environment(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """Apply the SKILLPAGER_ variables, then fall back to OPENAI_BASE_URL and OPENAI_API_KEY.

    OPENAI_API_KEY is used only with OpenAI's own address or that of OPENAI_BASE_URL, never with another
    host that a setting names.
    """
    changes: dict[str, object] = {}
    for item in fields(Settings):
        variable = f"SKILLPAGER_{item.name.upper()}"
        if value := environ.get(variable, ""):
            changes[item.name] = _convert(item.name, value, f"the environment variable {variable}")
    for kind in ("llm", "embed"):
        address, key = f"{kind}_base_url", f"{kind}_api_key"
        if changes.get(address, getattr(settings, address)) is None:
            changes[address] = environ.get("OPENAI_BASE_URL") or None
            if changes.get(key, getattr(settings, key)) is None:
                changes[key] = environ.get("OPENAI_API_KEY") or None
    return replace(settings, **changes)  # type: ignore[arg-type]


def _convert(name: str, value: object, place: str) -> object:
    try:
        if name in ("max_bytes", "max_cache_bytes", "max_nodes", "max_tokens"):
            if isinstance(value, bool) or not str(value).isdigit():
                raise ValueError("it must be a whole number, 0 or more")
            return int(str(value))
        if name in ("mmr_lambda", "sufficiency"):
            return float(str(value))
        if name == "cache_dir":
            return Path(str(value)).expanduser()
        if name == "skills_dir":
            parts = value if isinstance(value, list) else str(value).split(os.pathsep)
            return tuple(Path(str(part)).expanduser() for part in parts if str(part))
    except ValueError as error:
        raise SettingsError(f"{name} in {place} is {value!r}: {error}.") from error
    return str(value)
