"""Selection strategies: one family, one Protocol (`skillpager.types.Strategy`), one module each.

mmr              Maximal Marginal Relevance under a budget (paper §3.2), the default
topk             the most relevant nodes
full             every node (paper §4.3)

greedy_graph     a walk over the graph from the first node (paper §4.3)
topk_dependency  the most relevant nodes and their predecessors in the graph (paper §4.3)
chunk_mmr        mmr over windows of 256 tokens (paper §4.3)
mmr_graph        mmr and the predecessors of its picks (paper §3.3)
exec_only        mmr without concepts (paper §5.2)
concept_only     mmr over concepts alone (paper §5.2)
density          mmr without the concepts of skills that have many (paper §5.2)

head             the beginning of the skill
sections         whole sections by relevance
bm25             nodes by words in common with the query
hybrid           nodes by relevance and words in common, ranks fused
dpp, msd, cover  other ways to weigh relevance against variety

reranker         nodes by a cross-encoder
llmlingua2       tokens kept by LLMLingua-2
openprovence     sentences kept by OpenProvence
llm_outline      nodes that a language model picks from the outline

`skillpager.strategies.registry` finds each by its name; `docs/strategies.md` describes them.
"""

from skillpager.strategies.baselines.full import Full
from skillpager.strategies.baselines.topk import TopK
from skillpager.strategies.mmr import Mmr

__all__ = ["Full", "Mmr", "TopK"]
