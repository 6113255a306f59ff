"""Which function judges which assertion of a suite."""

from __future__ import annotations

from typing import Final

from eval_gate.evaluators.agent_evals import answers, files
from eval_gate.evaluators.base import ByClass
from eval_gate.model.specs import agent_evals as specs

TABLE: Final[ByClass] = {
    specs.OutputContains: answers.contains,
    specs.OutputMatches: answers.matches_regex,
    specs.OutputEquals: answers.equals,
    specs.OutputJsonPath: answers.json_path,
    specs.FileExists: files.file_exists,
    specs.FileNotExists: files.file_not_exists,
    specs.FileContains: files.file_contains,
    specs.FileJsonPath: files.file_json_path,
}
