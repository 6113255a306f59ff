"""Links to the traces of executions in a run result."""

from __future__ import annotations

from eval_gate.model.execution import CaseDetails
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.struct import replace
from eval_gate.text.trace_addresses import build_trace_url


def link_traces(run: RunResult, template: str | None) -> RunResult:
    """Set the links to all traces of a run by `traceUrl`, whatever links an untrusted result has."""
    suites = tuple(
        replace(suite, cases=tuple([link_case_traces(case, template) for case in suite.cases])) for suite in run.suites
    )
    return replace(run, suites=suites)


def link_case_traces(case: CaseResult, template: str | None) -> CaseResult:
    """Set the links to the traces of a case and its executions by `traceUrl`; None for no links."""
    details = _link(case.details, template)
    trials = [one if one.details is None else replace(one, details=_link(one.details, template)) for one in case.trials]
    return replace(case, details=details, trials=tuple(trials))


def _link(details: CaseDetails, template: str | None) -> CaseDetails:
    url = build_trace_url(details.trace, template)
    return details if url == details.trace_url else replace(details, trace_url=url)
