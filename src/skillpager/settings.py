"""Settings, from keywords, environment, project file and user file, in this order of precedence.

A project file comes with a `git clone` and is not trusted: it may set the look and the size of pages, never
an endpoint, a model, a strategy that needs one, or a folder. What is wrong in it is a warning, not an error.
"""

import difflib
import logging
import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import platformdirs

from skillpager.errors import SettingsError
from skillpager.files import read_bounded
from skillpager.types import SCOPES, SPLITTERS, TEXT_FORMS, Style

logger = logging.getLogger(__name__)

APP = "skillpager"
PREFIX = "SKILLPAGER_"
PROJECT_FILE = "skillpager.toml"
INDEX_FOLDER = "indexes"  # of the index store, in `cache_dir`
NOTES_FILE = "skillpager-asks.json"  # notes that come with a skill, in its folder
DEFAULT_MAX_CACHE_BYTES = 1024**3
LLM_BATCH_SIZE = 20  # paper §3.1
LLM_CONCURRENCY = 4
LLM_TIMEOUT = 120.0
# largest skill that is read, all files together
MAX_SKILL_BYTES = 20 * 1024 * 1024
# longest query from an agent, by MCP, HTTP or the hook: longer than any description of a task
MAX_QUERY_CHARS = 8_000
# largest file of settings; ours have some 20 lines
MAX_SETTINGS_BYTES = 64 * 1024
# largest number of a setting; beyond it arithmetic could overflow
MAX_NUMBER = 10**15
MAX_SHOWN_CHARS = 80
# largest batch and most requests at a time of a language model; larger is a slip of the hand
MAX_REQUESTS = 1_000
MAX_SECONDS = 86_400  # a day

# strategies that an untrusted project file may name: they load no model except the shipped ones and call no
# endpoint
PROJECT_STRATEGIES = (
    *("navigator", "lean", "mmr", "topk", "full"),
    *("greedy_graph", "topk_dependency", "mmr_graph", "exec_only", "concept_only", "density"),
    *("head", "sections", "bm25", "hybrid", "dpp", "msd", "cover"),
)
# the values of settings that have few
CHOICES = {"scope": SCOPES, "style": tuple(Style), "embedded_text": TEXT_FORMS, "splitter": SPLITTERS}
# names of parts before their colon, by setting; before a colon, any other name is that of a module
BUILT_IN: dict[str, tuple[str, ...]] = {
    "encoder": ("builtin", "onnx", "hashing", "sentence-transformers", "openai"),
    "classifier": ("local", "llm"),
    "strategy": (
        *PROJECT_STRATEGIES,
        "chunk_mmr",  # in the benchmark only
    ),
}
# the library of a store to which nobody has given a name, and the word for none
DEFAULT_LIBRARY, NO_LIBRARY = "default", "none"
TRUTHS = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)

_LIBRARY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# the address of a PostgreSQL server; one `@` ends user and password, in which it is written %40
_ADDRESS = re.compile(r"postgres(ql)?://([^@/?#\s]*@)?[^@\s]*")

Reader = Callable[[object], object]

# ---- readers: from a value of a file or variable to that of a setting; a `ValueError` says what it must be


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("it must be text in quotes")
    return value


def _number(kind: type[int] | type[float], least: float, most: float) -> Reader:
    def read(value: object) -> float:
        try:
            number = kind(str(value))
        except ValueError:
            number = math.nan
        if isinstance(value, bool) or not least <= number <= most:
            noun = "whole number" if kind is int else "number"
            raise ValueError(f"it must be a {noun} from {least:,} to {most:,}")
        return number

    return read


_WHOLE = _number(int, 0, MAX_NUMBER)
_REQUESTS = _number(int, 1, MAX_REQUESTS)
_SECONDS = _number(float, 0.001, MAX_SECONDS)
_WEIGHT = _number(float, 0, 1)
_CHANCE = _number(float, 0.001, 1)


def _truth(value: object) -> bool:
    if str(value).lower() not in TRUTHS:
        raise ValueError("it must be true or false")
    return TRUTHS[str(value).lower()]


def _choice(setting: str, value: object) -> object:
    if value not in CHOICES[setting]:
        raise ValueError(f"it must be one of {', '.join(CHOICES[setting])}")
    return value


def _path(value: object) -> Path:
    return Path(str(value)).expanduser()


def _list(separator: str, read: Reader) -> Reader:
    def read_all(value: object) -> tuple[object, ...]:
        items = value if isinstance(value, list) else str(value).split(separator)
        return tuple(read(str(item).strip()) for item in items if str(item).strip())

    return read_all


def _part(setting: str, value: object) -> str:
    """Return the name of a part; a file or a variable may come with a project, and loading code runs it."""
    base, colon, _ = _text(value).partition(":")
    if colon and base not in BUILT_IN[setting]:
        raise ValueError(
            "only the command line or a call may name code to be loaded. Name one of SkillPager or of an "
            "installed package"
        )
    return _text(value)


def check_library(name: object) -> str:
    """Return the name of a library; raise a `ValueError` if it is not valid."""
    if not (isinstance(name, str) and _LIBRARY.fullmatch(name)):
        raise ValueError("it must be up to 64 letters, digits, dots, hyphens and underscores")
    return name


