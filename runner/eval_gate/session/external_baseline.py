"""External results as a baseline: `check NOW --baseline BEFORE`, of which both were written by one tool."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from eval_gate.errors import GateError
from eval_gate.external_results.loader import ExternalResults
from eval_gate.external_results.result_files import find_tool_at, parse_results_path
from eval_gate.model.base import JsonValue
from eval_gate.model.result import GitFacts, RunResult
from eval_gate.results.baseline import Baseline
from eval_gate.results.history import EMPTY_HISTORY
from eval_gate.results.result_names import LATEST, is_run_id
from eval_gate.results.run_reader import is_run_reference, read_history
from eval_gate.session.external_run import build_external_run, read_external_results
from eval_gate.session.session import Session
from eval_gate.session.tool_reruns import build_redactor
from eval_gate.struct import replace
from eval_gate.text.digest import compute_fingerprint
from eval_gate.text.redaction import Redactor


def is_external_reference(reference: str | None) -> bool:
    """Whether a baseline is results of another tool, and not a run that is stored."""
    if reference is None or reference == LATEST:
        return False
    given = parse_results_path(reference)
    if not (given.exists or given.is_glob):
        return False
    return not is_run_reference(reference) and find_tool_at(reference) is not None


async def read_external_baseline(session: Session, current: ExternalResults) -> Baseline | None:
    """Read the baseline of a session as external results, by the rules of the current ones.

    Return None if the baseline is none of another tool. Raises GateError for what is wrong in it, for results of
    another tool than the current ones, and for a file that is read on both sides. The history of its cases is the
    configured one, with these results as its newest run.
    """
    reference = session.config.baseline
    if reference is None or not is_external_reference(reference):
        return None
    before = read_external_results(session.config, [reference], session.context)
    if before.format is not current.format:
        raise GateError(
            "baseline-of-other-tool",
            f"{reference} has results of {before.format}, and {current.files[0]} of {current.format}",
            "compare two results of one tool",
        )
    if both := before.sources & current.sources:
        raise GateError(
            "baseline-is-checked",
            f"the baseline {reference} is the result that is checked: {min(both).name}",
            "keep the result of the baseline in a file of its own",
        )
    redact = build_redactor(session.context)
    run = _name_run(await build_external_run(session, before), before, redact)
    run = replace(run, policy=session.config.policy.to_run_policy(run))
    history = session.config.history
    ledger = EMPTY_HISTORY if history is None else read_history(history)
    return Baseline(run, redact(reference), history=ledger.with_run(run), notes=before.notes)


def _name_run(run: RunResult, results: ExternalResults, redact: Redactor) -> RunResult:
    """Name a run after its file, so that the same results give the same name, unless that contains a secret."""
    content: list[JsonValue] = [[row.suite, row.id, str(row.status), row.response, row.error] for row in results.rows]
    name = f"{redact(Path(results.files[0]).resolve().name)[:60]}-{compute_fingerprint(content)[:8]}"
    run_id, timestamp = name if is_run_id(name) else run.run_id, _find_write_time(results.files) or run.timestamp
    suites = tuple(replace(suite, run_id=run_id, timestamp=timestamp) for suite in run.suites)
    # nothing in the file tells the commit that it is of
    return replace(run, run_id=run_id, timestamp=timestamp, git=GitFacts(), suites=suites)


def _find_write_time(files: Sequence[str]) -> str | None:
    """Return when the newest of these files and folders was written; None where that is not known."""
    times = [path.stat().st_mtime for path in map(Path, files) if path.exists()]
    return datetime.fromtimestamp(max(times), UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if times else None
