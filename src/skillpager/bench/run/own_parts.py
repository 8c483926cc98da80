"""Parts of others in a run: loaded before it, so that mistakes come first, and described in its manifest.

    {"own": {"mine:Words": {"says": "Nodes by …", "sha256": "…"}}}

`says` is the first line of the docstring, for the report, which loads no code. `sha256` is of the file:
results of code that has changed since are not mixed with new ones.
"""

import hashlib
import inspect
from collections.abc import Mapping
from pathlib import Path

from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.run.methods import LABELS, METHOD_STRATEGIES, Method, is_ours, parse_method
from skillpager.errors import BenchError
from skillpager.factories import STRATEGY, is_installed, make_classifier, make_encoder, make_strategy
from skillpager.json_types import JsonObject
from skillpager.pages.assemble import estimates
from skillpager.settings import BUILT_IN, Settings

OWN = "own"  # entry of the manifest


def has_own_parts(method: Method) -> bool:
    """Return whether the strategy, encoder or classifier that a method names is not ours."""
    return bool(_own_parts(method))


def check_own_parts(folder: BenchFolder, methods: Mapping[str, Method], settings: Settings) -> None:
    """Load what methods name that is not ours, and describe it in the manifest.

    Raises:
        BenchError: A strategy is unknown, does not estimate the sufficiency that its method asks for, or has
            changed since its results were made.
        SettingsError: A part cannot be loaded, or is none of its kind.
    """
    known = folder.manifest().get(OWN)
    before = known if isinstance(known, Mapping) else {}
    now: dict[str, JsonObject] = {}
    for label, method in methods.items():
        for setting, name in _own_parts(method):
            now[name] = _describe(_load(setting, name, label, method, settings))
    if not now:
        return
    for done in folder.methods():
        for _, name in _own_parts(parse_method(done)):
            if name in now and before.get(name, now[name]) != now[name]:
                raise BenchError(
                    f"The code of {name} has changed since the results of {done} were made: remove "
                    f"{folder.selections_file(done)}, or choose another --out."
                )
    folder.update_manifest({OWN: {**before, **now}})


def _own_parts(method: Method) -> list[tuple[str, str]]:
    """Return setting and name of each part of a method that is not ours."""
    own = [] if is_ours(method.strategy) else [("strategy", method.strategy)]
    for setting, name in (("encoder", method.encoder), ("classifier", method.classifier)):
        if name and name != LABELS and name.partition(":")[0] not in BUILT_IN[setting]:
            own.append((setting, name))
    return own


def _load(setting: str, name: str, label: str, method: Method, settings: Settings) -> object:
    """Return a part that is not ours."""
    if setting != "strategy":
        return (make_encoder if setting == "encoder" else make_classifier)(name, settings)
    if ":" not in name and not is_installed(STRATEGY, name):
        known = ", ".join(METHOD_STRATEGIES)
        raise BenchError(f"Unknown method {label!r}: its strategy must be one of {known}.")
    weight = settings.mmr_lambda if method.mmr_lambda is None else method.mmr_lambda
    strategy = make_strategy(name, settings, mmr_lambda=weight)
    if method.sufficiency is not None and not estimates(strategy):
        raise BenchError(f"Method {label!r}: {name} does not estimate sufficiency.")
    return strategy


def _describe(part: object) -> JsonObject:
    """Return what its class says of a part, and the digest of the file in which the class stands."""
    kind = type(inspect.unwrap(part))  # type: ignore[arg-type]
    first = (kind.__doc__ or "").strip().partition("\n")[0].strip()
    # what a dataclass writes by itself says nothing
    says = "" if first.startswith(f"{kind.__name__}(") else first
    try:
        file = inspect.getsourcefile(kind)
    except TypeError:  # a class of an interactive session
        file = None
    digest = hashlib.sha256(Path(file).read_bytes()).hexdigest() if file and Path(file).is_file() else None
    return {"says": says, "sha256": digest}
