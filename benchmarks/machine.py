"""Description of the machine and the software, without host name or user paths."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "skillpager",
    "numpy",
    "onnxruntime",
    "tokenizers",
    "markdown-it-py",
    "sentencex",
    "rs-bpe",
    "pyversity",
    "langchain-core",
)


def describe() -> dict[str, str]:
    """Return the description, one line per key."""
    return {
        "processor": f"{_processor()}, {_cores()} cores",
        "memory": _memory(),
        "system": f"{platform.system()}, {platform.machine()}",
        "Python": platform.python_version(),
        "packages": ", ".join(filter(None, map(_versioned, PACKAGES))),
    }


def load_average() -> float:
    """Return how many processes wanted a core during the last minute."""
    return os.getloadavg()[0]


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory() -> str:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemTotal"):
            return f"{int(line.split()[1]) / 1e6:.0f} GB"
    return "unknown"


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines() if Path(path).exists() else []


def _versioned(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return ""
