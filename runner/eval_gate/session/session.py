"""Session: what is run, what the result is compared with, and what is written."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from eval_gate.config.selection import Selection
from eval_gate.config.settings import RunConfig
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.gate.judge_agreement import JudgeComparisons, read_comparisons
from eval_gate.gate.verdict_decision import GateInputs
from eval_gate.gate.waivers.waiver_file import load_waivers
from eval_gate.results.baseline import Baseline, NoBaseline
from eval_gate.results.result_names import LATEST
from eval_gate.results.run_reader import find_baseline
from eval_gate.session.lost_results import add_unlinked_results
from eval_gate.struct import FrozenStruct


class PendingGateInputs(Protocol):
    """Inputs of the verdict that are still being fetched while the run is executed."""

    def wait_for_inputs(self) -> GateInputs:
        """Wait for all inputs and return them. This blocks, so do not call it in an event loop."""
        ...

    def stop_waiting(self) -> None:
        """Stop waiting as the run is ended from outside; inputs that take more than a moment are given up."""
        ...


class Session(FrozenStruct):
    """Prepared use of the gate: everything is read and checked except eval files and targets."""

    config: RunConfig
    selection: Selection
    context: RunContext
    gate_inputs: GateInputs
    is_run_of_branch: bool = False
    """Whether it is a run of all cases of the branch itself, whose result is the next baseline."""
    pending_gate_inputs: PendingGateInputs | None = None
    """Where the question's baseline is not there yet; nothing is judged by `gate_inputs` before it is."""

    @property
    def folder(self) -> Path:
        """Where results go."""
        return Path(self.config.output_dir)

    @property
    def most_reruns(self) -> int:
        """The most re-runs of one case: by default none where nobody named a baseline."""
        policy, baseline = self.config.policy, self.gate_inputs.baseline
        is_alone = isinstance(baseline, NoBaseline) and not baseline.is_requested
        return 0 if policy.reruns is None and is_alone else policy.most_reruns


def open_session(
    config: RunConfig, selection: Selection, context: RunContext, baseline: Baseline | NoBaseline | None = None
) -> Session:
    """Open a session with the rules, baseline and waivers that the configuration names.

    `baseline` is the baseline if it is not simply the one that the configuration names. Raises GateError for
    any problem with these, before any target is called.
    """
    if baseline is None:
        folder, target = Path(config.output_dir), _find_target_name(config, context)
        chosen = selection.chosen_cases
        baseline = find_baseline(
            config.baseline, folder, config.history, besides=context.resume, chosen=chosen, target=target
        )
        baseline = add_unlinked_results(baseline, config, context, chosen, targets=(target,) if target else ())
    question = build_gate_inputs(config, context.root, baseline)
    is_run_of_branch = config.baseline == LATEST and not selection.chosen_cases
    return Session(config, selection, context, question, is_run_of_branch)


def _find_target_name(config: RunConfig, context: RunContext) -> str | None:
    """Find the target that runs all cases, unless the eval files choose it or the baseline is not `latest`."""
    if context.custom_target is not None:
        return context.custom_target.identity.name
    if config.baseline != LATEST or not config.target.is_chosen:
        return None
    from eval_gate.targets.build import find_flag_target  # 100 ms that only a run needs

    described = find_flag_target(config.target)
    return described.settings.name if described else config.target.name


def build_gate_inputs(config: RunConfig, root: Path, baseline: Baseline | NoBaseline) -> GateInputs:
    """Build the inputs of the verdict from the configuration's policy and the files below `root`.

    The files hold waivers and comparisons of judges. Raises GateError for any problem with them.
    """
    waivers = load_waivers(config, root, datetime.now(UTC).date())
    comparisons = JudgeComparisons(read_comparisons(root))
    return GateInputs(
        baseline,
        config.policy,
        waivers=waivers,
        retention=config.retention,
        judge_lookup=lambda: comparisons,
    )
