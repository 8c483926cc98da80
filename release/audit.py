"""Lists what the published extras install, as CycloneDX SBOMs, and asks for known vulnerabilities of it.

`make check` runs it. Dependencies are resolved for all platforms, at their newest allowed versions. Without a
connection to the advisory service the SBOMs are written, and a warning says that nothing was audited; with
`--required` that is an error.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
OSV_URL = "https://api.osv.dev/v1/query"
# extras for work on this repository; nobody installs them with the package
OWN_EXTRAS = frozenset({"dev", "docs", "test", "train"})
PROBE_SECONDS = 15

CLEAN, VULNERABLE, NOT_AUDITED = 0, 1, 2


def main(arguments: list[str] | None = None) -> int:
    """Write the SBOMs, audit what they list, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--required", action="store_true", help="fail if the advisory service does not answer"
    )
    parser.add_argument("--osv-url", default=OSV_URL, help="advisory service with the protocol of OSV")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "sbom", help="folder of the SBOMs")
    parser.add_argument(
        "--project", type=Path, default=ROOT / "pyproject.toml", help="the pyproject.toml to audit"
    )
    options = parser.parse_args(arguments)
    files = write_sboms(options.project, options.out)
    pins = read_pins(files)
    total = sum(map(len, pins.values()))
    print(f"{len(files)} SBOMs in {options.out}: {len(pins)} packages, {total} versions")
    if reason := unreachable(options.osv_url):
        print(
            f"\nWARNING: dependencies were NOT audited: {options.osv_url} does not answer ({reason}).\n",
            file=sys.stderr,
        )
        return NOT_AUDITED if options.required else CLEAN
    return audit(pins, options.osv_url)


def write_sboms(project: Path, out: Path) -> list[Path]:
    """Write one SBOM for the core and one for each published extra, and return their paths."""
    extras = tomllib.loads(project.read_text(encoding="utf-8"))["project"].get("optional-dependencies", {})
    out.mkdir(parents=True, exist_ok=True)
    files = []
    with tempfile.TemporaryDirectory() as folder:
        # the lock stays out of the tree: it would say nothing about what users install
        copy = Path(folder) / "pyproject.toml"
        copy.write_bytes(project.read_bytes())
        uv("lock", "--quiet", "--project", folder)
        for extra in [None, *sorted(extras.keys() - OWN_EXTRAS)]:
            file = out / f"skillpager{f'-{extra}' if extra else ''}.cdx.json"
            chosen = ["--extra", extra] if extra else []
            form = [
                "--format",
                "cyclonedx1.5",
                "--preview-features",
                "sbom-export",
                "--output-file",
                str(file),
            ]
            uv("export", "--quiet", "--frozen", "--project", folder, *chosen, *form)
            files.append(file)
    return files


def uv(*arguments: str) -> None:
    """Run uv, which resolves dependencies; its errors end this program."""
    subprocess.run([sys.executable, "-m", "uv", *arguments], check=True, stdout=subprocess.DEVNULL)


def read_pins(files: list[Path]) -> dict[str, set[str]]:
    """Return the packages that SBOMs list, each with its versions; they differ between platforms."""
    pins: dict[str, set[str]] = defaultdict(set)
    for file in files:
        for component in json.loads(file.read_text(encoding="utf-8"))["components"]:
            pins[component["name"]].add(component["version"])
    return dict(pins)


def unreachable(url: str) -> str:
    """Return why the advisory service does not answer as OSV does; nothing if it does."""
    query = json.dumps({"package": {"name": "pip", "ecosystem": "PyPI"}, "version": "1000"}).encode()
    request = urllib.request.Request(url, query, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=PROBE_SECONDS) as answer:
            json.load(answer)
    except (OSError, ValueError) as error:  # no connection, an HTTP error, or another page than OSV's
        return str(error) or type(error).__name__
    return ""


def audit(pins: dict[str, set[str]], url: str) -> int:
    """Ask for known vulnerabilities of all versions, print them, and return the exit code."""
    found = []
    # pip-audit takes one version of a package at a time
    for place in range(max(map(len, pins.values()), default=0)):
        chosen = [f"{name}=={sorted(pins[name])[place]}" for name in pins if len(pins[name]) > place]
        found += ask(chosen, url)
    audited = [package for package in found if "vulns" in package]
    if len(audited) != sum(map(len, pins.values())):
        print(f"The audit failed: {len(audited)} packages were answered for.", file=sys.stderr)
        return NOT_AUDITED
    vulnerable = [(package, each) for package in audited for each in package["vulns"]]
    for package, each in vulnerable:
        fixed = ", ".join(each["fix_versions"]) or "no version"
        print(f"{package['name']} {package['version']}: {each['id']}, fixed in {fixed}", file=sys.stderr)
    print(f"{len(audited)} versions audited: {len(vulnerable)} known vulnerabilities")
    return VULNERABLE if vulnerable else CLEAN


def ask(pins: list[str], url: str) -> list[dict[str, Any]]:
    """Return pip-audit's report of pinned packages; nothing, and its messages on stderr, if it has none."""
    with tempfile.TemporaryDirectory() as folder:
        requirements, report = Path(folder, "requirements.txt"), Path(folder, "report.json")
        requirements.write_text("\n".join(pins), encoding="utf-8")
        options = [
            "--no-deps",
            "--disable-pip",
            "--progress-spinner=off",
            "--format=json",
            f"--output={report}",
        ]
        service = ["--vulnerability-service=osv", f"--osv-url={url}", f"--requirement={requirements}"]
        command = [sys.executable, "-m", "pip_audit", *service, *options]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        # it exits with 1 for vulnerabilities and for its own failures: only the report tells them apart
        if report.exists():
            return list(json.loads(report.read_text(encoding="utf-8"))["dependencies"])
        print(done.stderr, file=sys.stderr)
        return []


if __name__ == "__main__":
    sys.exit(main())
