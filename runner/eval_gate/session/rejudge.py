"""Judges a stored run once more: by the rules it was made with, unless somebody gives others now. Nothing is run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from eval_gate.config.load import BY_A_PROGRAM, GivenBy, load_config
from eval_gate.config.settings import RunConfig
from eval_gate.gate.judge import judge
from eval_gate.gate.must_pass import with_idle_patterns
from eval_gate.model.result import RunResult
from eval_gate.results.read import baseline_of
from eval_gate.session.session import question_of
from eval_gate.struct import replace


def rules_for(run: RunResult, flags: Mapping[str, JsonValue], hand: GivenBy = BY_A_PROGRAM) -> RunConfig:
    """The configuration that judges this run: what `hand` gives now, and for the rest what it was judged by."""
    before = run.policy
    config = load_config(flags, {}, None, defaults=before.as_settings() if before else None, hand=hand)
    policy = config.policy
    if before is None:
        return config
    if policy.fail_on_default:
        policy = replace(policy, fail_on_default=before.fail_on_default)
    if policy.typed is not None:
        policy = replace(policy, typed=tuple(sorted({*policy.typed, *(before.typed or ())})))
    return replace(config, policy=policy)


def judge_again(run: RunResult, reference: str, config: RunConfig, root: Path) -> RunResult:
    """The run compared with the one that `reference` leads to, as `run` would have; waiver files are below `root`.

    Raises GateError, `baseline-not-found` among them.
    """
    run = with_idle_patterns(run, config.policy.must_pass)
    earlier = baseline_of(run, reference, Path(config.output_dir), config.history)
    if config.history:  # somebody wants it judged by other knowledge than it was made with
        run = replace(run, comparison=None)
    return judge(run, question_of(config, root, earlier))
