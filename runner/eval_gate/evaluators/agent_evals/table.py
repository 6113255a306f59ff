"""Which function judges which assertion of a suite."""

from __future__ import annotations

from typing import Final

from eval_gate.evaluators.agent_evals import assertions
from eval_gate.evaluators.base import ByClass
from eval_gate.model.specs import agent_evals as specs

TABLE: Final[ByClass] = {
    specs.OutputContains: assertions.contains,
    specs.OutputMatches: assertions.matches_regex,
    specs.OutputEquals: assertions.equals,
    specs.OutputJsonPath: assertions.json_path,
    specs.FileExists: assertions.file_exists,
    specs.FileNotExists: assertions.file_not_exists,
    specs.FileContains: assertions.file_contains,
    specs.FileJsonPath: assertions.file_json_path,
}
