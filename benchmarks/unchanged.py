"""Whether judging still says and writes what another version does, byte for byte: for changes that only make it faster.

    git worktree add ../before main
    python -m benchmarks.unchanged ../before                         # 300 and 25,000 cases of each format
    python -m benchmarks.unchanged ../before --cases 100000
    python -m benchmarks.unchanged ../before --files out.json        # results that are there already

Both versions judge the same files alone and against the same earlier runs, with every report. Ids of runs and times of
day are all that may differ. Exits with 1 where anything else does, and names it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from judging import FORMATS

HERE = Path(__file__).parents[1]
VARIES = re.compile(
    rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{8}\b(?=[^0-9a-f-])|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    rb"|\d{4}-\d\d-\d\d \d\d:\d\d(?= UTC)"
)
REPORTS = [
    *("--report", "md=out/said.md", "--report", "html=out/page.html", "--report", "junit=out/said.xml"),
    *("--report", "json=out/said.json", "--report", "console=out/said.txt", "--export", "agentv=out/said.jsonl"),
]
WAYS: Mapping[str, list[str]] = {
    "alone": [],
    "alone, all said": ["-v"],
    "with a baseline": ["--baseline", "past", "--history", "past"],
    "with a baseline, by the plain rule": ["--baseline", "past", "--reruns", "0"],
    "with a baseline, some of it kept": ["--baseline", "past", "--keep-responses", "failing", "--min-pass-rate", "0.5"],
}


def varied(cases: int, every: int) -> Iterator[str]:
    """Our own lines with all that a row may have: scores, trials, calls, errors, long answers and odd signs."""
    for number in range(cases):
        fails = every > 0 and number % every == 0
        row: dict[str, object] = {"suite": f"s{number % 3}", "id": f"case {number} é\u2028</script>"}
        odd = number % 7 == 0
        row["status"] = "failed" if fails else ("passed", "passed", "skipped", "error")[odd * (number % 53 % 4)]
        row |= {"input": f"What about {number % 50}?", "output": f"It is {number}. " * (1 + 900 * (number % 97 == 0))}
        if number % 5 == 0:
            row |= {"duration_ms": number % 31 + 0.5, "cost_usd": 0.001, "input_tokens": 5, "output_tokens": number % 9}
        if number % 7 == 0:
            row["tool_calls"] = [{"name": "look", "arguments": {"n": number}, "result": ["x" * (number % 40)]}]
        if number % 11 == 0:
            said = {"name": "polite", "score": number % 10 / 10, "passed": not fails, "reason": f"r{number % 4}"}
            row["checks"] = [said]
        if number % 13 == 0:
            row |= {"file": "a.py", "line": number % 200 + 1, "tags": ["t", f"u{number % 3}"]}
        if row["status"] == "error":
            row["error"] = "ECONNREFUSED" if number % 2 else "Traceback"
        yield json.dumps(row | {"trial": 1}) + "\n"
        if number % 19 == 0:
            for trial in (2, 3):
                yield json.dumps(row | {"trial": trial, "status": "passed" if trial == 2 else row["status"]}) + "\n"


def indented(cases: int, every: int) -> Iterator[str]:
    """Yield results as promptfoo itself writes them: the same JSON, but indented."""
    yield json.dumps(json.loads("".join(FORMATS["promptfoo"][1](cases, every))), indent=2)


MADE = {**FORMATS, "promptfoo, indented": ("results.json", indented), "jsonl": ("results.jsonl", varied)}


def judged(version: Path, folder: Path, *arguments: str) -> tuple[bytes, bytes, int]:
    """Gate external results with the checkout `version` of the program.

    Return standard output, standard error and the exit code.
    """
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("EVAL_GATE_", "GITHUB_", "CI"))}
    done = subprocess.run(
        [sys.executable, "-m", "eval_gate", "check", *arguments],
        cwd=folder,
        env=clean | {"PYTHONPATH": str(version.absolute() / "runner")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return done.stdout, done.stderr, done.returncode


def told(version: Path, folder: Path, file: str, way: str) -> dict[str, bytes]:
    """Everything that this version says and writes, by what it is; what may differ is masked."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    said, warned, code = judged(version, folder, file, "--output-dir", "out/runs", *WAYS[way], *REPORTS)
    found = {"stdout": said, "stderr": warned, "exit code": str(code).encode()}
    written = [path for path in sorted((folder / "out").rglob("*")) if path.is_file()]
    found |= {path.name: path.read_bytes() for path in written}
    return {name: VARIES.sub(b"~", text) for name, text in found.items()}


def differences(other: Path, folder: Path, file: str, earlier: str) -> Iterator[str]:
    """Describe what this checkout prints or writes differently from the checkout `other`."""
    for _ in range(3):
        judged(other, folder, earlier, "--output-dir", "past", "--baseline", "latest", "-q")
    for way in WAYS:
        before, now = (told(version, folder, file, way) for version in (other, HERE))
        if len(before) <= 3:
            yield f"{way}: nothing was judged: {before['stderr'].decode()[:500]}"
        for name in sorted(before.keys() | now.keys()):
            one, two = before.get(name), now.get(name)
            if one != two:
                yield f"{way}: {name} {_where(one, two)}"


def _where(one: bytes | None, other: bytes | None) -> str:
    if one is None or other is None:
        return "is only written by one of them"
    at = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    cut = slice(max(at - 80, 0), at + 80)
    return f"differs at byte {at:,}:\n    before: {one[cut]!r}\n    now:    {other[cut]!r}"


def main() -> None:
    """Compare and say what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="a checkout of the other version")
    parser.add_argument("--cases", type=int, nargs="*", default=[300, 25_000])
    parser.add_argument("--format", choices=MADE, nargs="*", default=list(MADE))
    parser.add_argument("--files", type=Path, nargs="*", default=[])
    asked = parser.parse_args()
    differ = False
    with tempfile.TemporaryDirectory() as name:
        for form, cases in [] if asked.files else [(form, cases) for form in asked.format for cases in asked.cases]:
            folder = Path(name) / f"{form} {cases}"
            (folder / "then").mkdir(parents=True)
            file, lines = MADE[form]
            (folder / "then" / file).write_text("".join(lines(cases, 150)), encoding="utf-8")
            (folder / file).write_text("".join(lines(cases, 100)), encoding="utf-8")
            differ |= _say(f"{form}, {cases:,} cases", differences(asked.other, folder, file, f"then/{file}"))
            shutil.rmtree(folder)
        for path in asked.files:
            folder = Path(name) / "file"
            folder.mkdir()
            shutil.copy(path, folder)
            differ |= _say(str(path), differences(asked.other, folder, path.name, path.name))
            shutil.rmtree(folder)
    sys.exit(differ)


def _say(what: str, found: Iterator[str]) -> bool:
    lines = list(found)
    print(f"{what}: {'the same' if not lines else ''}", *lines, sep="\n  " if lines else "", flush=True)
    return bool(lines)


if __name__ == "__main__":
    main()
