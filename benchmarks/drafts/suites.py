"""Suites that tools draft from the benchmark's agent, and what they say of it when it has changed.

Every suite is drafted, accepted and run by the command line of its tool, in a folder of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from benchmarks.drafts.agent import JUDGE_PATH
from benchmarks.drafts.questions import QUESTIONS, Question
from eval_gate.struct import FrozenStruct

ROOT: Final = Path(__file__).resolve().parents[2]
TIMEOUT_S: Final = 300


class CheckOutcome(FrozenStruct):
    """What one run of a drafted suite said."""

    exit_code: int
    failed: tuple[str, ...]
    """Ids of the questions whose cases the run names as the reason of its exit code."""
    noticed: tuple[str, ...] = ()
    """Ids of the questions that the run reports as changed without failing."""
    unclear: tuple[str, ...] = ()
    """Ids of the questions whose cases failed once and were cleared by further executions."""
    reasons: Mapping[str, str] = {}
    """Why a case failed or was noticed, by question."""


class DraftedSuite(Protocol):
    """A suite that a tool drafted from the agent."""

    cases: Mapping[str, str]
    """Id of the question, by the id of the case; known when the baseline is there."""

    def record_baseline(self) -> CheckOutcome:
        """Record what later checks compare with."""

    def check(self) -> CheckOutcome:
        """Run the suite against the agent as it is now, and compare it with the baseline."""


class CommandError(Exception):
    """A command of a tool ended differently than it should."""


def run_command(command: list[str], folder: Path, allowed: tuple[int, ...], text: str = "") -> str:
    """Run a command to its end, and return its standard output. Raises CommandError for other exit codes."""
    ours = ("EVAL_GATE_", "GITHUB_", "OPENAI_", "ANTHROPIC_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment |= {"HOME": str(folder), "CI": "1", "NO_COLOR": "1", "COLUMNS": "200"}
    done = subprocess.run(
        command, cwd=folder, env=environment, input=text, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode not in allowed:
        raise CommandError(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return f"{done.returncode}\n{done.stdout}"


class EvalGateSuite:
    """A suite that `eval-gate draft` writes and `eval-gate run` checks."""

    FILES: Final = {"tool-forge": Path("evals/agent.golden.json"), "agentv": Path("evals/agent.eval.yaml")}
    """The eval file of each format."""
    PROGRAM: Final = [sys.executable, "-I", "-m", "eval_gate"]

    def __init__(
        self, folder: Path, url: str, questions: Sequence[Question] = QUESTIONS, file_format: str = "tool-forge"
    ) -> None:
        """Draft a suite from the agent at this address, and accept all of it."""
        self.cases: Mapping[str, str] = {}
        self._folder, self._questions = folder, questions
        self._file = self.FILES[file_format]
        folder.mkdir(parents=True)
        (folder / "questions.txt").write_text("".join(f"{question.text}\n" for question in questions))
        judge = {"name": "judge", "provider": "http", "url": url.removesuffix("/chat") + JUDGE_PATH}
        (folder / "targets.yaml").write_text(json.dumps({"targets": [judge]}))
        self._asking = ("--agent-endpoint", url, "--judge", "judge")
        self._run("draft", "questions.txt", "-o", str(self._file), "--format", file_format, *self._asking)
        self._run("draft", "--accept", "all", str(self._file))

    def keep_assertions(self, keep: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Replace the expectations of every case by these, in tool-forge's format."""
        path = self._folder / self._file
        cases = json.loads(path.read_text())
        for case in cases:
            case["expect"] = keep(case["expect"])
            case.pop("rubric", None)
        path.write_text(json.dumps(cases, indent=2))

    def record_baseline(self) -> CheckOutcome:
        """Run the suite once more on what is the default branch; its runs are the baseline and its history."""
        return self._check("main", ())

    def check(self) -> CheckOutcome:
        """Run the suite and compare it with the baseline."""
        shutil.rmtree(self._folder / "change", ignore_errors=True)
        return self._check("change", ("--baseline", "main"))

    def _check(self, results: str, options: tuple[str, ...]) -> CheckOutcome:
        code, _ = self._run("run", *self._asking, "--output-dir", results, *options, allowed=(0, 1, 3))
        newest = max((self._folder / results).glob("*/run.json"), key=lambda path: path.stat().st_mtime)
        return self._read_outcome(code, json.loads(newest.read_text()))

    def _read_outcome(self, code: int, result: dict[str, Any]) -> CheckOutcome:
        self.cases = self.cases or self._read_cases(result)
        changes = (result["comparison"] or {}).get("changes") or []
        kinds = {change["caseId"]: change["change"] for change in changes}
        results = {case["id"]: case for suite in result["suites"] for case in suite["cases"]}
        red = {"regression", "suspected_regression"}
        failed = [case_id for case_id, kind in kinds.items() if kind in red]
        if not changes:  # a run without a baseline, such as the baseline itself
            failed = [case_id for case_id, case in results.items() if case["status"] != "passed"]
        behaviour = find_behaviour_changes(result)
        reasons = {self.cases[case_id]: str(results[case_id]["error"]) for case_id in failed}
        unclear = [case_id for case_id, kind in kinds.items() if kind == "inconclusive"]
        return CheckOutcome(
            code,
            tuple(self.cases[case_id] for case_id in failed),
            tuple(self.cases[case_id] for case_id in behaviour),
            tuple(self.cases[case_id] for case_id in unclear),
            {self.cases[case_id]: text for case_id, text in behaviour.items()} | reasons,
        )

    def _read_cases(self, result: dict[str, Any]) -> dict[str, str]:
        by_text = {question.text: question.id for question in self._questions}
        cases = [case for suite in result["suites"] for case in suite["cases"]]
        return {case["id"]: by_text[case["text"]["prompt"]] for case in cases}

    def _run(self, *arguments: str, allowed: tuple[int, ...] = (0,)) -> tuple[int, str]:
        code, _, text = run_command([*self.PROGRAM, *arguments], self._folder, allowed).partition("\n")
        return int(code), text


