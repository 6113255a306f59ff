"""Table of the evaluator functions for Agent Evals assertions."""

from __future__ import annotations

from typing import Final

from eval_gate.evaluators.agent_evals import assertions
from eval_gate.evaluators.base import EvaluatorTable
from eval_gate.model.specs import agent_evals as specs

TABLE: Final[EvaluatorTable] = {
    specs.OutputContains: assertions.evaluate_contains,
    specs.OutputMatches: assertions.evaluate_matches_regex,
    specs.OutputEquals: assertions.evaluate_equals,
    specs.OutputJsonPath: assertions.evaluate_json_path,
    specs.FileExists: assertions.evaluate_file_exists,
    specs.FileNotExists: assertions.evaluate_file_not_exists,
    specs.FileContains: assertions.evaluate_file_contains,
    specs.FileJsonPath: assertions.evaluate_file_json_path,
}
