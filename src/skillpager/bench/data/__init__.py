"""Where the benchmark's skills and queries come from (paper §4.1).

One module for each source: `evidence` (annotated documents), `skillrouter` (SkillRouter-Eval-Core), `evals`
(a skill's own tests), `fetch` (the documents of the published annotations). `writing` puts what they give
into a benchmark folder.
"""

from skillpager.bench.data.evidence import read_evidence
from skillpager.bench.data.loading import load_data, to_skill
from skillpager.bench.data.writing import data_entry, records_digest, write_data

__all__ = ["data_entry", "load_data", "read_evidence", "records_digest", "to_skill", "write_data"]
