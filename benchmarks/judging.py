"""What judging other tools' results costs: whole processes, processor seconds and the most memory.

    python -m benchmarks.judging                    # JUnit and promptfoo of 1,000, 10,000 and 100,000 cases
    python -m benchmarks.judging --cases 10000 --format junit

Each file is judged alone, and with a baseline: the result of the same tool in which everything passed, with its ledger
of as many runs as `--history` says. One case in a hundred fails, or none.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from tabulate import tabulate

from tests.support.measured import measured

FAILING = (0, 100)
"""One case of so many fails; none where it is 0."""
ASSERTED = [{"type": "contains", "value": "21"}, {"type": "latency", "threshold": 1000}]


def _fails(number: int, every: int) -> bool:
    return every > 0 and number % every == 0


def junit(cases: int, every: int) -> Iterator[str]:
    """As pytest writes it, of twenty files."""
    yield '<?xml version="1.0"?>\n<testsuites name="pytest tests"><testsuite name="pytest">\n'
    failure = '<failure message="AssertionError: 21 is not in the answer">def test(): assert 21 in answer</failure>'
    for number in range(cases):
        yield f'<testcase classname="tests.evals.test_{number % 20}" name="test_case[{number}]" time="0.012">'
        yield f"{failure if _fails(number, every) else ''}</testcase>\n"
    yield "</testsuite></testsuites>\n"


def _result(number: int, every: int) -> dict[str, object]:
    passed = not _fails(number, every)
    parts = [{"pass": passed, "score": int(passed), "reason": "Assertion passed", "assertion": one} for one in ASSERTED]
    variables = {"q": f"{number}"}
    return {
        "success": passed,
        "failureReason": int(not passed),
        "error": None if passed else "Expected the answer to contain 21",
        "score": int(passed),
        "gradingResult": {"pass": passed, "reason": "All assertions passed", "componentResults": parts},
        "latencyMs": 12,
        "promptIdx": 0,
        "prompt": {"raw": f"What is the weather in {number}?", "label": "weather"},
        "provider": {"id": "echo", "label": ""},
        "response": {"output": f"It is 21 degrees in {number}."},
        "testCase": {"description": f"weather {number}", "vars": variables, "assert": ASSERTED, "metadata": {}},
        "testIdx": number,
        "vars": variables,
    }


def promptfoo(cases: int, every: int) -> Iterator[str]:
    """As `-o out.json` is."""
    yield '{"evalId":"eval-1","results":{"version":3,"prompts":[],"results":['
    for number in range(cases):
        yield f"{',' if number else ''}{json.dumps(_result(number, every))}"
    yield ']},"config":{},"metadata":{"promptfooVersion":"0.121.0"}}'


def promptfoo_lines(cases: int, every: int) -> Iterator[str]:
    """As `-o out.jsonl` is."""
    return (f"{json.dumps(_result(number, every))}\n" for number in range(cases))


FORMATS: dict[str, tuple[str, Callable[[int, int], Iterator[str]]]] = {
    "junit": ("results.xml", junit),
    "promptfoo": ("results.json", promptfoo),
    "promptfoo-lines": ("results.jsonl", promptfoo_lines),
}


def _write(folder: Path, form: str, cases: int, every: int) -> str:
    name, written = FORMATS[form]
    with (folder / name).open("w", encoding="utf-8") as stream:
        stream.writelines(written(cases, every))
    return name


def _past(folder: Path, form: str, cases: int, history: int) -> None:
    """So many runs in which everything passed, each with the one before as its baseline."""
    name = _write(folder, form, cases, 0)
    for _ in range(history):
        command = [
            sys.executable,
            "-m",
            "eval_gate",
            "check",
            name,
            "-q",
            "--output-dir",
            "past",
            "--baseline",
            "latest",
        ]
        subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)


def rows(form: str, cases: int, history: int) -> Iterator[tuple[str, str, str, str]]:
    """Results, of which, processor seconds, the most megabytes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _past(folder, form, cases, history)
        for every in FAILING:
            file = _write(folder, form, cases, every)
            for baseline in ([], ["--baseline", "past"]):
                cost = measured(folder, "check", file, "-q", "--output-dir", "out", *baseline, timeout_s=900)
                if cost.code not in {0, 1}:
                    raise RuntimeError(cost.stderr[-2_000:])
                failing = "1 % failing" if every else "all pass"
                against = f"baseline of {history} runs" if baseline else "alone"
                yield f"{form}, {cases:,}", f"{failing}, {against}", f"{cost.cpu_s:.2f} s", f"{cost.peak_mb:.0f} MB"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--format", choices=FORMATS, nargs="*", default=list(FORMATS))
    parser.add_argument("--history", type=int, default=2, help="runs before, one at least")
    asked = parser.parse_args()
    found = [row for form in asked.format for cases in asked.cases for row in rows(form, cases, max(asked.history, 1))]
    print(tabulate(found, headers=["results", "of which", "processor", "peak"], disable_numparse=True))


if __name__ == "__main__":
    main()
