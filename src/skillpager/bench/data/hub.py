"""Download of SkillRouter-Eval-Core from the Hugging Face hub."""

from pathlib import Path

from skillpager.bench.data.skillrouter import DATASET, MANIFEST, PARTITION
from skillpager.bench.data.tasks import RELEVANCE, TASKS
from skillpager.errors import BenchError, require_extra

FILES = (MANIFEST, TASKS, RELEVANCE, f"{PARTITION}/*.jsonl.gz")


def download_skillrouter(folder: Path, *, revision: str = "main", bars: bool = False) -> None:
    """Fetch the data set into a folder; what is there already is kept. `HF_ENDPOINT` names a mirror.

    Args:
        folder: Where to; made if need be.
        revision: Branch, tag or commit of the data set.
        bars: Whether to show progress bars on stderr.

    Raises:
        BenchError: It cannot be fetched.
        MissingExtraError: The `huggingface_hub` package is not installed.
    """
    hub = require_extra("huggingface_hub", extra="hub", purpose="`--download`")
    if not bars:
        require_extra("huggingface_hub.utils", extra="hub", purpose="`--download`").disable_progress_bars()
    try:
        hub.snapshot_download(
            DATASET, repo_type="dataset", revision=revision, local_dir=folder, allow_patterns=list(FILES)
        )
    # the exceptions of the HTTP library underneath come through, and which one that is varies by version
    except Exception as error:
        raise BenchError(
            f"The data set {DATASET} cannot be downloaded ({' '.join(str(error).split())}): check the "
            f"network or HF_ENDPOINT, or copy the files {', '.join(FILES)} to {folder} yourself."
        ) from error
