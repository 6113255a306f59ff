"""The verdict over a real model that answers by chance: how often it is red for nothing, and finds a worse prompt.

    python benchmarks/verdict/real_model.py http://127.0.0.1:8080/v1 --model smollm2 --to FOLDER

Whatever speaks OpenAI's API is asked, with a temperature; a small model on this machine does. The branch is run so
often, then as many pull requests that change nothing, then some whose prompt is worse. Every run is `eval-gate run` in
a process of its own, as a person would start it: the branch's runs into one folder, each compared with the one before,
the pull requests' into another. What is there already is not run again, so an interrupted benchmark goes on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

PROMPT = "You are a helpful assistant. Answer the question in one short sentence."
WORSE = "You are a pirate who loves the sea. Tell a short tale of your ship, and never answer questions."
TEMPERATURE = 0.3
QUESTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "What is the capital of France?": ("Paris",),
        "What is the capital of Italy?": ("Rome",),
        "What is the capital of Japan?": ("Tokyo",),
        "What is the capital of Germany?": ("Berlin",),
        "What is the capital of Spain?": ("Madrid",),
        "What is the capital of Egypt?": ("Cairo",),
        "What color is the sky on a clear day?": ("blue",),
        "What color is grass?": ("green",),
        "How many days are in a week?": ("seven", "7"),
        "How many months are in a year?": ("twelve", "12"),
        "How many legs does a dog have?": ("four", "4"),
        "How many legs does a spider have?": ("eight", "8"),
        "What is two plus two?": ("four", "4"),
        "What do bees make?": ("honey",),
        "What do cows eat?": ("grass", "hay", "plants"),
        "Which planet do we live on?": ("Earth",),
        "What is the opposite of hot?": ("cold", "cool"),
        "What is the opposite of up?": ("down",),
        "What is frozen water called?": ("ice",),
        "Who wrote Romeo and Juliet?": ("Shakespeare",),
        "What language is spoken in Brazil?": ("Portuguese",),
        "What gas do plants breathe in?": ("carbon", "CO2"),
        "What is the largest ocean?": ("Pacific",),
        "In which country are the pyramids of Giza?": ("Egypt",),
    }
)
"""Each with what an answer has to hold one of."""


@dataclass(frozen=True)
class Ended:
    """What became of one run: its exit code, its pass rate, cases run again, and its seconds."""

    name: str
    code: int
    passed: int
    regressions: tuple[str, ...]
    reruns: int
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", help="where the model is asked, as in http://127.0.0.1:8080/v1")
    parser.add_argument("--model", default="smollm2", help="its name there")
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="where everything is kept")
    parser.add_argument("--history", type=int, default=10, help="runs of the branch")
    parser.add_argument("--unchanged", type=int, default=30, help="pull requests that change nothing")
    parser.add_argument("--worse", type=int, default=10, help="pull requests whose prompt is worse")
    given = parser.parse_args(arguments)
    folder: Path = given.to
    _write(folder, given.address, given.model)
    branch = [_run(folder, "good", "main", number) for number in range(given.history)]
    same = [_run(folder, "good", "same", number) for number in range(given.unchanged)]
    worse = [_run(folder, "worse", "worse", number) for number in range(given.worse)]
    for what, runs in (("main", branch), ("unchanged", same), ("a worse prompt", worse)):
        _say(what, runs)
    return 0


def _write(folder: Path, address: str, model: str) -> None:
    """Write the evals, and a configuration of the model with each of the two prompts.

    One configuration has the prompt as it is, the other one the worse prompt.
    """
    (folder / "evals").mkdir(parents=True, exist_ok=True)
    cases = [
        {"id": f"gs-{at:02}", "input": {"message": question}, "expect": {"responseContainsAny": [list(words)]}}
        for at, (question, words) in enumerate(QUESTIONS.items())
    ]
    (folder / "evals" / "facts.golden.json").write_text(json.dumps(cases, indent=1))
    for name, prompt in (("good", PROMPT), ("worse", WORSE)):
        (folder / f"{name}.md").write_text(prompt)
        target = {
            "name": "model",
            "provider": "openai-compatible",
            "base_url": address,
            "model": model,
            "system_prompt_path": f"{name}.md",
            "temperature": TEMPERATURE,
            "max_output_tokens": 48,
        }
        (folder / f"{name}.json").write_text(json.dumps({"targets": [target], "target": "model"}))


def _run(folder: Path, prompt: str, kind: str, number: int) -> Ended:
    """One run of all cases, as a person starts it; or what is known of it, where it was made before."""
    name = f"{kind}-{number:03}"
    known_as = folder / f"{name}.json"
    begun = time.monotonic()
    if not known_as.is_file():
        runs = folder / kind
        before = set(runs.glob("*"))
        command = [sys.executable, "-m", "runner", "run", "--config", f"{prompt}.json", "--output-dir", kind]
        command += ["--reruns", "6", "--max-errors", "1000"]
        if kind == "main":  # what is on the branch is there, whatever its gate says
            command += ["--fail-on", "never", *(["--baseline", "latest"] if number else [])]
        else:
            command += ["--fail-on", "regressions", "--baseline", "main", "--history", "main"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=_environment())
        made = [one for one in runs.glob("*") if one not in before and (one / "run.json").is_file()]
        if len(made) != 1:
            raise SystemExit(f"{name}: no run was made (exit code {done.returncode})\n{done.stderr}")
        result = json.loads((made[0] / "run.json").read_text())
        cases = [case for suite in result["suites"] for case in suite["cases"]]
        changes = (result.get("comparison") or {}).get("changes", [])
        known = {
            "code": done.returncode,
            "passed": sum(case["passed"] for case in cases),
            "regressions": [one["caseId"] for one in changes if one["change"] == "regression"],
            "reruns": sum(case.get("reruns", 0) for case in cases),
            "seconds": round(time.monotonic() - begun, 1),
        }
        known_as.write_text(json.dumps(known))
    known = json.loads(known_as.read_text())
    ended = Ended(name, known["code"], known["passed"], tuple(known["regressions"]), known["reruns"], known["seconds"])
    print(
        f"{name}: exit {ended.code}, {ended.passed} of {len(QUESTIONS)} pass, {ended.reruns} re-runs,"
        f" {ended.seconds} s {' '.join(ended.regressions)}",
        flush=True,
    )
    return ended


def _say(what: str, runs: Sequence[Ended]) -> None:
    codes = {code: sum(run.code == code for run in runs) for code in sorted({run.code for run in runs})}
    passed = sum(run.passed for run in runs) / max(len(runs), 1) / len(QUESTIONS)
    executions = 1 + sum(run.reruns for run in runs) / max(len(runs), 1) / len(QUESTIONS)
    print(f"{what}: {len(runs)} runs, exit codes {codes}, {passed:.1%} pass, {executions:.2f} executions a case")


def _environment() -> dict[str, str]:
    """Return the environment of this process, with the program from this checkout."""
    import os

    root = Path(__file__).resolve().parents[2]
    return os.environ | {"PYTHONPATH": str(root)}


if __name__ == "__main__":
    raise SystemExit(main())
