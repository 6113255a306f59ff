"""The cases of a file of today's AgentV: the file's own input and assertions go before and behind those of each case.

Source: AgentV 4.42.4, its documentation of eval files, with "Per-test template variables". What it has and this program
has not is refused (`refusals`). A name of a variable that is not known stays as it is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from eval_gate.formats.agentv.cases import (
    CaseConversation,
    CaseReader,
    FileDefaults,
    GradedBy,
    name_of,
)
from eval_gate.formats.agentv.files import EvalRepository
from eval_gate.formats.agentv.findings import AgentVFindings, Path
from eval_gate.formats.agentv.guidelines import Guidelines
from eval_gate.formats.agentv.recognising import name_used
from eval_gate.formats.agentv.today import refusals, wire
from eval_gate.formats.agentv.turns import MessageTurn
from eval_gate.formats.agentv.wire import raw as unread
from eval_gate.formats.base import ReadOptions
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalCase
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.foreign.json import ForeignJsonError, read_foreign
from eval_gate.text.sources.shape import kind_of

_NOTHING: Final = "nothing is expected of the answer: say it in criteria, expected_output or assertions"
_VARIABLE: Final = re.compile(r"\{\{\s*+([A-Za-z_][A-Za-z0-9_.]*+)\s*+\}\}")
MAX_FILLED: Final = limits.CASE_BYTES
"""Characters that variables may put into one case: a long one may stand in many places."""


class _File(FrozenStruct):
    """What the file says for all its cases: as it is written, for texts in it may hold a case's variables."""

    input: JsonValue = None
    input_files: JsonValue = None
    assertions: JsonValue = None
    where: Path = ()
    metadata: JsonValue = None


