"""Selection strategies: one family, one Protocol (`skillpager.types.Strategy`).

mmr    Maximal Marginal Relevance under a budget (paper §3.2), the default
topk   the most relevant nodes
full   every node
"""

from skillpager.strategies.full import Full
from skillpager.strategies.mmr import Mmr
from skillpager.strategies.topk import TopK

__all__ = ["Full", "Mmr", "TopK"]
