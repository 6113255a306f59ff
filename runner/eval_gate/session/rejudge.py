"""Judges a stored run once more: by the rules it was made with, unless somebody gives others now. Nothing is run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from eval_gate.config.load import load_config
from eval_gate.config.settings import RunConfig
from eval_gate.gate.judge import GateQuestion, judge
from eval_gate.gate.judges.file import read_comparisons
from eval_gate.gate.judges.known import Comparisons
from eval_gate.gate.must_pass import with_idle_patterns
from eval_gate.gate.waivers.known import known_waivers
from eval_gate.model.result import RunResult
from eval_gate.results.pushes import pushes_before
from eval_gate.results.read import baseline_of


def rules_for(run: RunResult, flags: Mapping[str, JsonValue]) -> RunConfig:
    """The configuration that judges this run: what is given now, and for the rest what it was judged by."""
    return load_config(flags, {}, None, defaults=run.policy.as_settings() if run.policy else None)


def judge_again(run: RunResult, reference: str, config: RunConfig, root: Path) -> RunResult:
    """The run compared with the one that `reference` leads to, as `run` would have; waiver files are below `root`.

    Raises GateError, `baseline-not-found` among them.
    """
    run = with_idle_patterns(run, config.policy.must_pass)
    earlier = baseline_of(run, reference, Path(config.output_dir), config.history)
    if config.history:  # somebody wants it judged by other knowledge than it was made with
        run = run.model_copy(update={"comparison": None})
    waivers = known_waivers(config, root, datetime.now(UTC).date())
    pushes = pushes_before(config.earlier, Path(config.output_dir)) if config.earlier else None
    comparisons = Comparisons(read_comparisons(root))
    asked = GateQuestion(earlier, config.policy, waivers=waivers, pushes=pushes, comparisons=lambda: comparisons)
    return judge(run, asked)
