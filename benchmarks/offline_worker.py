"""Index one skill in this fresh process; print seconds by stage and the number of nodes as JSON."""

import json
import sys
import time
from pathlib import Path

from timing import Stopwatch

STAGES = ("load models", "read", "split", "embed", "classify", "edges", "tokens", "store")


def measure(skill: Path, cache: Path) -> dict[str, object]:
    """Return what indexing `skill` into the store at `cache` took, models loaded within the time."""
    from skillpager import pager
    from skillpager.classifiers.local import LocalClassifier
    from skillpager.encoders.builtin import BuiltinEncoder
    from skillpager.graph import edges
    from skillpager.parsing import fragments
    from skillpager.settings import Settings
    from skillpager.stores.sqlite import SqliteStore
    from skillpager.tokens import default_counter

    watch = Stopwatch()
    encoder, classifier, counter = BuiltinEncoder(), LocalClassifier(), default_counter()
    store = SqliteStore(cache)
    watch.on(pager, "read_skill", "read")
    watch.on(fragments, "split_skill", "split")
    watch.on(encoder, "encode_in_context", "embed")
    watch.on(classifier, "classify", "classify")
    watch.on(edges, "infer_edges", "edges")
    watch.on(counter, "count", "tokens")
    watch.on(store, "load", "store")
    watch.on(store, "save", "store")
    made = pager.SkillPager(
        encoder=encoder, classifier=classifier, store=store, token_counter=counter, settings=Settings()
    )
    start = time.perf_counter()
    watch.timed("load models", lambda: (encoder.encode_query("load"), classifier.id))()
    index = made.index(skill)
    seconds = time.perf_counter() - start
    made.close()
    size = sum(len(file.text.encode()) for file in index.skill.files)
    return {"seconds": seconds, "nodes": len(index.nodes), "bytes": size, "stages": dict(watch.seconds)}


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    print(json.dumps(measure(Path(request["skill"]), Path(request["cache"]))))
