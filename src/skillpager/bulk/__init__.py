"""Many skills: read from any source, indexed by workers in this process, on this machine or on a cluster."""

from skillpager.bulk.driver import index_skills
from skillpager.bulk.sources import Source, failed_source, path_source, source_of, sources_of
from skillpager.bulk.workers import Outcome

__all__ = ["Outcome", "Source", "failed_source", "index_skills", "path_source", "source_of", "sources_of"]
