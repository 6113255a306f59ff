"""Factories for results: a case is its id and a word, the rest has defaults."""

from __future__ import annotations

from collections.abc import Mapping

from eval_gate.model.case import Location, Tier
from eval_gate.model.execution import CaseDetails, Status, Trial
from eval_gate.model.result import CaseResult, GitFacts, RunResult, SuiteResult, ToolFacts, ToolIdentity
from eval_gate.model.run_totals import summarize_cases
from eval_gate.model.setup import TargetIdentity

RUN_ID = "11111111-2222-4333-8444-555555555555"
BASELINE_ID = "99999999-8888-4777-8666-555555555555"
FILE = "evals/weather.golden.json"


def make_result(case_id: str, status: str = "passed", **fields) -> CaseResult:
    """A case that ended so. `trials="PPF"` gives it three of them."""
    trials = fields.pop("trials", None)
    found = Status(status)
    error = {"failed": "responseContains: expected 'Tokyo' in response but not found", "error": "agent error: HTTP 500"}
    words = {"P": Status.PASSED, "F": Status.FAILED, "E": Status.ERROR}
    answer = "It is 18 degrees in Tokyo." if found is Status.PASSED else "It is 18 degrees there."
    values = {
        "description": f"about {case_id}",
        "passed": found is Status.PASSED,
        "status": found,
        "score": 1.0 if found is Status.PASSED else 0.0,
        "duration_ms": 120.0 if found.is_scored else 0.0,
        "assertions_run": 3 if found.is_scored else 0,
        "error": error.get(status),
        "details": CaseDetails(tools_called=("get_weather",), response_length=len(answer), response=answer),
        "trials": tuple(
            Trial(status=words[letter], score=float(letter == "P"), duration_ms=40.0) for letter in trials or ""
        ),
        "flaky": bool(trials) and "P" in trials and "F" in trials,
        "location": Location(file=FILE, line=12),
        "fingerprint": f"fingerprint of {case_id}",
    }
    return CaseResult(id=case_id, **(values | fields))


def make_suite_result(cases: Mapping[str, str] | list[CaseResult], **fields) -> SuiteResult:
    """A suite of these cases."""
    made = [make_result(*item) for item in cases.items()] if isinstance(cases, Mapping) else list(cases)
    values = {
        "run_id": RUN_ID,
        "timestamp": "2026-11-21T10:00:00Z",
        "tier": Tier.GOLDEN,
        "tool_name": "get_weather",
        "agent_endpoint": "http://localhost:3000/chat",
        "metadata": ToolFacts(eval_file_hash="0123456789ab"),
        "eval_file": FILE,
    }
    return SuiteResult(cases=tuple(made), summary=summarize_cases(made), **(values | fields))


def make_run(*suites: SuiteResult | Mapping[str, str], **fields) -> RunResult:
    """A finished run of these suites."""
    made = tuple(suite if isinstance(suite, SuiteResult) else make_suite_result(suite) for suite in suites)
    cases = [case for suite in made for case in suite.cases]
    values = {
        "run_id": RUN_ID,
        "timestamp": "2026-11-21T10:00:00Z",
        "complete": all(case.status is not Status.NOT_RUN for case in cases),
        "tool": ToolIdentity(version="1.0.0"),
        "target": TargetIdentity(name="agent", provider="http", identity="http://localhost:3000/chat"),
        "git": GitFacts(sha="9e8d7c6b5a4f", ref="refs/heads/topic"),
    }
    return RunResult(suites=made, summary=summarize_cases(cases, 1500.0), **(values | fields))


def make_baseline_run(*suites: SuiteResult | Mapping[str, str], **fields) -> RunResult:
    """The same as an earlier run."""
    values = {"run_id": BASELINE_ID, "timestamp": "2026-11-19T10:00:00Z", "git": GitFacts(sha="3f2c1ab00000")}
    return make_run(*suites, **(values | fields))
