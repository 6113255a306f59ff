"""Reader for the cases of an AgentV 1.6 eval file, and the `EvalCase` builder of both versions.

Source: agentv behaviour 1.2, 1.5 and 13.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Final

from eval_gate.formats.agentv import file_model
from eval_gate.formats.agentv.case_messages import (
    MessageTurn,
    TextPart,
    TurnReader,
    build_brief,
    to_chat_messages,
    turns_to_json,
)
from eval_gate.formats.agentv.detection import find_used_name
from eval_gate.formats.agentv.eval_repository import EvalRepository
from eval_gate.formats.agentv.evaluator_reader import EvaluatorReader
from eval_gate.formats.agentv.findings import AgentVFindings, Model, Path
from eval_gate.formats.agentv.guidelines import Guidelines
from eval_gate.formats.agentv.v4 import file_model as today
from eval_gate.model.base import JsonValue, as_fields
from eval_gate.model.case import Aggregation, EvalCase, Location
from eval_gate.model.specs.evaluator import EvaluatorSpec
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.digest import compute_digest, compute_fingerprint
from eval_gate.text.sources.validation_errors import format_field_path

MAX_DESCRIPTION: Final = 120
_DATE: Final = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")


class EvaluatorSet(FrozenStruct):
    """Evaluators with fingerprints of their checks, with and without the graders."""

    specs: tuple[EvaluatorSpec, ...]
    fingerprint: str
    expectation: str


class FileDefaults(FrozenStruct):
    """Defaults that an eval file sets for all its cases."""

    evaluators: EvaluatorSet
    own_evaluators: tuple[EvaluatorSpec, ...]
    """The evaluators of the file; none if only the default LLM judge applies."""
    target: str | None


class CaseConversation(FrozenStruct):
    """Input, expected output and expected outcome of a case."""

    turns: tuple[MessageTurn, ...]
    expected: tuple[MessageTurn, ...]
    outcome: str
    metadata: JsonValue = None


class CaseReader:
    """Read the cases of one eval file, in order."""

    def __init__(self, file: str, findings: AgentVFindings, repository: EvalRepository, guidelines: Guidelines) -> None:
        self._file = file
        self._findings = findings
        self._repository = repository
        self._turns = TurnReader(findings, repository, guidelines)
        self._evaluators = EvaluatorReader(findings, repository)
        self._lines: dict[str, int] = {}

    def read_defaults(self, suite: file_model.AgentVSuite) -> FileDefaults:
        """Read the defaults of the file for its cases."""
        execution = self._read_part(file_model.AgentVExecution, file_model.as_raw_json(suite.execution), ("execution",))
        target = execution.target if execution else None
        listed = self._read_evaluator_list(file_model.as_raw_json(suite.execution), ("execution",))
        default = self._evaluators.read_default(suite.evaluator, ("evaluator",))
        judged = self.build_evaluator_set(default if listed is None else listed, ("execution", "evaluators"))
        return FileDefaults(judged, listed or (), target or suite.target)

    def read(self, raw: JsonValue, path: Path, defaults: FileDefaults) -> EvalCase | None:
        """Read the case at `path`, or return None if it, or anything before it in the file, has a problem."""
        self._findings.begin_case(format_case_name(raw, path))
        self._turns.begin_case()
        entry = self._findings.read_part(file_model.AgentVCase, raw, path)
        if not isinstance(raw, dict):
            return None
        self.check_id(raw, path)
        turns = self._read_input_messages(raw, path)
        key = find_used_name(raw, file_model.EXPECTED)
        expected = self._turns.read(raw[key], (*path, key), "assistant") if key and raw[key] is not None else ()
        execution = self._read_part(file_model.AgentVExecution, raw.get("execution"), (*path, "execution"))
        judged = self._read_evaluators(raw, path, defaults)
        if entry is None or self._findings.problems:
            return None
        conversation = CaseConversation(turns, expected, entry.expected_outcome.replace("\r\n", "\n"))
        target = (execution.target if execution else None) or defaults.target
        return self.build_case(entry, path, conversation, judged, target)

    def build_case(
        self,
        entry: file_model.AgentVCase | today.AgentV4Case,
        path: Path,
        conversation: CaseConversation,
        judged: EvaluatorSet,
        target: str | None,
    ) -> EvalCase:
        """Build the case, of either version of AgentV, when the file has no problem."""
        outcome, expected = conversation.outcome, to_comparable(conversation.expected)
        identity: list[JsonValue] = [*build_question(conversation.turns), expected, outcome, judged.fingerprint]
        return EvalCase(
            id=entry.id,
            suite=self._file,
            description=entry.description or summarize_outcome(outcome),
            messages=to_chat_messages(conversation.turns),
            evaluators=judged.specs,
            aggregation=Aggregation.WEIGHTED_MEAN,
            tags=tuple(entry.tags or ()),
            draft=entry.draft,
            brief=replace(
                build_brief(conversation.turns, conversation.expected, outcome), metadata=conversation.metadata
            ),
            target=target,
            conversation_id=entry.conversation_id,
            location=Location(file=self._findings.find_file(path), line=self._findings.find_line(path)),
            mistakes=self._findings.case_mistakes,
            # with the text of all files: the same wherever the repository lies
            fingerprint=compute_fingerprint([*identity, conversation.metadata] if self._findings.today else identity),
            prompt_fingerprint=compute_digest(build_question(conversation.turns)),
            expectation_fingerprint=compute_digest([expected, outcome, judged.expectation]),
            warnings=self._findings.case_warnings,
        )

    def check_id(self, raw: dict[str, JsonValue], path: Path) -> None:
        """Report an id that other YAML parsers do not read as text, or that an earlier case has."""
        name = raw.get("id")
        if not isinstance(name, str):
            return
        if _DATE.match(name) and self._findings.is_unquoted((*path, "id")):
            self._findings.add_not_text_problem(name, (*path, "id"))
        line = self._findings.find_line(path)
        if name in self._lines:
            self._findings.add_problem(
                f'the case in line {self._lines[name]} already has the id "{name}"', (*path, "id")
            )
        self._lines.setdefault(name, line)

    def _read_input_messages(self, raw: dict[str, JsonValue], path: Path) -> tuple[MessageTurn, ...]:
        key = find_used_name(raw, file_model.INPUT)
        if key is None:  # the shape of the case reports it
            return ()
        problem_count = len(self._findings.problems)
        turns = self._turns.read(raw[key], (*path, key), "user")
        if len(self._findings.problems) == problem_count and not any(turn.is_visible for turn in turns):
            self._findings.add_problem("is empty: it has no text and no attached file with text", (*path, key))
        for index, turn in enumerate(turns):
            if turn.calls:
                message = "tool calls of input messages are not sent, only the text"
                self._findings.add_warning(message, (*path, key, index, "tool_calls"), silent=True)
        return turns

    def _read_part(self, model: type[Model], raw: JsonValue, path: Path) -> Model | None:
        return None if raw is None else self._findings.read_part(model, raw, path)

    def _read_evaluator_list(self, raw: JsonValue, path: Path) -> tuple[EvaluatorSpec, ...] | None:
        """Read the evaluators of a part of the file, under any of their names; None if it has no such list."""
        key = find_used_name(raw, file_model.EVALUATORS)
        if key is None or not isinstance(raw, dict) or raw[key] is None:
            return None
        return self._evaluators.read_evaluators(raw[key], (*path, key))

    def _read_evaluators(self, raw: dict[str, JsonValue], path: Path, defaults: FileDefaults) -> EvaluatorSet:
        """Read the case's own evaluators, or take the file's; the rubric of `rubrics` comes first, or is alone."""
        specs = self._read_evaluator_list(raw.get("execution"), (*path, "execution"))
        key = find_used_name(raw, file_model.EVALUATORS)
        if specs is None:
            specs = self._read_evaluator_list(raw, path)
        elif key is not None:
            self._findings.add_warning("is ignored: execution.evaluators is set", (*path, key), silent=True)
        if raw.get("rubrics") is None:
            return defaults.evaluators if specs is None else self.build_evaluator_set(specs, path)
        rubric = self._evaluators.parts.read_rubric(raw["rubrics"], (*path, "rubrics"))
        evaluators = specs if specs is not None else defaults.own_evaluators
        return self.build_evaluator_set((*((rubric,) if rubric else ()), *evaluators), path)

    def build_evaluator_set(self, specs: tuple[EvaluatorSpec, ...], path: Path) -> EvaluatorSet:
        """Build the set of these evaluators, with fingerprints; report those that check nothing."""
        if specs:
            self._evaluators.warn_if_no_weight((spec.weight for spec in specs), path)
        for spec in specs:
            if spec.checks_nothing:
                self._findings.add_warning(f"{spec.name[:80]} checks nothing: it always passes", path, silent=True)
        fields = [_relativize_folders(as_fields(spec), self._repository) for spec in specs]
        return EvaluatorSet(specs, compute_fingerprint(fields), compute_digest(_drop_grader_keys(fields)))


def format_case_name(raw: JsonValue, path: Path) -> str:
    """Return the case's id, or its place in the file if it has no readable id."""
    name = raw.get("id") if isinstance(raw, dict) else None
    return name[:MAX_DESCRIPTION] if isinstance(name, str) and name else format_field_path(path)


