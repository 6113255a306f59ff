"""Measures what drafted suites are worth: the planted changes they find, and how often they are red for nothing.

    python -m benchmarks.drafts.measure                                        # Eval Gate: about five minutes
    python -m benchmarks.drafts.measure --suites every every-agentv clinic     # every possible change, 20 in a run
    python -m benchmarks.drafts.measure --suites weak-response weak-tools
    python -m benchmarks.drafts.measure --suites capture generate --evalview PROGRAM
    python -m benchmarks.drafts.measure --table                                # only writes README.md from results.json

Every suite is drafted from an agent that varies 10 % of its words in each response, and so are its baseline, the forty
changed agents and the unchanged one. Seeds are fixed; `--seed` draws all of them anew. What was measured is written to
`results.json` beside this file, suite by suite, and the table of `README.md` is made of it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.drafts.agent import DraftAgent, serve
from benchmarks.drafts.clinic import CLINIC_QUESTIONS
from benchmarks.drafts.plants import COUNTS, Plant, draw_plants, list_all_changes
from benchmarks.drafts.questions import QUESTIONS
from benchmarks.drafts.suites import CheckOutcome, DraftedSuite, EvalGateSuite, EvalViewSuite
from benchmarks.drafts.table import write_readme

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "results.json"
UNCHANGED_RUNS: Final = 30
EVERY: Final = {
    "every": (QUESTIONS, "tool-forge"),
    "every-agentv": (QUESTIONS, "agentv"),
    "clinic": (CLINIC_QUESTIONS, "tool-forge"),
}
"""Suites that are tried with every possible change: the questions of their agents, and their formats."""
SUITES: Final = ("drafted", "agentv", *EVERY, "weak-response", "weak-tools", "capture", "generate")


def measure_suite(name: str, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Draft one suite, run it against every changed agent and the unchanged one, and return what it said."""
    seed = options.seed * 100_000
    agent = DraftAgent(seed + 1)
    with serve(agent) as url:
        suite = _draft(name, folder / name, url, options)
        agent.become(seed + 2)
        baseline = suite.record_baseline()
        plants = {}
        for plant in draw_plants():
            if options.plants and plant.number not in options.plants:
                continue
            agent.become(seed + 100 + plant.number, plant)
            outcome = suite.check()
            plants[str(plant.number)] = _describe(outcome, plant.question)
            print(name, plant.number, plant.kind, plant.question, _describe(outcome, plant.question), flush=True)
        unchanged = _measure_unchanged(name, suite, agent, options)
    covered = sorted(set(suite.cases.values()) & {question.id for question in QUESTIONS})
    return {
        "cases": len(suite.cases),
        "covered": covered,
        "baselineFailures": list(baseline.failed),
        "plants": plants,
        "unchanged": unchanged,
    }


def _measure_unchanged(
    name: str, suite: DraftedSuite, agent: DraftAgent, options: argparse.Namespace
) -> list[dict[str, Any]]:
    runs = []
    for number in range(options.unchanged):
        agent.become(options.seed * 100_000 + 1000 + number)
        runs.append(_describe_unchanged(suite.check()))
        print(name, "unchanged", number + 1, runs[-1], flush=True)
    return runs