def _set(read: Reader, default: object = None, *, project: bool = False) -> Any:
    """Return a field with its reader; `project` if a project file may set it."""
    return field(default=default, metadata={"read": read, "project": project})


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set outside of a call.

    Attributes:
        cache_dir: Folder of the index store, of notes on nodes and of paid LLM answers.
        store: `postgresql://` address of the index store; None for a file in `cache_dir`.
        library: Name of the library in a PostgreSQL store, to which `skillpager index` publishes and whose
            skills are offered; `none` for none.
        skills_dir: Folders that are searched for skills before the conventional ones.
        trusted: Folders; only skills in these are offered by servers and searches. Empty for all.
        licences: SPDX ids; only skills under these are offered by servers and searches. Empty for all.
        encoder: `builtin`, `builtin:<folder>`, `onnx:<folder>`, `hashing`, `sentence-transformers:<model>` or
            `openai:<model>`; the name of an entry point; from a call also `MODULE:NAME`.
        classifier: `local` or `llm`; an entry point or `MODULE:NAME` as well.
        embedded_text: Which text of a node is embedded: `context`, `heading` or `bare`.
        splitter: `default`, or `paper` for nodes of the paper's size.
        llm_base_url: Chat endpoint, OpenAI-compatible.
        llm_api_key: Its key.
        llm_model: Its model.
        llm_batch_size: Nodes in one request of the `llm` classifier.
        llm_concurrency: Most requests of the `llm` classifier at a time.
        llm_timeout: Seconds after which a request of the `llm` classifier that is not answered has failed.
        embed_base_url: Embeddings endpoint, OpenAI-compatible.
        embed_api_key: Its key.
        max_bytes: Largest skill, all files together, in bytes.
        max_cache_bytes: Size of the index store above which the oldest indexes are deleted.
        scope: Default of `page`: `skill` or `body`.
        style: Default of `page`: `marked`, `plain` or `xml`.
        strategy: Default of `page`: `name` or `name:ARGUMENT` of `docs/strategies.md`, an entry point or
            `MODULE:NAME` as well; None for `navigator`, or `mmr` with an encoder other than the built-in one.
        mmr_lambda: Default of `page`.
        max_nodes: Default of `page`; None for the strategy's default.
        max_tokens: Default of `page`; None for no ceiling.
        sufficiency: Default of `page`; None to end a page where more tokens cost more than they add
            to the estimate.
        fill: Default of `page`: whether a page goes on to `max_nodes` and `max_tokens`.
    """

    cache_dir: Path = field(
        default_factory=lambda: platformdirs.user_cache_path(APP), metadata={"read": _path, "project": False}
    )
    store: str | None = _set(_text)
    library: str = _set(check_library, DEFAULT_LIBRARY)
    skills_dir: tuple[Path, ...] = _set(_list(os.pathsep, _path), ())
    trusted: tuple[Path, ...] = _set(_list(os.pathsep, _path), ())
    licences: tuple[str, ...] = _set(_list(",", _text), ())
    encoder: str = _set(partial(_part, "encoder"), "builtin")
    classifier: str = _set(partial(_part, "classifier"), "local")
    embedded_text: str = _set(partial(_choice, "embedded_text"), "context")
    splitter: str = _set(partial(_choice, "splitter"), "default")
    llm_base_url: str | None = _set(_text)
    llm_api_key: str | None = _set(_text)
    llm_model: str | None = _set(_text)
    llm_batch_size: int = _set(_REQUESTS, LLM_BATCH_SIZE)
    llm_concurrency: int = _set(_REQUESTS, LLM_CONCURRENCY)
    llm_timeout: float = _set(_SECONDS, LLM_TIMEOUT)
    embed_base_url: str | None = _set(_text)
    embed_api_key: str | None = _set(_text)
    max_bytes: int = _set(_WHOLE, MAX_SKILL_BYTES)
    max_cache_bytes: int = _set(_WHOLE, DEFAULT_MAX_CACHE_BYTES)
    scope: str = _set(partial(_choice, "scope"), "skill", project=True)
    style: str = _set(partial(_choice, "style"), "marked", project=True)
    strategy: str | None = _set(partial(_part, "strategy"), project=True)
    mmr_lambda: float = _set(_WEIGHT, 0.7, project=True)
    max_nodes: int | None = _set(_WHOLE, project=True)
    max_tokens: int | None = _set(_WHOLE, project=True)
    sufficiency: float | None = _set(_CHANCE, project=True)
    fill: bool = _set(_truth, False, project=True)

    def __repr__(self) -> str:
        """Return the settings as text with keys hidden, so that no log or traceback shows a key."""
        shown = {item.name: getattr(self, item.name) for item in fields(self)}
        for name, value in shown.items():
            if value and name.endswith("_key"):
                shown[name] = "…"
            elif value and is_address(name):
                shown[name] = hide_secrets(value)
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


_FIELDS = {item.name: item for item in fields(Settings)}


def is_address(setting: str) -> bool:
    """Return whether a setting is an address, in which there may be secrets."""
    return setting == "store" or setting.endswith("_base_url")


def store_fault(address: str) -> str:
    """Return what is wrong with the address of a store, with nothing secret in it; empty if nothing is."""
    if not address.startswith(("postgresql://", "postgres://")):
        return "is no address of a PostgreSQL server: it must begin with postgresql://"
    if not _ADDRESS.fullmatch(address):
        return (
            f"is {hide_secrets(address)}: in a user or password, write @ as %40, and / ? # and blanks as %2F "
            "%3F %23 %20"
        )
    return ""


def hide_secrets(url: str) -> str:
    """Return a URL as it may be shown: without user, password, fragment and the values of its query.

    A wrong address is shown, too, so the last `@` ends the password, even one that should have been escaped.
    """
    before, at, after = url.rpartition("@")
    if at:
        scheme = re.match(r"[\w+.-]+://", before)
        url = f"{scheme[0] if scheme else ''}…@{after}"
    address, mark, query = url.partition("#")[0].partition("?")
    hidden = "&".join(f"{part.partition('=')[0]}=…" if "=" in part else "…" for part in query.split("&"))
    return f"{address}{mark}{hidden}" if mark else address


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
    """Apply the settings of a file; what is wrong in one that is not trusted is a warning."""
    changes: dict[str, Any] = {}
    try:
        loaded = _load_toml(path)
    except SettingsError as error:
        if trusted:
            raise
        logger.warning("%s It is ignored.", error)
        return settings
    for name, value in loaded.items():
        try:
            if name not in _FIELDS:
                known = sorted(_FIELDS)
                close = difflib.get_close_matches(name[:MAX_SHOWN_CHARS], known, n=1)
                hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}."
                raise SettingsError(f"{path}: unknown setting {_shown(name)}; {hint}")
            if trusted or _may_choose(name, value, path):
                changes[name] = _convert(name, value, str(path))
        except SettingsError as error:
            if trusted:
                raise
            logger.warning("%s It is ignored.", error)
    return replace(settings, **changes)


def _load_toml(path: Path) -> dict[str, object]:
    """Return the content of a TOML file, empty if there is none."""
    try:
        data = read_bounded(path, MAX_SETTINGS_BYTES)
        if len(data) > MAX_SETTINGS_BYTES:
            raise SettingsError(
                f"{path} has more than {MAX_SETTINGS_BYTES:,} bytes: correct or remove the file."
            )
        return tomllib.loads(data.decode())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except PermissionError as error:
        # of a folder that another user owns, such as the home of root
        logger.warning("%s cannot be read (%s): its settings are not used.", path, error.strerror)
        return {}
    except OSError as error:
        reason = error.strerror or error
        raise SettingsError(f"{path} cannot be read ({reason}): correct or remove the file.") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, nested too deeply
        raise SettingsError(f"{path} is not valid TOML ({error}): correct or remove the file.") from error


def _may_choose(name: str, value: object, path: Path) -> bool:
    """Return whether a project file may set `name` to `value`; what it may not is logged."""
    if not _FIELDS[name].metadata["project"]:
        allowed = ", ".join(sorted(each for each, item in _FIELDS.items() if item.metadata["project"]))
        logger.warning("%s: %s is ignored, a project may only set %s", path, name, allowed)
        return False
    if name == "strategy" and isinstance(value, str) and value not in PROJECT_STRATEGIES:
        known = ", ".join(PROJECT_STRATEGIES)
        logger.warning(
            "%s: strategy %s is ignored, a project may only name one of %s", path, _shown(value), known
        )
        return False
    return True


def _shown(value: object) -> str:
    """Return a value for an error, cut to a length that suits one."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits; nested too deeply
        return "too large"
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


