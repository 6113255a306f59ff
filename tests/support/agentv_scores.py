"""The scores that AgentV itself gives to the cases in `tests/tools/agentv/grading`, and those that we give.

AgentV's are recorded in `scores.json` there. `make tools TOOLS=agentv ARGS="-k grading --update-golden"` records them
anew with the version that tests/tools/agentv/package.json names.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.program import CLEAN

PROJECT: Final = Path(__file__).parents[1] / "tools" / "agentv" / "grading"
RECORD: Final = PROJECT / "scores.json"
DIGITS: Final = 6

DIFFERENCES: Final = {
    "bare-text": "a program that prints a bare text tells nothing of its calls: AgentV takes that for no call",
    "mean-with-an-error": "an attempt that breaks has no score: AgentV counts it as 0 among those that have one",
    "limits-unknown": "a program that prints a bare text tells nothing of its calls: AgentV takes that for no call",
    "silent-and-negated": "the same, turned round: not judged, where AgentV passes it",
    "criterion-that-is-left-out": "a criterion of which the judge says nothing is not met: AgentV leaves it out",
    "workspace-moved-and-edited": "a file that moved and changed is a removed and an added one, and no rename",
    "hook-before-that-fails": "a hook that fails is no failure of the agent: AgentV gives 0",
    "hook-after-that-fails": "what a hook should have prepared for graders is not there: AgentV warns only",
    "workspace-with-generated-files": "what is in node_modules and __pycache__ is no change",
    "broken-grader": "what looks like JSON and is none has not judged: AgentV passes it for its exit code of 0",
    "fields-length-of-a-text": "a text has a length: AgentV knows only that of lists, and passes the rest",
    "talk-that-breaks": "a turn that breaks is an agent error: AgentV gives the turn 0 and goes on",
}
"""Cases to which we give less, or which we do not judge, and why."""
HIGHER: Final = {
    "talk-calls-of-the-whole": "the calls of all turns are known: AgentV hands no calls on to assertions of the whole",
    "talk-cost-of-a-turn": "cost, time and tokens of a turn are known: AgentV hands none of them on, and gives 0",
}
"""Cases to which we give more, because AgentV 4.42.4 scores them without data that it has."""


@dataclass(frozen=True)
class Scored:
    """The score of a case, and that of each of its assertions in their order. None: not judged."""

    score: float | None
    assertions: tuple[float, ...]

    @classmethod
    def of(cls, score: float | None, assertions: list[float]) -> Scored:
        return cls(None if score is None else round(score, DIGITS), tuple(round(one, DIGITS) for one in assertions))


def recorded() -> dict[str, Scored]:
    """What AgentV gave when it was recorded, by case."""
    cases = json.loads(RECORD.read_text())
    return {name: Scored.of(one["score"], one["assertions"]) for name, one in cases.items()}


def record(scores: dict[str, Scored]) -> None:
    """Keep what AgentV gives now."""
    cases = {
        name: {"score": scores[name].score, "assertions": list(scores[name].assertions)} for name in sorted(scores)
    }
    lines = (f" {json.dumps(name)}: {json.dumps(one)}" for name, one in cases.items())
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def checkout(folder: Path) -> Path:
    """The project as a repository of its own."""
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__", "results", "counts", "scores.json"))
    (folder / ".git").mkdir()
    (folder / "counts").mkdir()
    (folder / "counts").chmod(0o777)  # commands of a run as root have another user
    return folder


def given_by_agentv(program: Path, project: Path) -> dict[str, Scored]:
    """The scores that AgentV, installed here, gives to every case of the project."""
    results = project / "results"
    files = sorted(str(path) for path in project.glob("evals/*.eval.yaml"))
    temporary = project / "temporary"
    for case in re.findall(r"id: (talk-[a-z-]+)", "".join(Path(file).read_text() for file in files)):
        # its own name of a turn's output file has a folder that it does not make: every turn would fail
        (temporary / f"agentv-{case}").mkdir(parents=True)
    done = subprocess.run(
        ["node", str(program), "eval", "run", *files, "--max-retries", "0", "--output", str(results)],
        cwd=project,
        env={
            **CLEAN,
            "DO_NOT_TRACK": "1",
            "AGENTV_HOME": str(results / "home"),
            "TMPDIR": str(temporary),
        },  # it keeps workspaces of failing cases
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (results / "index.jsonl").is_file(), done.stdout + done.stderr
    rows = [json.loads(line) for line in (results / "index.jsonl").read_text().splitlines()]
    return {row["test_id"]: Scored.of(row["score"], [one["score"] for one in row.get("scores") or []]) for row in rows}


def given_by_us(results: Path) -> dict[str, Scored]:
    """The scores in the record of a run of ours. A judge that nobody named is no assertion of AgentV's."""
    latest = json.loads((results / "latest.json").read_text())
    run = json.loads((results / latest["path"]).read_text())
    return {case["id"]: _scored(case) for suite in run["suites"] for case in suite["cases"]}


def _scored(case: dict) -> Scored:
    if case["status"] == "error":
        return Scored(None, ())
    return Scored.of(case["score"], [one["score"] for one in case.get("evaluatorResults", [])])
