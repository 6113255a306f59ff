"""Decide the verdict of a stored run again, with its own rules or new ones; runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from eval_gate.config.loader import BY_A_PROGRAM, FlagSource, load_config
from eval_gate.config.settings import RunConfig
from eval_gate.gate.must_pass import add_idle_pattern_warnings
from eval_gate.gate.verdict_decision import decide_verdict
from eval_gate.model.result import RunResult
from eval_gate.results.run_reader import require_baseline
from eval_gate.session.session import build_gate_inputs
from eval_gate.struct import replace


def load_run_config(
    run: RunResult, flags: Mapping[str, JsonValue], flag_source: FlagSource = BY_A_PROGRAM
) -> RunConfig:
    """Load the configuration that decides the verdict of a stored run again.

    `flags` come first, the stored policy of the run fills in the rest. `flag_source` is the origin of the flags.
    """
    stored = run.policy
    config = load_config(flags, {}, None, defaults=stored.as_settings() if stored else None, flag_source=flag_source)
    policy = config.policy
    if stored is None:
        return config
    if policy.fail_on_default:
        policy = replace(policy, fail_on_default=stored.fail_on_default)
    if policy.typed_settings is not None:
        policy = replace(policy, typed_settings=tuple(sorted({*policy.typed_settings, *(stored.typed_settings or ())})))
    return replace(config, policy=policy)


def redecide_verdict(run: RunResult, reference: str, config: RunConfig, root: Path) -> RunResult:
    """Decide the verdict of a run again, compared with the baseline that `reference` names.

    The verdict is the one that `run` would give. Waiver files are below `root`. Raises GateError, such as
    `baseline-not-found`.
    """
    run = add_idle_pattern_warnings(run, config.policy.must_pass)
    earlier = require_baseline(run, reference, Path(config.output_dir), config.history)
    if config.history:  # another history than that of the run
        run = replace(run, comparison=None)
    return decide_verdict(run, build_gate_inputs(config, root, earlier))
