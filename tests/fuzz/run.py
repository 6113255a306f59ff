"""Coverage-guided fuzzing of every surface: `python -m tests.fuzz.run --seconds 60` (needs `pip install atheris`).

Each surface is fuzzed in a process of its own for so long, from its kept corpus and from what was found before
(`--work`, a folder that is not kept). Prints a table of inputs per surface; what breaks is left in `--work` as
`crash-…` and makes the exit code 1. The same `--seed` begins the same way.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

CORPUS = Path(__file__).with_name("corpus")
ROOT = Path(__file__).parents[2]
MAX_LEN = 8_192


def main() -> int:
    """Fuzz all, or the named ones, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("surfaces", nargs="*")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "eval-gate-fuzz")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        return _fuzz(asked.one, asked)
    names = asked.surfaces or [folder.name for folder in sorted(CORPUS.iterdir()) if folder.is_dir()]
    print(f"{datetime.now(UTC):%Y-%m-%d}, seed {asked.seed}, {asked.seconds} s each\n", flush=True)
    print("| surface | inputs | places reached | broke |\n|:--|--:|--:|--:|", flush=True)
    broke = 0
    for name in names:
        work = (asked.work / name).absolute()
        work.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tests.fuzz.run", "--one", name, "--seconds", str(asked.seconds)]
        command += ["--seed", str(asked.seed), "--work", str(work)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
        (work / "log.txt").write_text(done.stdout + done.stderr)
        runs = re.findall(r"(?m)^(?:#|Done )(\d+)", done.stderr) or ["0"]
        reached = re.findall(r"ft: (\d+)", done.stderr) or ["0"]
        broke += done.returncode != 0
        print(f"| {name} | {int(runs[-1]):,} | {int(reached[-1]):,} | {int(done.returncode != 0)} |", flush=True)
    return int(broke > 0)


def _fuzz(name: str, asked: argparse.Namespace) -> int:
    import atheris

    with atheris.instrument_imports(include=["eval_gate"]):
        from tests.fuzz import surfaces
    folder = tempfile.mkdtemp()
    surfaces.in_folder(Path(folder))
    found = asked.work / "found"
    found.mkdir(exist_ok=True)
    options = [f"-max_total_time={asked.seconds}", f"-seed={asked.seed}", f"-max_len={MAX_LEN}", "-timeout=20"]
    options += ["-rss_limit_mb=2048", f"-artifact_prefix={asked.work}/", "-verbosity=1"]
    atheris.Setup([sys.argv[0], *options, str(found), str(CORPUS / name)], surfaces.SURFACES[name])
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
