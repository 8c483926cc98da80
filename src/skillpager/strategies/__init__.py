"""Selection strategies: interchangeable, each a `skillpager.types.Strategy`.

mmr          Maximal Marginal Relevance, the paper's method
navigator/   the default: nodes by learned need, until the page probably suffices
baselines/   the paper's baselines and ablations, and other methods to compare with
registry     finds each by its name
picking      admission under a budget and the record of it, shared by all

`docs/strategies.md` describes every strategy.
"""

from skillpager.strategies.baselines.simple import Full, TopK
from skillpager.strategies.mmr import Mmr

__all__ = ["Full", "Mmr", "TopK"]