def measure_every_change(name: str, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Draft a suite of one of the two agents, and return which of all possible changes it finds.

    A run checks one change of each question at once, so that a change counts as found if its case is named.
    """
    seed = options.seed * 100_000
    agent = DraftAgent(seed + 1)
    waiting: dict[str, list[Plant]] = defaultdict(list)
    questions, file_format = EVERY[name]
    for plant in list_all_changes(questions):
        waiting[plant.question].append(plant)
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    missed = []
    with serve(agent) as url:
        suite = EvalGateSuite(folder / name, url, questions, file_format)
        agent.become(seed + 2)
        suite.record_baseline()
        for number in range(max(map(len, waiting.values()))):
            plants = [changes[number] for changes in waiting.values() if number < len(changes)]
            agent.become(seed + 2000 + number, *plants)
            outcome = suite.check()
            for plant in plants:
                total[plant.kind] += 1
                if plant.question in outcome.failed:
                    found[plant.kind] += 1
                else:
                    described = {"kind": plant.kind, "question": plant.question, "detail": plant.detail}
                    missed.append(described | {"noticed": plant.question in outcome.noticed})
            print(name, number + 1, len(plants), len(missed), flush=True)
        unchanged = _measure_unchanged(name, suite, agent, options)
    kinds = {kind: [found[kind], total[kind]] for kind in COUNTS}
    return {"cases": len(suite.cases), "kinds": kinds, "missed": missed, "unchanged": unchanged}


def _draft(name: str, folder: Path, url: str, options: argparse.Namespace) -> DraftedSuite:
    if name in {"capture", "generate"}:
        return EvalViewSuite(options.evalview.resolve(), folder, url, name)
    suite = EvalGateSuite(folder, url, file_format="agentv" if name == "agentv" else "tool-forge")
    keep = WEAK.get(name)
    if keep:
        suite.keep_assertions(keep)
    return suite


def _keep_response(expect: dict[str, Any]) -> dict[str, Any]:
    del expect
    return {"responseNonEmpty": True}


def _keep_tools(expect: dict[str, Any]) -> dict[str, Any]:
    """Keep whether a tool was called, but neither how often nor with what."""
    tools = expect.get("toolsCalled") or expect.get("toolsCalledAnyOrder") or ["__none__"]
    return {"toolsAcceptable": [sorted(set(tools))]}


WEAK: Final[dict[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "weak-response": _keep_response,
    "weak-tools": _keep_tools,
}
"""Suites that are too weak to fail: what is left of every case."""


def _describe(outcome: CheckOutcome, question: str) -> dict[str, Any]:
    """Return an outcome as JSON, as it concerns the question that was changed."""
    return {
        "exit": outcome.exit_code,
        "failed": question in outcome.failed,
        "noticed": question in outcome.noticed,
        "unclear": question in outcome.unclear,
        "reason": outcome.reasons.get(question, ""),
        "others": [other for other in outcome.failed if other != question],
    }


def _describe_unchanged(outcome: CheckOutcome) -> dict[str, Any]:
    return {
        "exit": outcome.exit_code,
        "failed": list(outcome.failed),
        "noticed": list(outcome.noticed),
        "unclear": list(outcome.unclear),
        "reasons": sorted(set(outcome.reasons.values())),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the chosen suites, and write the results and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", nargs="+", choices=SUITES, default=["drafted"])
    parser.add_argument("--evalview", type=Path, default=Path("evalview"), help="program of EvalView")
    parser.add_argument("--seed", type=int, default=1, help="seed of all wordings")
    parser.add_argument("--plants", type=int, nargs="*", help="numbers of planted changes (default: all)")
    parser.add_argument("--unchanged", type=int, default=UNCHANGED_RUNS, help="runs of the unchanged agent")
    parser.add_argument("--folder", type=Path, help="where the suites are kept (default: nowhere)")
    parser.add_argument("--to", type=Path, default=RESULTS, help="file of results to add to")
    parser.add_argument("--table", action="store_true", help="measure nothing, only write README.md")
    options = parser.parse_args(arguments)
    if not options.table:
        with tempfile.TemporaryDirectory() as temporary:
            folder = options.folder or Path(temporary)
            for name in options.suites:
                measured = (
                    measure_every_change(name, options, folder)
                    if name in EVERY
                    else measure_suite(name, options, folder)
                )
                results = json.loads(options.to.read_text()) if options.to.exists() else {}
                results[name] = measured
                options.to.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    if options.to == RESULTS:
        write_readme(json.loads(RESULTS.read_text()))


if __name__ == "__main__":
    main()
