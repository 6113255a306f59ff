"""Which function judges which assertion of a suite."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from eval_gate.evaluators.agent_evals import answers as agent_evals
from eval_gate.evaluators.agent_evals import files as agent_evals_files
from eval_gate.evaluators.base import Evaluation, EvaluationContext
from eval_gate.model import suite_assertions as specs
from eval_gate.model.evaluator import EvaluatorSpec

# each function takes its own class of spec; the key says which
SUITE_ASSERTIONS: Final[dict[type[EvaluatorSpec], Callable[[Any, EvaluationContext], Awaitable[Evaluation]]]] = {
    specs.OutputContains: agent_evals.contains,
    specs.OutputMatches: agent_evals.matches_regex,
    specs.OutputEquals: agent_evals.equals,
    specs.OutputJsonPath: agent_evals.json_path,
    specs.FileExists: agent_evals_files.file_exists,
    specs.FileNotExists: agent_evals_files.file_not_exists,
    specs.FileContains: agent_evals_files.file_contains,
    specs.FileJsonPath: agent_evals_files.file_json_path,
}