def summarize_outcome(outcome: str) -> str:
    """Return the first line of the outcome, for lists of cases."""
    line = next((line.strip() for line in outcome.splitlines() if line.strip()), "")
    return line if len(line) <= MAX_DESCRIPTION else f"{line[: MAX_DESCRIPTION - 1]}…"


def _relativize_folders(value: JsonValue, repository: EvalRepository) -> JsonValue:
    """Make folders relative to the repository, the same in every checkout; default fields are left out."""
    match value:
        case dict():
            return {
                key: repository.to_relative_path(FilePath(one))
                if key == "cwd" and isinstance(one, str)
                else one
                if key in _FREE_FORM_KEYS
                else _relativize_folders(one, repository)
                for key, one in value.items()
                if (key, one) not in _DEFAULT_FIELDS
            }
        case list():
            return [_relativize_folders(one, repository) for one in value]
        case _:
            return value


_DEFAULT_FIELDS: Final = (("negate", False), ("floor", None))
"""Default fields of evaluators, left out so that fingerprints from before these fields stay equal."""
_FREE_FORM_KEYS: Final = frozenset({"minimums", "weights", "expected", "config"})
"""Parts with arbitrary keys: names of tools and members, or data of the file."""
_GRADER_KEYS: Final = frozenset({"prompt", "command", "cwd", "judge_target"})
"""Keys of the grader of an evaluator, which is a part of the setup fingerprint."""


def _drop_grader_keys(value: JsonValue) -> JsonValue:
    match value:
        case dict():
            return {
                key: one if key in _FREE_FORM_KEYS else _drop_grader_keys(one)
                for key, one in value.items()
                if key not in _GRADER_KEYS
            }
        case list():
            return [_drop_grader_keys(one) for one in value]
        case _:
            return value


def to_comparable(turns: Sequence[MessageTurn]) -> list[JsonValue]:
    """Return messages as JSON that is the same for all ways of writing them, such as a list with one text."""
    return turns_to_json([_simplify_content(turn) for turn in turns])


def _simplify_content(turn: MessageTurn) -> MessageTurn:
    match turn.content:
        case (TextPart(text),):
            return replace(turn, content=text)
        case _:
            return turn


def build_question(turns: Sequence[MessageTurn]) -> list[JsonValue]:
    """Return the prompt as JSON, with the text of all files and with which of the files are guidelines."""
    return [to_comparable(turns), [[file.is_guideline for file in turn.files] for turn in turns]]