class TodayReader(CaseReader):
    """Reads the cases of one file, in order."""

    def __init__(self, file: str, findings: AgentVFindings, repository: EvalRepository, reading: ReadOptions) -> None:
        super().__init__(file, findings, repository, Guidelines(()))  # there are none any more: every file is input
        self._reading = reading
        self._suite = _File()

    def begin(self, document: dict[str, JsonValue], name: str) -> tuple[FileDefaults, str | None]:
        """What the file says for all, and its name in results."""
        for variable, path in refusals.environment_variables(document):
            message = f"`${{{{ {variable} }}}}` is not supported: nothing of the environment is put into an eval file"
            self._findings.problem(message, path)
        suite = self._findings.read(wire.Suite, document, (), ignored=(name,)) or wire.Suite()
        execution = self._part(wire.Execution, unread(suite.execution), ("execution",))
        where, raw = self._list_of(document, ())
        if raw is None and isinstance(document.get("execution"), dict):
            where, raw = self._list_of(document["execution"], ("execution",))
        self._suite = _File(unread(suite.input), unread(suite.input_files), raw, where, unread(suite.metadata))
        default = self._evaluators.default(suite.evaluator, ("evaluator",))
        target = self._target(execution, ("execution",)) or suite.target
        stem = PurePosixPath(self._file).stem
        return FileDefaults(self.graded_by(default, ()), (), target), suite.name or suite.dataset or stem.removesuffix(
            ".eval"
        )

    def read(self, raw: JsonValue, path: Path, defaults: FileDefaults) -> EvalCase | None:
        """The case at `path`; None when something is wrong with it, or was with anything before it."""
        self._findings.begin_case(name_of(raw, path))
        self._turns.begin_case()
        if not isinstance(raw, dict):
            self._findings.problem(f"expected a case, got {kind_of(raw)}", path)
            return None
        variables = raw.get("vars")
        template = CaseTemplate(variables if isinstance(variables, dict) else {})
        case = {key: template.filled(value) if key in _FILLED else value for key, value in raw.items()}
        found = self._findings.read(wire.Case, case, path)
        self.identify(case, path)
        execution = self._part(wire.Execution, case.get("execution"), (*path, "execution"))
        alone = execution is not None and execution.skip_defaults
        turns = self._input(case, path, template, alone=alone)
        if template.too_much:
            self._findings.problem(f"more than {MAX_FILLED:,} characters are filled in", (*path, "vars"))
        key = name_used(case, wire.OUTPUT)
        expected = self._expected(case[key], (*path, key)) if key and case[key] is not None else ()
        self._evaluators.expected = _json_of(expected)
        judged = self._assertions(case, path, defaults, alone=alone)
        if found is not None and not (found.criteria or expected or name_used(case, wire.ASSERTIONS)):
            self._findings.problem(f'the case "{found.id}" is not complete: {_NOTHING}', path)
        if found is None or self._findings.problems:
            return None
        criteria = (found.criteria or "").replace("\r\n", "\n")
        said = CaseConversation(turns, expected, criteria, _merged(self._suite.metadata, unread(found.metadata)))
        target = self._target(execution, (*path, "execution")) or defaults.target
        return self.build_case(found, path, said, judged, target)

    def _target(self, execution: wire.Execution | None, path: Path) -> str | None:
        """Who is asked: of a list the only one. Which of several, the person says who runs it."""
        if execution is None:
            return None
        targets = unread(execution.targets)
        if not isinstance(targets, list) or execution.target is not None:
            return execution.target
        if len(targets) > 1 and self._reading.answers_instead is None:
            self._findings.problem(refusals.SEVERAL_TARGETS, (*path, "targets"))
        if not targets or not all(isinstance(one, str) for one in targets):
            self._findings.problem(refusals.TARGET_HOOKS, (*path, "targets"))
            return None
        return str(targets[0])

    def _input(
        self, case: dict[str, JsonValue], path: Path, template: CaseTemplate, *, alone: bool
    ) -> tuple[MessageTurn, ...]:
        """What is put to the target: what the file says to all, then what the case says."""
        if "input" not in case:  # said by the case's own shape
            return ()
        before = len(self._findings.problems)
        own, files = case["input"], case.get("input_files")
        where: Path = (*path, "input_files")
        if files is None and not alone and self._suite.input_files is not None:
            files, where = template.filled(self._suite.input_files), ("input_files",)
        shared: tuple[MessageTurn, ...] = ()
        if not alone and self._suite.input is not None:
            shared = self._messages(template.filled(self._suite.input), ("input",), "user")
            if len(self._findings.problems) > before:  # the same
                self._suite = replace(self._suite, input=None)
        if files is not None and not isinstance(own, str):
            self._findings.problem("stands beside an `input` that is one text, and this one is not", where)
        own_turns = self._messages(own, (*path, "input"), "user", files if isinstance(own, str) else None)
        if len(self._findings.problems) == before and not any(turn.visible for turn in own_turns):
            self._findings.problem("says nothing: there is no text, and no attached file with text", (*path, "input"))
        return (*shared, *own_turns)

    def _messages(self, raw: JsonValue, path: Path, role: str, files: JsonValue = None) -> tuple[MessageTurn, ...]:
        """Messages as they may be written: a list, one of them, a text, or an object that is sent as JSON."""
        if isinstance(files, list) and isinstance(raw, str):
            parts: list[JsonValue] = [{"type": "file", "value": one} for one in files]
            raw = [{"role": role, "content": [*parts, {"type": "text", "value": raw}]}]
        elif isinstance(raw, dict):
            raw = [raw if "role" in raw else {"role": role, "content": raw}]
        elif isinstance(raw, list):
            raw = [_with_parts(one) for one in raw]
            for index, one in enumerate(raw):
                self._refuse_images(one, (*path, index, "content"))
        return self._turns.read(raw, path, "assistant" if role == "assistant" else "user")

    def _refuse_images(self, message: JsonValue, path: Path) -> None:
        content = message.get("content") if isinstance(message, dict) else None
        for index, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, dict) and part.get("type") == "image":
                self._findings.problem(refusals.IMAGE, (*path, index))

    def _expected(self, raw: JsonValue, path: Path) -> tuple[MessageTurn, ...]:
        if isinstance(raw, list) and not (raw and isinstance(raw[0], dict) and "role" in raw[0]):
            message = "a list that is no list of messages is not supported: put it under a key of an object"
            self._findings.problem(message, path)
            return ()
        return self._messages(raw, path, "assistant")

    def _list_of(self, raw: JsonValue, path: Path) -> tuple[Path, JsonValue]:
        """The list of assertions of a part of the file, and where it stands: under the first of its names."""
        key = name_used(raw, wire.ASSERTIONS)
        return ((*path, key), raw[key]) if key is not None and isinstance(raw, dict) else ((), None)

    def _assertions(self, case: dict[str, JsonValue], path: Path, defaults: FileDefaults, *, alone: bool) -> GradedBy:
        """The case's own, then the file's unless the case stands alone; the default judge where there are none."""
        own, raw = self._list_of({key: case[key] for key in wire.ASSERTIONS[:2] if key in case}, path)
        if raw is None:
            own, raw = self._list_of(case.get("execution"), (*path, "execution"))
        if raw is None:
            own, raw = self._list_of(case, path)
        specs = self._evaluators.evaluators(raw, own) if raw is not None else ()
        if self._suite.assertions is not None and not alone:
            before = len(self._findings.problems)
            specs += self._evaluators.evaluators(self._suite.assertions, self._suite.where)
            if len(self._findings.problems) > before:  # that was said, and is not said again with every case
                self._suite = replace(self._suite, assertions=None)
        if case.get("rubrics") is not None:
            rubric = self._evaluators.parts.rubric(case["rubrics"], (*path, "rubrics"))
            specs = (*((rubric,) if rubric else ()), *specs)
        return self.graded_by(specs, path) if specs else defaults.graded_by