def _from_environment(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """Apply the SKILLPAGER_ variables, then fall back to OPENAI_BASE_URL and OPENAI_API_KEY.

    OPENAI_API_KEY is used only with OpenAI's own address or that of OPENAI_BASE_URL, never with another
    host that a setting names.
    """
    changes: dict[str, Any] = {}
    for name in _FIELDS:
        variable = PREFIX + name.upper()
        if value := environ.get(variable, ""):
            changes[name] = _convert(name, value, f"the environment variable {variable}")
    for kind in ("llm", "embed"):
        address, key = f"{kind}_base_url", f"{kind}_api_key"
        if changes.get(address, getattr(settings, address)) is None:
            changes[address] = environ.get("OPENAI_BASE_URL") or None
            if changes.get(key, getattr(settings, key)) is None:
                changes[key] = environ.get("OPENAI_API_KEY") or None
    return replace(settings, **changes)


def _convert(name: str, value: object, place: str) -> object:
    """Return the value of a setting; one that is not valid is a `SettingsError`."""
    try:
        converted: object = _FIELDS[name].metadata["read"](value)
    except (ValueError, RuntimeError) as error:  # the latter of `~somebody` without a home
        raise SettingsError(f"{name} in {place} is {_shown(value)}: {error}.") from error
    if name == "store" and (fault := store_fault(str(converted))):  # the value may hold a password
        raise SettingsError(f"{name} in {place} {fault}.")
    return converted
