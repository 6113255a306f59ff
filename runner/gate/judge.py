"""The end of a run: compared with its baseline, refined by records and re-runs, waived, judged."""

from __future__ import annotations

from runner.gate.acceptable import held_to
from runner.gate.baseline import Baseline, NoBaseline
from runner.gate.compare import compare, with_contract_fields
from runner.gate.conclude import conclude
from runner.gate.history import held_baseline
from runner.gate.limits import Policy
from runner.gate.pardons import Pardons
from runner.gate.policy import decide
from runner.gate.rules import Judged
from runner.gate.waivers import standings, waive
from runner.model.comparison import Comparison
from runner.model.result import RunResult
from runner.model.waiver import Kind, Standing, Waiving


def judge(
    run: RunResult,
    baseline: Baseline | NoBaseline,
    policy: Policy,
    *,
    everything_selected: bool = True,
    pardons: Pardons | None = None,
) -> RunResult:
    """The run with comparison and verdict filled in; both are made of the two sides held to the policy's pass score."""
    held = held_to(run, policy.pass_score)
    if isinstance(baseline, NoBaseline):
        waiving = _waiving(held, None, policy, pardons, everything_selected=everything_selected)
        verdict = decide(Judged(held, waiving=waiving or Waiving()), policy, baseline)
        return run.model_copy(update={"waiving": waiving, "verdict": verdict})
    then = held_baseline(baseline, policy.pass_score)
    plain = compare(then, held, everything_selected=everything_selected, score_tolerance=policy.score_tolerance)
    comparison = conclude(
        plain,
        held,
        then,
        error_rate=policy.error_rate,
        patterns=policy.must_pass,
        set_aside=set_aside(held, pardons),
    )
    waiving = _waiving(held, comparison, policy, pardons, everything_selected=everything_selected)
    judged = Judged(held, comparison, then.result, waiving or Waiving())
    return run.model_copy(
        update={
            "suites": with_contract_fields(run, baseline.result),
            "baseline_run_id": baseline.result.run_id,
            "comparison": comparison,
            "waiving": waiving,
            "verdict": decide(judged, policy),
        }
    )


def set_aside(run: RunResult, pardons: Pardons | None) -> frozenset[tuple[str, str]]:
    """The cases in quarantine: never run again for what they say, and in no test of the suite."""
    quarantine = [one for one in pardons.waivers if one.kind is Kind.QUARANTINE] if pardons else []
    if not quarantine or pardons is None:
        return frozenset()
    return waive(quarantine, standings(run, None), pardons.today, trusted=pardons.trusted).quarantined


def something_to_waive(run: RunResult, policy: Policy) -> bool:
    """Whether anything in a judged run could be accepted, so that it is worth asking who did."""
    held = held_to(run, policy.pass_score)
    found = standings(held, run.comparison, max_score_drop=policy.max_score_drop)
    return any(one.standing.waivable and one.standing is not Standing.WAVERS for one in found)


def _waiving(
    held: RunResult,
    comparison: Comparison | None,
    policy: Policy,
    pardons: Pardons | None,
    *,
    everything_selected: bool,
) -> Waiving | None:
    if pardons is None or not pardons.anything:
        return None
    found = waive(
        pardons.waivers,
        standings(held, comparison, max_score_drop=policy.max_score_drop),
        pardons.today,
        everything=everything_selected,
        trusted=pardons.trusted,
    )
    return found.model_copy(update={"refusals": pardons.refusals, "troubles": pardons.troubles})
