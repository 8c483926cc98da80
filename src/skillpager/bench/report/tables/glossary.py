"""What the names of the methods mean."""

from skillpager.bench.report.results import Results
from skillpager.bench.report.tables.table import Column, Row, Table

# in the order of the paper, then beyond it
MEANINGS = {
    "full": "All nodes, whatever the query: the paper's full-document prompting.",
    "topk_dependency": "The k nodes nearest to the query, then what precedes them in the graph.",
    "greedy_graph": "From the entry node along edges, until the gain falls below a threshold.",
    "chunk_mmr": "MMR over chunks of fixed length, 256 tokens unless it says otherwise.",
    "mmr": "Maximal marginal relevance over typed nodes: the paper's method.",
    "mmr_graph": "mmr, then the one-hop dependency predecessors of what was selected.",
    "exec_only": "mmr without concept nodes.",
    "concept_only": "mmr over concept nodes alone.",
    "density": "exec_only for skills whose share of concept nodes exceeds τ, else mmr.",
    "navigator": "Nodes by trained need per token, until none is worth its tokens: the default of page.",
    "head": "The first 5,000 tokens unless it says otherwise: what hosts keep after compaction.",
    "sections": "Whole heading sections by dense score.",
    "bm25": "Nodes by BM25, words alone.",
    "topk": "Nodes by cosine with the query.",
    "hybrid": "Reciprocal rank fusion of topk and bm25.",
    "dpp": "Determinantal point process: relevance and diversity together.",
    "msd": "Max-sum diversification: relevance and the sum of distances.",
    "cover": "Facility location: relevance and how well the selection covers the rest.",
    "reranker": "Nodes by a cross-encoder.",
    "llmlingua2": "LLMLingua-2: tokens are dropped, not nodes chosen.",
    "openprovence": "OpenProvence: sentences pruned by a trained model.",
    "llm_outline": "A language model picks nodes from the outline.",
}
_OPTIONS = (
    ("@lambda=0.9", "λ, the weight of relevance against redundancy; 0.7 unless it says otherwise."),
    ("@k=20", "At most so many nodes; without it 20 up to 100 nodes, else 60; none for navigator."),
    ("@tokens=40%", "A ceiling on the context, as a share of the skill's tokens; k does not apply."),
    ("@sufficiency=0.9", "Ends at this estimated chance of holding all that is needed; navigator alone."),
)


def glossary(results: Results) -> Table:
    """Return what the names of the methods that were run mean."""
    families = {label.partition("@")[0].partition(":")[0] for label in results.labels}
    rows = [Row((name, meaning)) for name, meaning in MEANINGS.items() if name in families]
    rows += [Row(option) for option in _OPTIONS]
    return Table("methods", "Names of methods", (Column("Name"), Column("Meaning")), tuple(rows))
