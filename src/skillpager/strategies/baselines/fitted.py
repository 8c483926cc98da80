"""Settings of the paper's graph baselines that depend on the encoder, fitted on training skills.

The paper gives neither the threshold of greedy traversal nor the k of top-k with dependency completion, only
how many nodes they select. `skillpager bench fit` finds the values that select as many with an encoder; a
file holds those of several, one object each, and `fitted.json` those that ship.

Reference: paper §4.3; table tab:main-results.
"""

import json
import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

from skillpager.errors import SettingsError
from skillpager.files import write_file
from skillpager.settings import Settings
from skillpager.types import Recipe

logger = logging.getLogger(__name__)

SHIPPED = Path(__file__).with_name("fitted.json")
# without a fit greedy traversal has no threshold: it ends at max_nodes, or where no edge leads on
NO_THRESHOLD = -1.0
# without a fit; k depends on the graph more than on the encoder: it was 9 for each of those that ship
DEFAULT_SEEDS = 9


@dataclass(frozen=True, slots=True)
class FittedBaselines:
    """The settings for one encoder and text form, and what they were fitted on.

    Attributes:
        encoder: Id of the encoder.
        embedded_text: Which text of a node is embedded: `context`, `heading` or `bare`.
        threshold: Least gain of `greedy_graph`, -1 to 1.
        seeds: The k of `topk_dependency`.
        greedy_nodes: Mean number of nodes that `greedy_graph` selects with that threshold.
        dependency_nodes: Mean number of nodes that `topk_dependency` selects with that k.
        skills: Number of training skills.
        queries: Number of queries about them.
        mean_nodes: Mean number of nodes of a skill.
        skills_sha256: Digest of the training skills, as in the manifest of a benchmark folder.
    """

    encoder: str
    embedded_text: str
    threshold: float
    seeds: int
    greedy_nodes: float
    dependency_nodes: float
    skills: int
    queries: int
    mean_nodes: float
    skills_sha256: str

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            ValueError: A field is of another type, the threshold is not a cosine, or `seeds` is below 1.
        """
        for item in fields(self):
            value = getattr(self, item.name)
            kinds = (int, float) if item.type is float else item.type
            if isinstance(value, bool) or not isinstance(value, kinds):  # type: ignore[arg-type]
                raise ValueError(f"{item.name} is {value!r}")
        if not (math.isfinite(self.threshold) and -1.0 <= self.threshold <= 1.0) or self.seeds < 1:
            raise ValueError(f"threshold is {self.threshold} and seeds is {self.seeds}")

    def fits(self, recipe: Recipe) -> bool:
        """Return whether these are the settings for the encoder and text form of an index."""
        return (self.encoder, self.embedded_text) == (recipe.encoder, recipe.embedded_text)


@cache
def read_fits(path: Path = SHIPPED) -> tuple[FittedBaselines, ...]:
    """Return the settings that a file holds.

    Raises:
        SettingsError: The file cannot be read or holds something else.
    """
    try:
        loaded = json.loads(path.read_bytes())
        if not isinstance(loaded, list):
            raise ValueError("it is no list")
        return tuple(FittedBaselines(**each) for each in loaded)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise SettingsError(
            f"{path} holds no fitted baselines ({error}): make it with `skillpager bench fit`."
        ) from error


def write_fit(path: Path, fit: FittedBaselines) -> None:
    """Add the settings for an encoder and text form to a file; earlier ones for both are replaced.

    Raises:
        SettingsError: The file holds something else, or cannot be written.
    """
    kept = read_fits(path) if path.exists() else ()
    by_recipe = {(each.encoder, each.embedded_text): asdict(each) for each in (*kept, fit)}
    try:
        write_file(path, json.dumps([by_recipe[key] for key in sorted(by_recipe)], indent=2) + "\n")
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be written ({error.strerror or error}): choose another file."
        ) from error
    read_fits.cache_clear()


def fits_of(settings: Settings) -> tuple[FittedBaselines, ...]:
    """Return the settings of the user's file, if one is named, then those that ship.

    Raises:
        SettingsError: The file cannot be read or holds something else.
    """
    own = read_fits(settings.baselines) if settings.baselines else ()
    return (*own, *read_fits())


def find_fit(recipe: Recipe, fits: Sequence[FittedBaselines] | None = None) -> FittedBaselines | None:
    """Return the first of `fits`, by default those that ship, for the encoder and text form of an index."""
    return next((fit for fit in (read_fits() if fits is None else fits) if fit.fits(recipe)), None)


def threshold_for(recipe: Recipe, fits: Sequence[FittedBaselines] | None = None) -> float:
    """Return the threshold of greedy traversal for an index; without a fit there is none, which is logged."""
    if fit := find_fit(recipe, fits):
        return fit.threshold
    _warn_of_no_fit(recipe.encoder, recipe.embedded_text)
    return NO_THRESHOLD


def seeds_for(recipe: Recipe, fits: Sequence[FittedBaselines] | None = None) -> int:
    """Return the k of top-k with dependency completion for an index, `DEFAULT_SEEDS` without a fit."""
    fit = find_fit(recipe, fits)
    return fit.seeds if fit else DEFAULT_SEEDS


def describe_fit(recipe: Recipe, fits: Sequence[FittedBaselines] | None = None) -> str:
    """Return the settings that apply to an index, as the labels of methods that have them."""
    if fit := find_fit(recipe, fits):
        return f"greedy_graph:{fit.threshold:g} and topk_dependency@k={fit.seeds}"
    return f"not fitted: greedy_graph:{NO_THRESHOLD:g} and topk_dependency@k={DEFAULT_SEEDS}"


@cache
def _warn_of_no_fit(encoder: str, embedded_text: str) -> None:
    """Log once in a process that greedy traversal has no threshold for an encoder."""
    logger.warning(
        "greedy_graph has no threshold for the encoder %s (text %s) and ends at max_nodes alone: fit one "
        "with `skillpager bench fit`, or write greedy_graph:GAIN.",
        encoder,
        embedded_text,
    )
