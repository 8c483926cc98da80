"""The trained weights of the navigator: features to needs, needs to the chance of sufficiency."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from zipfile import BadZipFile

import numpy as np

from skillpager.errors import StrategyError
from skillpager.sequence_net import SequenceNet
from skillpager.strategies.navigator.features import GROUPS, NAMES, IndexFeatures, features_of
from skillpager.types import FloatArray, Query

MODEL = "models/navigator/navigator.npz"

# a probability is kept from 1, whose worth is infinite, and cut to millionths, where machines agree
LARGEST_NEED = 1 - 1e-6
STEPS = 1e6


@dataclass(frozen=True, eq=False)
class NeedModel:
    """The weights of the navigator.

    Attributes:
        net: Estimates needs.
        embedding: Which rows it reads: encoder id, `/` and text form.
        scale: Slope and intercept that calibrate its logits.
        chance: Slope and intercept of the log odds of sufficiency over the log of the worth left out;
            None for exp(-left), which holds if needs are independent of each other.
        floor: Value below which a node is not worth its tokens.
    """

    net: SequenceNet
    embedding: str
    scale: tuple[float, float]
    chance: tuple[float, float] | None
    floor: float

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> "NeedModel":
        """Return the model of the arrays of a file.

        Raises:
            KeyError: One is missing.
            ValueError: It was trained on other features.
        """
        if tuple(arrays["signals"].tolist()) != NAMES:
            raise ValueError("it was trained on other signals")
        weights = {name[4:]: arrays[name] for name in arrays if name.startswith("net.")}
        slope, intercept = arrays["scale"].tolist()
        rise, start = arrays["chance"].tolist()
        return cls(
            SequenceNet(weights),
            str(arrays["embedding"]),
            (slope, intercept),
            (rise, start),
            float(arrays["floor"]),
        )

    def needs(self, known: IndexFeatures, query: Query) -> FloatArray:
        """Return `(n,)`: the chance that the query needs each node, to a millionth."""
        return self.calibrated(self._logits(known, features_of(known, query)))

    def calibrated(self, logits: FloatArray) -> FloatArray:
        """Return the chances that logits of the network stand for, to a millionth."""
        slope, intercept = self.scale
        chances = 1 / (1 + np.exp(-(slope * logits.astype(np.float64) + intercept)))
        needs: FloatArray = (np.rint(chances * STEPS) / STEPS).clip(0, LARGEST_NEED).astype(np.float64)
        return needs

    def sufficiency(self, left: float) -> float:
        """Return the chance that nothing is missing when nodes of this worth are left out."""
        if self.chance is None:
            return float(np.exp(-left))
        rise, start = self.chance
        return float(1 / (1 + np.exp(-(start + rise * np.log(max(left, 1e-9))))))

    def reasons(self, known: IndexFeatures, query: Query) -> list[dict[str, float]]:
        """Return for each node what each group of features adds to its log odds, as shares that add up to 1.

        A group adds what is lost when its features are those of an average node.
        """
        features, average = features_of(known, query), self.net.arrays["0.mean"]
        full = self._logits(known, features)
        lost = []
        start = 0
        for names in GROUPS.values():
            without = features.copy()
            without[:, start : start + len(names)] = average[start : start + len(names)]
            lost.append(np.maximum(full - self._logits(known, without), 0))
            start += len(names)
        shares = np.stack(lost, axis=1)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-6)
        return [dict(zip(GROUPS, row, strict=True)) for row in shares.round(3).tolist()]

    def _logits(self, known: IndexFeatures, features: FloatArray) -> FloatArray:
        return self.net.logits(features, known.section.member)[:, 0]


@cache
def shipped_model() -> NeedModel:
    """Return the model inside the package, read at first use.

    Raises:
        StrategyError: The file is missing or damaged.
    """
    path = files("skillpager") / MODEL
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            return NeedModel.of({name: arrays[name] for name in arrays.files})
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise StrategyError(
            f"The shipped navigator {path} cannot be read ({error}): the installation is "
            "damaged, so run `pip install --force-reinstall --no-deps skillpager`."
        ) from error
