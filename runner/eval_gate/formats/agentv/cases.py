"""One case of an AgentV file: everything about it is read, and becomes an `EvalCase` once nothing is wrong.

Source: agentv behaviour 1.2, 1.5 and 13.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Final

from eval_gate.formats.agentv import wire
from eval_gate.formats.agentv.evaluators import EvaluatorReader
from eval_gate.formats.agentv.files import EvalRepository
from eval_gate.formats.agentv.findings import AgentVFindings, Model, Path
from eval_gate.formats.agentv.guidelines import Guidelines
from eval_gate.formats.agentv.recognising import name_used
from eval_gate.formats.agentv.today import wire as today
from eval_gate.formats.agentv.turns import MessageTurn, TextPart, TurnReader, brief_of, chat, turns_as_json
from eval_gate.model.base import JsonValue, as_fields
from eval_gate.model.case import Aggregation, EvalCase, Location
from eval_gate.model.specs.evaluator import EvaluatorSpec
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.digest import digest, fingerprint
from eval_gate.text.sources.shape import field_path

MAX_DESCRIPTION: Final = 120
"""Characters of the outcome that stand for a description."""
_DATE: Final = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")


class GradedBy(FrozenStruct):
    """Evaluators, and the hash of what they ask for: with and without what only says who grades."""

    specs: tuple[EvaluatorSpec, ...]
    fingerprint: str
    expectation: str


class FileDefaults(FrozenStruct):
    """What a file says for all its cases."""

    graded_by: GradedBy
    own_evaluators: tuple[EvaluatorSpec, ...]
    """The evaluators that the file names: none where only the default judges."""
    target: str | None


class CaseConversation(FrozenStruct):
    """What is put to the target, and what a good answer is."""

    turns: tuple[MessageTurn, ...]
    expected: tuple[MessageTurn, ...]
    outcome: str
    metadata: JsonValue = None


class CaseReader:
    """Reads the cases of one eval file, in order."""

    def __init__(self, file: str, findings: AgentVFindings, repository: EvalRepository, guidelines: Guidelines) -> None:
        self._file = file
        self._findings = findings
        self._repository = repository
        self._turns = TurnReader(findings, repository, guidelines)
        self._evaluators = EvaluatorReader(findings, repository)
        self._lines: dict[str, int] = {}

    def defaults(self, suite: wire.Suite) -> FileDefaults:
        """What holds for every case that does not say otherwise."""
        execution = self._part(wire.Execution, wire.raw(suite.execution), ("execution",))
        target = execution.target if execution else None
        listed = self._listed(wire.raw(suite.execution), ("execution",))
        default = self._evaluators.default(suite.evaluator, ("evaluator",))
        judged = self.graded_by(default if listed is None else listed, ("execution", "evaluators"))
        return FileDefaults(judged, listed or (), target or suite.target)

    def read(self, raw: JsonValue, path: Path, defaults: FileDefaults) -> EvalCase | None:
        """The case at `path`; None when something is wrong with it, or was with anything before it."""
        self._findings.begin_case(name_of(raw, path))
        self._turns.begin_case()
        found = self._findings.read(wire.Case, raw, path)
        if not isinstance(raw, dict):
            return None
        self.identify(raw, path)
        turns = self._asked(raw, path)
        key = name_used(raw, wire.EXPECTED)
        expected = self._turns.read(raw[key], (*path, key), "assistant") if key and raw[key] is not None else ()
        execution = self._part(wire.Execution, raw.get("execution"), (*path, "execution"))
        judged = self._judges(raw, path, defaults)
        if found is None or self._findings.problems:
            return None
        said = CaseConversation(turns, expected, found.expected_outcome.replace("\r\n", "\n"))
        target = (execution.target if execution else None) or defaults.target
        return self.build_case(found, path, said, judged, target)

    def build_case(
        self, found: wire.Case | today.Case, path: Path, said: CaseConversation, judged: GradedBy, target: str | None
    ) -> EvalCase:
        """The case, of either version, once nothing is wrong with it."""
        outcome, expected = said.outcome, as_compared(said.expected)
        asked: list[JsonValue] = [*question_of(said.turns), expected, outcome, judged.fingerprint]
        return EvalCase(
            id=found.id,
            suite=self._file,
            description=found.description or beginning_of(outcome),
            messages=chat(said.turns),
            evaluators=judged.specs,
            aggregation=Aggregation.WEIGHTED_MEAN,
            tags=tuple(found.tags or ()),
            brief=replace(brief_of(said.turns, said.expected, outcome), metadata=said.metadata),
            target=target,
            conversation_id=found.conversation_id,
            location=Location(file=self._findings.file_of(path), line=self._findings.line(path)),
            # with the text of all files: the same wherever the repository lies
            fingerprint=fingerprint([*asked, said.metadata] if self._findings.today else asked),
            question=digest(question_of(said.turns)),
            expectation=digest([expected, outcome, judged.expectation]),
            warnings=self._findings.of_case,
        )

    def identify(self, raw: dict[str, JsonValue], path: Path) -> None:
        """An id is text as every reader of YAML sees it, and the only one of its kind."""
        name = raw.get("id")
        if not isinstance(name, str):
            return
        if _DATE.match(name) and self._findings.is_unquoted((*path, "id")):
            self._findings.no_text(name, (*path, "id"))
        line = self._findings.line(path)
        if name in self._lines:
            self._findings.problem(f'the id "{name}" is taken by the case in line {self._lines[name]}', (*path, "id"))
        self._lines.setdefault(name, line)

    def _asked(self, raw: dict[str, JsonValue], path: Path) -> tuple[MessageTurn, ...]:
        key = name_used(raw, wire.INPUT)
        if key is None:  # said by the case's own shape
            return ()
        before = len(self._findings.problems)
        turns = self._turns.read(raw[key], (*path, key), "user")
        if len(self._findings.problems) == before and not any(turn.visible for turn in turns):
            self._findings.problem("says nothing: there is no text, and no attached file with text", (*path, key))
        for index, turn in enumerate(turns):
            if turn.calls:
                message = "tool calls of input messages are not sent: only what messages say is"
                self._findings.warn(message, (*path, key, index, "tool_calls"), silent=True)
        return turns

    def _part(self, model: type[Model], raw: JsonValue, path: Path) -> Model | None:
        return None if raw is None else self._findings.read(model, raw, path)

    def _listed(self, raw: JsonValue, path: Path) -> tuple[EvaluatorSpec, ...] | None:
        """The evaluators of a part of the file, under any of their names; None where it says nothing of them."""
        key = name_used(raw, wire.EVALUATORS)
        if key is None or not isinstance(raw, dict) or raw[key] is None:
            return None
        return self._evaluators.evaluators(raw[key], (*path, key))

    def _judges(self, raw: dict[str, JsonValue], path: Path, defaults: FileDefaults) -> GradedBy:
        """The case's own evaluators, else the file's; the rubric of its `rubrics` comes first and can stand alone."""
        specs = self._listed(raw.get("execution"), (*path, "execution"))
        key = name_used(raw, wire.EVALUATORS)
        if specs is None:
            specs = self._listed(raw, path)
        elif key is not None:
            self._findings.warn("is not read beside execution.evaluators", (*path, key), silent=True)
        if raw.get("rubrics") is None:
            return defaults.graded_by if specs is None else self.graded_by(specs, path)
        rubric = self._evaluators.parts.rubric(raw["rubrics"], (*path, "rubrics"))
        others = specs if specs is not None else defaults.own_evaluators
        return self.graded_by((*((rubric,) if rubric else ()), *others), path)

    def graded_by(self, specs: tuple[EvaluatorSpec, ...], path: Path) -> GradedBy:
        """These evaluators with the hashes of what they ask for."""
        if specs:
            self._evaluators.warn_of_no_weight((spec.weight for spec in specs), path)
        for spec in specs:
            if spec.checks_nothing:
                self._findings.warn(f"{spec.name[:80]} checks nothing: it always holds", path, silent=True)
        asked = [_without_place(as_fields(spec), self._repository) for spec in specs]
        return GradedBy(specs, fingerprint(asked), digest(_without_grader(asked)))


def name_of(raw: JsonValue, path: Path) -> str:
    """What people call the case: its id, or its place in the file where it has none that can be read."""
    name = raw.get("id") if isinstance(raw, dict) else None
    return name[:MAX_DESCRIPTION] if isinstance(name, str) and name else field_path(path)


def beginning_of(outcome: str) -> str:
    """The first line of the outcome, for lists of cases."""
    line = next((line.strip() for line in outcome.splitlines() if line.strip()), "")
    return line if len(line) <= MAX_DESCRIPTION else f"{line[: MAX_DESCRIPTION - 1]}…"


def _without_place(value: JsonValue, repository: EvalRepository) -> JsonValue:
    """The value with folders as they lie in the repository, the same in every checkout."""
    match value:
        case dict():
            return {
                key: repository.inside(FilePath(one))
                if key == "cwd" and isinstance(one, str)
                else one
                if key in _FREE
                else _without_place(one, repository)
                for key, one in value.items()
                if (key, one) not in _UNSAID
            }
        case list():
            return [_without_place(one, repository) for one in value]
        case _:
            return value


_UNSAID: Final = (("negate", False), ("floor", None))
"""What an evaluator is held to where the file says nothing of it: as it was before there was such a thing."""
_FREE: Final = frozenset({"minimums", "weights", "expected", "config"})
"""Parts whose keys are names of tools and members, or a file's own data: any word may stand there."""
_GRADER: Final = frozenset({"prompt", "command", "cwd", "judge_target"})
"""What an evaluator says of who grades, and how: these are parts of the yardstick by themselves."""


def _without_grader(value: JsonValue) -> JsonValue:
    match value:
        case dict():
            return {
                key: one if key in _FREE else _without_grader(one) for key, one in value.items() if key not in _GRADER
            }
        case list():
            return [_without_grader(one) for one in value]
        case _:
            return value


def as_compared(turns: Sequence[MessageTurn]) -> list[JsonValue]:
    """The messages, in one way for all that they may be written in: a list of one text is that text."""
    return turns_as_json([_plain(turn) for turn in turns])


def _plain(turn: MessageTurn) -> MessageTurn:
    match turn.content:
        case (TextPart(text),):
            return replace(turn, content=text)
        case _:
            return turn


def question_of(turns: Sequence[MessageTurn]) -> list[JsonValue]:
    """What is asked, with the text of all files, and which of these are guidelines."""
    return [as_compared(turns), [[file.guideline for file in turn.files] for turn in turns]]
