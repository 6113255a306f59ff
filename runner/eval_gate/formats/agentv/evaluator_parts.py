"""Reader for the parts of AgentV evaluators: prompts, commands, folders and rubric checks.

Source: agentv behaviour 6.1, 6.2, 6.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from eval_gate.formats.agentv import file_model
from eval_gate.formats.agentv.eval_repository import EvalRepository, FileError, NoSuchFileError, normalize_newlines
from eval_gate.formats.agentv.findings import AgentVFindings, Path
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import RUBRIC_CHECKS
from eval_gate.model.specs.evaluator import RubricCheck, RubricJudge
from eval_gate.text.judge_template import convert_agentv_prompt, find_aggregator_problem, find_template_problem
from eval_gate.text.sources.validation_errors import describe_value

MAX_PROMPT_PATH: Final = 500
"""Maximum characters of a prompt that may be the path of a file."""
_FILE_SCHEME: Final = "file://"
_LOOKS_LIKE_A_PATH: Final = re.compile(r"\S+\.(?:md|markdown|txt|prompt|tmpl|j2|jinja2?|ya?ml)|\.{0,2}/\S+")

Command = str | tuple[str, ...]


class EvaluatorPartReader:
    """Read parts of the evaluators of one eval file, and record what is wrong with them."""

    def __init__(self, findings: AgentVFindings, repository: EvalRepository) -> None:
        self._findings = findings
        self._repository = repository
        self.has_workspace = False
        """Whether the case that is read has a workspace, whose changes a prompt can show."""

    def read_prompt(self, prompt: str | None, path: Path, *, aggregates: bool = False) -> str | None:
        """Read an LLM judge's own prompt, from the file that it names, else from the text itself.

        If `aggregates`, the prompt receives the results of evaluators instead of a response. Return None if there is no
        prompt, or after reporting a problem.
        """
        if prompt is None:
            return None
        if self._findings.today and not aggregates:
            return self._read_v4_prompt(prompt, path)
        text, why = self._resolve_prompt(prompt, path)
        if text is None:
            return None
        problem = find_aggregator_problem(text) if aggregates else find_template_problem(text)
        if problem is None:
            if why:
                self._findings.add_warning(f"looks like a path, but {why}: used as the prompt itself", path)
            return text
        self._findings.add_problem(f'"{prompt[:100]}": {why}; as a text, {problem}' if why else problem, path)
        return None

    def _read_v4_prompt(self, prompt: str, path: Path) -> str | None:
        """Read the file that `file://` or a path names; any other text is the prompt itself."""
        file_name = prompt.removeprefix(_FILE_SCHEME)
        is_file = file_name != prompt or _LOOKS_LIKE_A_PATH.fullmatch(prompt) is not None
        try:
            text = (
                self._repository.read_text(self._repository.find_file(file_name))
                if is_file
                else normalize_newlines(prompt)
            )
        except FileError as error:
            self._findings.add_problem(f'"{file_name[:100]}": {error}', path)
            return None
        template, problem = convert_agentv_prompt(text, bare=file_name == prompt, has_workspace=self.has_workspace)
        if problem is not None:
            self._findings.add_problem(problem, path)
        return template

    def _resolve_prompt(self, prompt: str, path: Path) -> tuple[str | None, str | None]:
        """Return the prompt (None after a problem), and why a text that looks like a path is not a file."""
        if "\n" in prompt or len(prompt) > MAX_PROMPT_PATH:
            return normalize_newlines(prompt), None
        path_like = _LOOKS_LIKE_A_PATH.fullmatch(prompt) is not None
        try:
            return self._repository.read_text(self._repository.find_file(prompt)), None
        except NoSuchFileError as error:
            return prompt, str(error) if path_like else None
        except FileError as error:
            if not path_like:
                return prompt, None
            self._findings.add_problem(f'"{prompt[:100]}": {error}', path)
            return None, None

    def read_command(self, raw: JsonValue, path: Path) -> Command | None:
        """Read a command: a shell line, or a program with its arguments. Return None after reporting a problem."""
        if isinstance(raw, str) and raw.strip():
            return raw
        if isinstance(raw, list) and raw and all(isinstance(word, str) for word in raw) and raw[0]:
            return tuple(str(word) for word in raw)
        if raw in ("", []) or (isinstance(raw, str) and not raw.strip()):
            self._findings.add_problem("must not be empty", path)
        else:
            self._findings.add_problem(
                f"expected a command, as one text or a list of texts, got {describe_value(raw)}", path
            )
        return None

    def resolve_folder(self, reference: str | None, path: Path) -> str:
        """Return the absolute folder of a command, inside the repository, by default the eval file's."""
        if reference is None:
            return str(self._repository.folder)
        try:
            return str(self._repository.find_folder(reference))
        except FileError as error:
            self._findings.add_problem(f'"{reference[:100]}": {error}', path)
            return str(self._repository.folder)

    def read_checks(self, raw: JsonValue, path: Path) -> tuple[RubricCheck, ...]:
        """Read the checks of a rubric, or return none after reporting a problem."""
        if not isinstance(raw, list):
            self._findings.add_problem(f"expected a list of checks, got {describe_value(raw)}", path)
            return ()
        if not raw:
            self._findings.add_problem("an empty list: nothing would be evaluated", path)
        if len(raw) > RUBRIC_CHECKS:
            self._findings.add_problem(f"has more than {RUBRIC_CHECKS:,} checks", path)
            return ()
        checks = tuple(self._iter_checks(raw, path))
        if checks and not any(check.weight for check in checks):
            self._findings.add_warning("every check has weight 0: the score is always 0", path)
        return checks

    def _iter_checks(self, raw: list[JsonValue], path: Path) -> Iterator[RubricCheck]:
        first: dict[str, int] = {}
        for index, one in enumerate(raw):
            place = (*path, index)
            check = self._findings.read_part(
                file_model.AgentVCheck, {"description": one} if isinstance(one, str) else one, place
            )
            if check is None:
                continue
            name = check.id or f"rubric-{index + 1}"
            if name in first:
                line = self._findings.find_line((*path, first[name]))
                self._findings.add_problem(f'the check in line {line} already has the id "{name}"', (*place, "id"))
            first.setdefault(name, index)
            yield RubricCheck(id=name, description=check.description, weight=check.weight, required=check.required)

    def read_rubric(self, raw: JsonValue, path: Path) -> RubricJudge | None:
        """Read the evaluator that a case's own `rubrics` describe, or return None if they hold no valid check."""
        checks = self.read_checks(raw, path)
        return RubricJudge(label="rubrics", checks=checks) if checks else None