def find_behaviour_changes(result: dict[str, Any]) -> dict[str, str]:
    """Return what a run result says of cases that pass and behave differently, by id of the case."""
    found: dict[str, str] = {}
    for change in ((result["comparison"] or {}).get("behaviourChanges") or {}).get("changes") or ():
        parts = [str(change[key]) for key in ("kind", "tool", "parameter", "difference") if change.get(key)]
        text = f"{' '.join(parts)}: {change.get('baseline')} → {change.get('current')}"
        found[change["caseId"]] = "; ".join(filter(None, (found.get(change["caseId"]), text)))
    return found


class EvalViewSuite:
    """A suite of EvalView: of its recording proxy (`capture`) or of its prober (`generate`)."""

    def __init__(self, program: Path, folder: Path, url: str, way: str) -> None:
        """Let EvalView draft a suite from the agent at this address, and take its snapshot as the baseline."""
        self._program, self._folder = str(program), folder
        (folder / ".evalview").mkdir(parents=True)
        config = {"adapter": "http", "endpoint": url, "allow_private_urls": True}
        (folder / ".evalview" / "config.yaml").write_text(json.dumps(config))
        (folder / "questions.txt").write_text("".join(f"{question.text}\n" for question in QUESTIONS))
        run_command([self._program, "telemetry", "off"], folder, (0,))
        self._tests = folder / "tests" / way
        if way == "capture":
            self._capture(url)
        else:
            self._generate(url)
        self.cases = self._read_cases()

    def record_baseline(self) -> CheckOutcome:
        """Take the snapshot that later checks compare with."""
        tests = str(self._tests.relative_to(self._folder))
        command = [self._program, "snapshot", "--path", tests, "--no-judge", "--json"]
        saved = json.loads(run_command(command, self._folder, (0,)).partition("\n")[2])
        names = {test["name"] for test in saved["tests"] if test["saved"]}
        self._without_baseline = self.cases.keys() - names
        return CheckOutcome(0, tuple(self.cases[name] for name in self._without_baseline))

    def check(self) -> CheckOutcome:
        """Run `evalview check` in a copy of the folder, so that one check knows nothing of another."""
        copy = self._folder.with_name(f"{self._folder.name}-check")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self._folder, copy)
        command = [self._program, "check", str(self._tests.relative_to(self._folder)), "--no-judge", "--json"]
        code, _, text = run_command(command, copy, (0, 1)).partition("\n")
        diffs = {diff["test_name"]: diff for diff in json.loads(text)["diffs"]}
        if missing := self.cases.keys() - diffs.keys() - self._without_baseline:
            raise CommandError(f"evalview check says nothing of {sorted(missing)}\n{text}")
        statuses = {self.cases[name]: diff["status"] for name, diff in diffs.items()}
        return CheckOutcome(
            int(code),
            tuple(question for question, status in statuses.items() if status == "regression"),
            tuple(question for question, status in statuses.items() if status not in {"regression", "passed"}),
            reasons={question: status for question, status in statuses.items() if status != "passed"},
        )

    def _generate(self, url: str) -> None:
        command = [self._program, "generate", "--agent", url, "--seed", "questions.txt", "--budget", "100"]
        command += ["--no-synthesize", "--allow-private-urls", "--max-multi-turn", "0", "--out", str(self._tests)]
        run_command(command, self._folder, (0,), "y\n" * 10)

    def _capture(self, url: str) -> None:
        """Send every question once through the recording proxy."""
        port = 18_433
        command = [self._program, "capture", "--agent", url, "--port", str(port), "--output-dir", str(self._tests)]
        environment = os.environ | {"HOME": str(self._folder), "CI": "1", "NO_COLOR": "1"}
        proxy = subprocess.Popen(
            command, cwd=self._folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            self._wait_for(f"http://127.0.0.1:{port}/")
            for question in QUESTIONS:
                body = json.dumps({"query": question.text}).encode()
                headers = {"Content-Type": "application/json"}
                request = urllib.request.Request(f"http://127.0.0.1:{port}/", body, headers)
                urllib.request.urlopen(request).read()
        finally:
            proxy.send_signal(signal.SIGTERM)  # it treats it as Ctrl+C, also in the background
            output, _ = proxy.communicate("y\n" * 10, timeout=TIMEOUT_S)
        if proxy.returncode:
            raise CommandError(f"evalview capture ended with {proxy.returncode}\n{output}")

    @staticmethod
    def _wait_for(url: str) -> None:
        for _ in range(200):
            try:
                urllib.request.urlopen(url).read()
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise CommandError(f"nothing listens at {url}")

    def _read_cases(self) -> dict[str, str]:
        import yaml

        by_text = {question.text: question.id for question in QUESTIONS}
        tests = [yaml.safe_load(path.read_text()) for path in sorted(self._tests.glob("*.yaml"))]
        return {test["name"]: by_text.get(test["input"]["query"], test["input"]["query"]) for test in tests}
