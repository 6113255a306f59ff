"""Measures which kinds of behaviour changes name a planted change, and which name a case where nothing changed.

    python -m benchmarks.drafts.behaviour               # about five minutes
    python -m benchmarks.drafts.behaviour --history 1   # with the baseline alone as history

Each case expects a response that is not empty, so that nearly every change passes and only its behaviour can tell. The
agents are those of the two draft benchmarks and the thirty questions of `tests/support/varying_agent.py`, each of which
words every response differently. The planted changes are the forty of the draft benchmark.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.drafts.agent import DraftAgent, serve
from benchmarks.drafts.clinic import CLINIC_QUESTIONS
from benchmarks.drafts.plants import draw_plants
from benchmarks.drafts.questions import QUESTIONS
from benchmarks.drafts.suites import EvalGateSuite, run_command
from tests.support import varying_agent

UNCHANGED_RUNS: Final = 30
KINDS: Final = ("tool", "call_count", "parameter", "response")
FILE: Final = Path("evals/agent.golden.json")


class ShopAgent(DraftAgent):
    """Answers the thirty questions of the tests, each time in one of their wordings, drawn by the seed."""

    def reply(self, request: Any) -> dict[str, Any]:
        """Return the JSON of a response."""
        question = str(request["message"])
        with self._lock:
            self._asked[question] += 1
            chance = random.Random(f"{self._seed}/{question}/{self._asked[question]}")
        calls = [varying_agent.CALLS[question]] if question in varying_agent.CALLS else []
        return {"response": chance.choice(varying_agent.QUESTIONS[question]), "toolCalls": calls}


AGENTS: Final[dict[str, tuple[type[DraftAgent], Sequence[str]]]] = {
    "twenty questions": (DraftAgent, [question.text for question in QUESTIONS]),
    "the clinic": (DraftAgent, [question.text for question in CLINIC_QUESTIONS]),
    "the shop": (ShopAgent, list(varying_agent.QUESTIONS)),
}


class _WeakSuite:
    """A suite whose cases expect a response, with a history of several runs."""

    def __init__(self, folder: Path, url: str, prompts: Sequence[str]) -> None:
        self._folder, self._url = folder, url
        (folder / FILE).parent.mkdir(parents=True)
        cases = [
            {"id": f"gs-{number:03}", "input": {"message": prompt}, "expect": {"responseNonEmpty": True}}
            for number, prompt in enumerate(prompts)
        ]
        (folder / FILE).write_text(json.dumps(cases))
        self._prompts = {case["id"]: prompt for case, prompt in zip(cases, prompts, strict=True)}

    def run(self, results: str, *options: str) -> dict[str, set[str]]:
        """Run the suite, and return the prompts of the cases that each kind of change names."""
        command = [*EvalGateSuite.PROGRAM, "run", "--agent-endpoint", self._url, "--output-dir", results, *options]
        run_command(command, self._folder, (0, 1, 3))
        newest = max((self._folder / results).glob("*/run.json"), key=lambda path: path.stat().st_mtime)
        changes = ((json.loads(newest.read_text())["comparison"] or {}).get("behaviourChanges") or {}).get("changes")
        found: dict[str, set[str]] = {kind: set() for kind in KINDS}
        for change in changes or ():
            found[change["kind"]].add(self._prompts[change["caseId"]])
        return found

    def check(self) -> dict[str, set[str]]:
        """Run it and compare it with the default branch."""
        shutil.rmtree(self._folder / "change", ignore_errors=True)
        return self.run("change", "--baseline", "main")


def measure_agent(name: str, folder: Path, options: argparse.Namespace) -> None:
    """Measure one agent, and print what each kind named."""
    build, prompts = AGENTS[name]
    agent = build(1)
    by_id = {question.id: question.text for question in QUESTIONS}
    with serve(agent) as url:
        suite = _WeakSuite(folder / name.replace(" ", "-"), url, prompts)
        for number in range(options.history):
            agent.become(2 + number)
            suite.run("main", *(("--baseline", "main") if number else ()))
        runs, cases = Counter[str](), Counter[str]()
        for number in range(options.unchanged):
            agent.become(1000 + number)
            for kind, named in suite.check().items():
                runs[kind] += bool(named)
                cases[kind] += len(named)
        print(name, "unchanged", options.unchanged, {kind: (runs[kind], cases[kind]) for kind in KINDS}, flush=True)
        if build is not DraftAgent or prompts[0] != QUESTIONS[0].text:
            return
        by_kind, others = dict[str, Counter[str]](), 0
        for plant in draw_plants():
            agent.become(100 + plant.number, plant)
            named = suite.check()
            own = [kind for kind in KINDS if by_id[plant.question] in named[kind]]
            others += sum(len(prompts - {by_id[plant.question]}) for prompts in named.values())
            by_kind.setdefault(plant.kind, Counter())["+".join(own) or "none"] += 1
        for kind, counts in by_kind.items():
            print("   ", kind, dict(counts), flush=True)
        print("    named in other cases:", others, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the agents."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--history", type=int, default=3, help="runs of the default branch")
    parser.add_argument("--unchanged", type=int, default=UNCHANGED_RUNS, help="runs of the unchanged agent")
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=list(AGENTS))
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.agents:
            measure_agent(name, Path(temporary), options)


if __name__ == "__main__":
    main()
