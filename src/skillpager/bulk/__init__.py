"""Many skills: read from any source, indexed by workers in this process, on this machine or on a cluster."""

from skillpager.bulk.driver import Outcome, index_places, index_skills
from skillpager.bulk.places import local_place
from skillpager.bulk.ray_cluster import ray_place
from skillpager.bulk.sources import Source, source_of, sources_of

__all__ = [
    "Outcome",
    "Source",
    "index_places",
    "index_skills",
    "local_place",
    "ray_place",
    "source_of",
    "sources_of",
]
