"""What fails the gate. Pure: a run, a comparison and a policy give a verdict with its reasons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from runner.errors import ExitCode, GateError, did_you_mean
from runner.gate.baseline import NoBaseline
from runner.gate.scores import exceeds, limit_words
from runner.model.comparison import DEFAULT_SCORE_TOLERANCE, CaseClass, Comparison, Outcome, Reason, Rule, Verdict
from runner.model.result import RunResult

if TYPE_CHECKING:
    from runner.config.settings import RunConfig


class FailOn(StrEnum):
    """What fails the gate, beside execution errors."""

    FAILURES = "failures"
    REGRESSIONS = "regressions"
    NEVER = "never"
    STALE = "stale"
    FLAKY = "flaky"


UNMEASURED = "could-not-measure"
"""The one rule whose breach says nothing about the change."""
SCORE_DROP = "Score drop"
"""The name of the rule about scores."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules. `min_pass_rate` is a share of the judged cases, 0 to 1.

    `pass_score` is the score from which a graded case is good enough here; `max_score_drop` what such a score may lose
    against the baseline. `score_tolerance` is only about what is pointed out.
    """

    fail_on: frozenset[FailOn] = frozenset({FailOn.FAILURES})
    min_pass_rate: float | None = None
    max_errors: int = 0
    pass_score: float = 1.0
    score_tolerance: float = DEFAULT_SCORE_TOLERANCE
    max_score_drop: float | None = None

    @classmethod
    def of(cls, config: RunConfig) -> Policy:
        """The rules of a configuration. Raises GateError `unknown-value`."""
        return cls(
            fail_on=parse_fail_on(config.fail_on),
            min_pass_rate=config.min_pass_rate,
            max_errors=config.max_errors,
            pass_score=config.pass_score,
            score_tolerance=config.score_tolerance,
            max_score_drop=config.max_score_drop,
        )


def parse_fail_on(words: Iterable[str]) -> frozenset[FailOn]:
    """`failures`, `regressions` or `never`; `stale` and `flaky` add to them, alone to `failures`.

    Raises GateError `unknown-value`.
    """
    known = [one.value for one in FailOn]
    chosen = set()
    for word in (part.strip() for text in words for part in text.split(",") if part.strip()):
        if word not in known:
            raise GateError(
                "unknown-value",
                f'--fail-on: "{word[:80]}" is not known{did_you_mean(word, known)}',
                f"allowed: {', '.join(known)}",
            )
        chosen.add(FailOn(word))
    if FailOn.NEVER in chosen and len(chosen) > 1:
        raise GateError("unknown-value", "--fail-on: never stands alone", "leave out never, or everything else")
    if not chosen & {FailOn.FAILURES, FailOn.REGRESSIONS, FailOn.NEVER}:
        chosen.add(FailOn.FAILURES)
    return frozenset(chosen)


@dataclass(frozen=True, slots=True)
class _Finding:
    """One rule that was applied; `reason` is the sentence for when it does not hold."""

    rule: Rule
    code: str
    reason: str


def decide(run: RunResult, comparison: Comparison | None, policy: Policy, absent: NoBaseline | None = None) -> Verdict:
    """The verdict on a run that is held to the policy's pass score. `absent` says why there is no comparison, if so.

    - nothing judged, or more than half of the cases could not be: no verdict (`error`, exit 3)
    - a rule about the agent that does not hold: `fail`, exit 1, whatever else could not be measured
    - cases that were not run, and nothing known against the change: no verdict either; a gate never passes unseen cases
    - a failure that may be a regression, but the baseline could not be had: no verdict; not having asked is no pass
    - more execution errors than allowed: `fail`, exit 1, worded apart
    - else `pass`
    """
    unmeasurable = _unmeasurable(run)
    incomplete = (*_incomplete(run), *_unexplained(run, policy, absent))
    findings = _findings(run, comparison, policy)
    rules = tuple(finding.rule for finding in findings)
    broken = tuple(Reason(code=finding.code, message=finding.reason) for finding in findings if not finding.rule.ok)
    about_the_change = any(reason.code != UNMEASURED for reason in broken)
    if unmeasurable is not None:
        outcome, code, reasons = Outcome.ERROR, ExitCode.INCOMPLETE, (unmeasurable, *incomplete)
    elif incomplete and not about_the_change:
        outcome, code, reasons = Outcome.ERROR, ExitCode.INCOMPLETE, (*incomplete, *broken)
    elif broken:
        outcome, code, reasons = Outcome.FAIL, ExitCode.FAILED, (*broken, *incomplete)
    else:
        outcome, code, reasons = Outcome.PASS, ExitCode.PASSED, _passing(run, comparison, policy)
    return Verdict(outcome=outcome, exit_code=code, reasons=reasons, rules=rules, pass_score=policy.pass_score)


def _unmeasurable(run: RunResult) -> Reason | None:
    """Why this run says nothing, if it does not (CONTRACTS, section 1)."""
    summary = run.summary
    asked = summary.total_cases - summary.skipped
    judged = summary.passed + summary.failed
    if judged == 0:
        why = "all cases were skipped" if asked == 0 and summary.total_cases else "no case could be judged"
        return Reason(code="nothing-judged", message=run.stopped or _first_error(run) or why)
    if summary.errored * 2 > judged + summary.errored:
        message = f"{summary.errored} of {judged + summary.errored} cases could not be measured, more than half"
        return Reason(code="too-many-errors", message=message)
    return None


def _first_error(run: RunResult) -> str | None:
    errors = [case.error for suite in run.suites for case in suite.cases if case.status == "error" and case.error]
    return f"no case could be judged; the first: {errors[0]}" if errors else None


def _incomplete(run: RunResult) -> tuple[Reason, ...]:
    if run.summary.not_run == 0:
        # cases that nobody counted, such as those of a part that was not merged
        return () if run.complete else (Reason(code="not-complete", message=run.stopped or "the run is not complete"),)
    why = f"{run.stopped}: " if run.stopped else ""
    message = f"{why}{run.summary.not_run} of {run.summary.total_cases} cases were not run"
    return (Reason(code="not-complete", message=message),)


def _unexplained(run: RunResult, policy: Policy, absent: NoBaseline | None) -> tuple[Reason, ...]:
    """Failures and low scores that only the baseline could explain, when it may exist and could not be had.

    Where nothing fails there can be no regression, and the baseline is not missed.
    """
    if absent is None or not absent.unavailable:
        return ()
    if FailOn.REGRESSIONS in policy.fail_on and run.summary.failed:
        failed = f"{run.summary.failed} failing case{'s' if run.summary.failed != 1 else ''}"
        return (Reason(code=absent.code, message=f"whether {failed} passed before cannot be told: {absent.reason}"),)
    if policy.max_score_drop is not None and (low := _may_have_dropped(run, policy.max_score_drop)):
        scores = "1 score" if low == 1 else f"{low} scores"
        return (Reason(code=absent.code, message=f"whether {scores} dropped cannot be told: {absent.reason}"),)
    return ()


def _may_have_dropped(run: RunResult, most: float) -> int:
    """How many graded cases are so low that their score may have dropped by more than `most`."""
    cases = [case for suite in run.suites for case in suite.cases if case.graded and case.status.judged]
    return sum(exceeds(1.0 - case.score, most) for case in cases)


def _findings(run: RunResult, comparison: Comparison | None, policy: Policy) -> list[_Finding]:
    """Every rule of the policy that can be applied, in the order people care about them."""
    found = []
    if comparison is not None and FailOn.NEVER not in policy.fail_on:
        found.append(_regressions(comparison))  # a regression is a failure too, and the more telling one
    if FailOn.FAILURES in policy.fail_on:
        found.append(_failures(run))
    if comparison is not None and policy.max_score_drop is not None:
        found.append(_score_drop(comparison, policy.max_score_drop))
    if policy.min_pass_rate is not None:
        found.append(_pass_rate(run, policy.min_pass_rate))
    if FailOn.NEVER not in policy.fail_on:
        found.append(_errors(run, policy.max_errors))
    if FailOn.FLAKY in policy.fail_on:
        found.append(_count("Flaky cases", "flaky", run.summary.flaky, "is flaky", "are flaky"))
    if FailOn.STALE in policy.fail_on:
        stale = sum(suite.stale for suite in run.suites)
        found.append(_count("Stale suites", "stale", stale, "suite is stale", "suites are stale", noun=""))
    return found


def _regressions(comparison: Comparison) -> _Finding:
    count = len(comparison.of(CaseClass.REGRESSION))
    what = "case that passes in the baseline fails here" if count == 1 else "cases that pass in the baseline fail here"
    rule = Rule(name="Regressions", value=str(count), limit="0", ok=count == 0)
    return _Finding(rule, "regressions", f"{count} {what} (allowed: 0)")


def _failures(run: RunResult) -> _Finding:
    return _count("Failures", "failures", run.summary.failed, "fails", "fail")


def _count(name: str, code: str, count: int, one: str, many: str, *, noun: str = "case") -> _Finding:
    counted = f"{count} {noun}{'s' if noun and count != 1 else ''}".strip()
    rule = Rule(name=name, value=str(count), limit="0", ok=count == 0)
    return _Finding(rule, code, f"{counted} {one if count == 1 else many} (allowed: 0)")


def _score_drop(comparison: Comparison, most: float) -> _Finding:
    """Over all graded cases that can be compared, whatever became of them."""
    drops = [-change.score_change for change in comparison.changes if change.score_change is not None]
    over = sum(exceeds(drop, most) for drop in drops)
    largest, limit = limit_words(max([0.0, *drops])), limit_words(most)
    rule = Rule(name=SCORE_DROP, value=largest, limit=limit, ok=over == 0)
    what = f"the score of {over} case{'s' if over != 1 else ''} drops by more than {limit} (the most: {largest})"
    return _Finding(rule, "max-score-drop", what)


def _pass_rate(run: RunResult, least: float) -> _Finding:
    rate = run.summary.pass_rate or 0.0
    rule = Rule(name="Pass rate", value=f"{rate * 100:.1f} %", limit=f"{least * 100:.1f} %", ok=rate >= least)
    return _Finding(rule, "min-pass-rate", f"the pass rate {rate * 100:.1f} % is below {least * 100:.1f} %")


def _errors(run: RunResult, allowed: int) -> _Finding:
    count = run.summary.errored
    rule = Rule(name="Errors", value=str(count), limit=str(allowed), ok=count <= allowed)
    what = f"{count} case{'s' if count != 1 else ''} could not be measured (allowed: {allowed})"
    return _Finding(rule, UNMEASURED, what)


def _passing(run: RunResult, comparison: Comparison | None, policy: Policy) -> tuple[Reason, ...]:
    """What a passing gate has to say: above all, what it could not look at."""
    if FailOn.NEVER in policy.fail_on:
        return (Reason(code="never-fails", message="the policy is to report only: nothing fails this gate"),)
    if comparison is None and FailOn.REGRESSIONS in policy.fail_on:
        message = "there is nothing to compare with, so regressions could not be told from known failures"
        return (Reason(code="no-baseline", message=message),)
    if comparison is None and policy.max_score_drop is not None:
        message = "there is nothing to compare with, so whether scores dropped could not be told"
        return (Reason(code="no-baseline", message=message),)
    return (Reason(code="passed", message=f"all rules hold for {run.summary.total_cases} cases"),)