_FILLED: Final = frozenset({*wire.CRITERIA, "input", "input_files", *wire.OUTPUT})
"""The fields of a case in which variables are filled in."""


def _with_parts(message: JsonValue) -> JsonValue:
    """The message, with a text among its parts written as the part that it is."""
    if not isinstance(message, dict) or not isinstance(message.get("content"), list):
        return message
    content = message["content"]
    assert isinstance(content, list)
    parts: list[JsonValue] = [{"type": "text", "value": one} if isinstance(one, str) else one for one in content]
    return {**message, "content": parts}


def _json_of(expected: tuple[MessageTurn, ...]) -> JsonValue:
    """The last expected answer that is an object, or a text that holds one."""
    for turn in reversed(expected):
        if turn.role != "assistant" or turn.content is None:
            continue
        if not isinstance(turn.content, str | tuple):
            return dict(turn.content)
        text = "".join(part.text for part in turn.parts)
        try:
            value = read_foreign(text[text.find("{") : text.rfind("}") + 1])
        except ForeignJsonError:
            continue
        if isinstance(value, dict):
            return value
    return None


def _merged(suite: JsonValue, own: JsonValue) -> JsonValue:
    """The file's metadata with the case's: lists are joined, mappings go into one another, else the case's counts."""
    if isinstance(suite, dict) and isinstance(own, dict):
        return {key: _merged(suite.get(key), own.get(key)) for key in {**own, **suite}}
    if isinstance(suite, list) and isinstance(own, list):
        seen = {json.dumps(one, sort_keys=True): one for one in reversed([*suite, *own])}
        return list(reversed(seen.values()))
    return suite if own is None else own


class CaseTemplate:
    """Fills in the variables of one case. `too_much`: there was more to fill in than a case may say."""

    def __init__(self, variables: Mapping[str, JsonValue]) -> None:
        self._variables = variables
        self._known: dict[str, tuple[JsonValue, str] | None] = {}
        self._left = MAX_FILLED
        self.too_much = False

    def filled(self, value: JsonValue) -> JsonValue:
        """The value with all variables filled in; a text that is nothing but one becomes what it stands for."""
        if not self._variables:
            return value
        match value:
            case str():
                whole = _VARIABLE.fullmatch(value)
                if whole is None:
                    return _VARIABLE.sub(self._replacement, value)
                found = self._found(whole[1])
                return value if found is None else found[0]
            case list():
                return [self.filled(one) for one in value]
            case dict():
                return {key: self.filled(one) for key, one in value.items()}
            case _:
                return value

    def _replacement(self, match: re.Match[str]) -> str:
        found = self._found(match[1])
        return match[0] if found is None else found[1]

    def _found(self, name: str) -> tuple[JsonValue, str] | None:
        """The value of this name and its text; None where there is none, and for what would be too much."""
        if name not in self._known:
            self._known[name] = _look_up(self._variables, name)
        found = self._known[name]
        self._left -= len(found[1]) if found else 0
        if self._left < 0:
            self.too_much = True
            return None
        return found


def _look_up(variables: Mapping[str, JsonValue], name: str) -> tuple[JsonValue, str] | None:
    """The value at this dotted name, and as a text."""
    value: JsonValue = dict(variables)
    for step in name.split("."):
        if not isinstance(value, dict) or step not in value:
            return None
        value = value[step]
    return value, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
