"""Reader for the cases of an AgentV 4 file: shared input, shared assertions, template variables.

Source: AgentV 4.42.4, its documentation of eval files, with "Per-test template variables". Features that Eval Gate does
not have are problems (`unsupported_features`). The name of an unknown variable stays in the text.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from eval_gate.formats.agentv.case_messages import MessageTurn
from eval_gate.formats.agentv.case_reader import (
    CaseConversation,
    EvaluatorSet,
    FileDefaults,
    format_case_name,
)
from eval_gate.formats.agentv.detection import find_used_name
from eval_gate.formats.agentv.eval_repository import EvalRepository
from eval_gate.formats.agentv.file_model import as_raw_json as unread
from eval_gate.formats.agentv.findings import AgentVFindings, Path
from eval_gate.formats.agentv.guidelines import Guidelines
from eval_gate.formats.agentv.v4 import file_model, unsupported_features
from eval_gate.formats.agentv.v4.conversation_reader import ONLY_TEXT, PartReader, add_conversation
from eval_gate.formats.agentv.v4.workspace_reader import WorkspaceReader
from eval_gate.formats.base import ReadOptions
from eval_gate.model import limits
from eval_gate.model.base import JsonValue, as_fields
from eval_gate.model.case import AttemptRule, AttemptStrategy, CaseWorkspace, EvalCase, describe_impossible_passes
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.digest import compute_digest, compute_fingerprint
from eval_gate.text.json_values import map_texts
from eval_gate.text.sources.validation_errors import describe_value

_NOTHING_EXPECTED: Final = "nothing is expected of the response: add criteria, expected_output or assertions"
_NOTHING_CHECKED: Final = "nothing is checked: the case passes with every response"
_VARIABLE: Final = re.compile(r"\{\{\s*+([A-Za-z_][A-Za-z0-9_.]*+)\s*+\}\}")
MAX_TEMPLATE_CHARACTERS: Final = limits.CASE_BYTES
"""Maximum characters that variables add to one case: a long one may occur in many places."""


class _FileSettings(FrozenStruct):
    """Settings of the file for all its cases, as written, because their texts can contain a case's variables."""

    input: JsonValue = None
    input_files: JsonValue = None
    assertions: JsonValue = None
    assertions_path: Path = ()
    metadata: JsonValue = None
    pass_score: float | None = None
    attempt_rule: AttemptRule | None = None
    trials: int | None = None
    passes: int | None = None


class AgentV4CaseReader(PartReader):
    """Read the cases of one AgentV 4 file, in order."""

    def __init__(self, file: str, findings: AgentVFindings, repository: EvalRepository, reading: ReadOptions) -> None:
        super().__init__(file, findings, repository, Guidelines(()))  # there are none any more: every file is input
        self._reading = reading
        self._suite = _FileSettings()
        self._workspaces = WorkspaceReader(findings, repository, self._evaluators.parts)
        self.targets: tuple[str, ...] = ()
        """Names of the targets of the file; with more than one, each is evaluated."""

    def read_header(self, document: dict[str, JsonValue], name: str) -> tuple[FileDefaults, str | None]:
        """Read the defaults of the file for its cases, and the name of the suite in results."""
        for variable, path in unsupported_features.iter_environment_references(document):
            self._findings.add_problem(unsupported_features.describe_environment_reference(variable), path)
        suite = (
            self._findings.read_part(file_model.AgentV4Suite, document, (), ignored=(name,))
            or file_model.AgentV4Suite()
        )
        execution = self._read_part(file_model.AgentV4SuiteExecution, unread(suite.execution), ("execution",))
        where, raw = self._find_assertion_list(document, ())
        if raw is None and isinstance(document.get("execution"), dict):
            where, raw = self._find_assertion_list(document["execution"], ("execution",))
        self._suite = _FileSettings(unread(suite.input), unread(suite.input_files), raw, where, unread(suite.metadata))
        if execution is not None:
            self._suite = replace(
                self._suite, pass_score=execution.threshold, attempt_rule=_build_attempt_rule(execution.trials)
            )
            self._read_trials(execution.trials, ("execution", "trials"))
        self._workspaces.read_header(unread(suite.workspace), ("workspace",))
        default = self._evaluators.read_default(suite.evaluator, ("evaluator",))
        self.targets = self._read_targets(execution, ("execution",))
        target = self.targets[0] if self.targets else suite.target
        stem = PurePosixPath(self._file).stem
        return FileDefaults(
            self.build_evaluator_set(default, ()), (), target
        ), suite.name or suite.dataset or stem.removesuffix(".eval")

    def read(self, raw: JsonValue, path: Path, defaults: FileDefaults) -> EvalCase | None:
        """Read the case at `path`, or return None if it, or anything before it in the file, has a problem."""
        self._findings.begin_case(format_case_name(raw, path))
        self._turns.begin_case()
        if not isinstance(raw, dict):
            self._findings.add_problem(f"expected a case, got {describe_value(raw)}", path)
            return None
        variables = raw.get("vars")
        template = CaseTemplate(variables if isinstance(variables, dict) else {})
        case = template.fill_fields(raw)
        entry = self._findings.read_part(file_model.AgentV4Case, case, path)
        self.check_id(case, path)
        execution = self._read_part(file_model.AgentV4Execution, case.get("execution"), (*path, "execution"))
        alone = execution is not None and execution.skip_defaults
        case_target = self._read_case_target(execution, (*path, "execution"))
        own_pass_score = execution.threshold if execution is not None else None
        self._evaluators.required_score = own_pass_score  # AgentV does not hold a required assertion to the file's
        own_workspace = case.get("workspace")
        workspace = self._workspaces.read_case(own_workspace, path if own_workspace is None else (*path, "workspace"))
        self._evaluators.parts.has_workspace = workspace is not None
        is_conversation = self._check_mode(case, path)
        messages = self._read_input(case, path, template, alone=alone, only_text=is_conversation)
        turns = []
        if "turns" in case:
            turns = self._read_turns(case["turns"], (*path, "turns"), template.fill_fields, defaults.evaluators)
        if template.too_much:
            self._findings.add_problem(
                f"more than {MAX_TEMPLATE_CHARACTERS:,} characters would be filled in", (*path, "vars")
            )
        expected = self._read_expected(case.get(file_model.OUTPUT), (*path, file_model.OUTPUT))
        judged = self._read_assertions(case, path, alone=alone)
        if judged is None:
            judged = self.build_evaluator_set((), path) if is_conversation else defaults.evaluators
        is_complete = entry is None or entry.criteria or expected or find_used_name(case, file_model.ASSERTIONS)
        if entry is not None and not (is_complete or is_conversation):
            self._findings.add_problem(f'the case "{entry.id}" is not complete: {_NOTHING_EXPECTED}', path)
        if entry is None or self._findings.problems:
            return None
        criteria = (entry.criteria or "").replace("\r\n", "\n")
        metadata = _merge_metadata(self._suite.metadata, unread(entry.metadata))
        target = case_target or defaults.target
        case_score = self._suite.pass_score if own_pass_score is None else own_pass_score
        if is_conversation and not (judged.specs or any(one.turn.evaluators for one in turns)):
            self._findings.add_warning(_NOTHING_CHECKED, path, silent=True)
        texts = CaseConversation(messages, expected, criteria, metadata)
        built = self.build_case(entry, path, texts, judged, target)
        if is_conversation:
            built = add_conversation(built, entry, turns, messages, own_pass_score)
        built = replace(built, trials=self._suite.trials, passes=self._suite.passes)
        return _add_workspace(_add_pass_rules(built, case_score, self._suite.attempt_rule), workspace)

    def _read_trials(self, trials: file_model.AgentV4Trials | None, path: Path) -> None:
        """Read trials with `passes`: each of them is an execution of its own, and not an attempt."""
        if trials is None or trials.passes is None:
            return
        if combined := trials.model_fields_set & {"strategy", "cost_limit_usd"}:
            self._findings.add_problem("excludes `passes`: keep one of them", (*path, min(combined)))
        if problem := describe_impossible_passes(trials.passes, trials.count):
            self._findings.add_problem(problem.replace("`trials`", "`count`"), (*path, "passes"))
        self._suite = replace(self._suite, attempt_rule=None, trials=trials.count, passes=trials.passes)

    def _read_targets(self, execution: file_model.AgentV4Execution | None, path: Path) -> tuple[str, ...]:
        """Read the names of the targets of a part of the file. As in AgentV, a list comes before a single one."""
        if execution is None:
            return ()
        targets = unread(execution.targets)
        if not isinstance(targets, list):
            return () if execution.target is None else (execution.target,)
        names = [one["name"] if isinstance(one, dict) and one.keys() == {"name"} else one for one in targets]
        if not names or not all(isinstance(one, str) and one for one in names):
            self._findings.add_problem(unsupported_features.TARGET_HOOKS, (*path, "targets"))
            return ()
        return tuple(map(str, names))

    def _read_case_target(self, execution: file_model.AgentV4Execution | None, path: Path) -> str | None:
        """Read the target of a case. It can have one of its own, if the file does not ask for several."""
        names = self._read_targets(execution, path)
        if self._reading.target_override is None and names:
            key = "targets" if isinstance(execution and unread(execution.targets), list) else "target"
            if len(self.targets) > 1:
                self._findings.add_problem(unsupported_features.CASE_TARGETS, (*path, key))
            elif len(names) > 1:
                self._findings.add_problem(unsupported_features.SEVERAL_CASE_TARGETS, (*path, key))
        return names[0] if names else None

    def _read_input(
        self, case: dict[str, JsonValue], path: Path, template: CaseTemplate, *, alone: bool, only_text: bool
    ) -> tuple[MessageTurn, ...]:
        """Read the messages for the target: those of the file unless `alone`, then those of the case.

        `only_text`: they are those before the first turn of a conversation.
        """
        if "input" not in case:  # the shape of the case reports it
            return ()
        problem_count = len(self._findings.problems)
        own, files = case["input"], case.get("input_files")
        where: Path = (*path, "input_files")
        if files is None and not alone and self._suite.input_files is not None:
            files, where = template.fill(self._suite.input_files), ("input_files",)
        if only_text and files is not None:
            self._findings.add_problem(ONLY_TEXT, where)
            files = None
        shared: tuple[MessageTurn, ...] = ()
        if not alone and self._suite.input is not None:
            raw = template.fill(self._suite.input)
            if only_text:
                self._require_texts(raw, ("input",))
            shared = self._read_messages(raw, ("input",), "user")
            if len(self._findings.problems) > problem_count:  # once is enough, not with every case
                self._suite = replace(self._suite, input=None)
        if files is not None and not isinstance(own, str):
            self._findings.add_problem("needs an `input` that is one text", where)
        if only_text:
            self._require_texts(own, (*path, "input"))
        own_turns = self._read_messages(own, (*path, "input"), "user", files if isinstance(own, str) else None)
        if len(self._findings.problems) == problem_count and not any(turn.is_visible for turn in own_turns):
            self._findings.add_problem("is empty: it has no text and no attached file with text", (*path, "input"))
        return (*shared, *own_turns)

    def _read_assertions(self, case: dict[str, JsonValue], path: Path, *, alone: bool) -> EvaluatorSet | None:
        """Read the case's assertions, then the file's unless `alone`; None without any."""
        own, raw = self._find_assertion_list({key: case[key] for key in file_model.ASSERTIONS[:2] if key in case}, path)
        if raw is None:
            own, raw = self._find_assertion_list(case.get("execution"), (*path, "execution"))
        if raw is None:
            own, raw = self._find_assertion_list(case, path)
        specs = self._evaluators.read_evaluators(raw, own) if raw is not None else ()
        if self._suite.assertions is not None and not alone:
            problem_count = len(self._findings.problems)
            specs += self._evaluators.read_evaluators(self._suite.assertions, self._suite.assertions_path)
            if len(self._findings.problems) > problem_count:  # once is enough, not with every case
                self._suite = replace(self._suite, assertions=None)
        if case.get("rubrics") is not None:
            rubric = self._evaluators.parts.read_rubric(case["rubrics"], (*path, "rubrics"))
            specs = (*((rubric,) if rubric else ()), *specs)
        return self.build_evaluator_set(specs, path) if specs else None


_TEMPLATED_FIELDS: Final = frozenset({*file_model.CRITERIA, "input", "input_files", file_model.OUTPUT})
"""The fields of a case, or turn, in which variables are filled in."""


def _build_attempt_rule(rule: file_model.AgentV4Trials | None) -> AttemptRule | None:
    """Build the rule of several attempts; one attempt needs none."""
    if rule is None or rule.count == 1:
        return None
    return AttemptRule(count=rule.count, strategy=AttemptStrategy(rule.strategy), max_cost_usd=rule.cost_limit_usd)


def _add_pass_rules(case: EvalCase, pass_score: float | None, rule: AttemptRule | None) -> EvalCase:
    """Add to the case how it passes. Its fingerprint changes, because results by other rules are not comparable."""
    if pass_score is None and rule is None:
        return case
    rules: list[JsonValue] = [pass_score, None if rule is None else as_fields(rule)]
    return replace(
        case,
        pass_score=pass_score,
        attempt_rule=rule,
        fingerprint=compute_fingerprint([case.fingerprint, *rules]),
        expectation_fingerprint=compute_digest([case.expectation_fingerprint, *rules]),
    )


def _add_workspace(case: EvalCase, workspace: CaseWorkspace | None) -> EvalCase:
    """Add the workspace to the case. It is a part of the prompt: with other files, results are not comparable."""
    if workspace is None:
        return case
    hooks: list[JsonValue] = [
        [name, list(hook.command), os.path.relpath(hook.cwd, workspace.folder), hook.timeout_ms]
        for name, hook in workspace.hooks.list_hooks()
    ]
    identity: list[JsonValue] = [workspace.digest, workspace.shared, hooks]
    return replace(
        case,
        workspace=workspace,
        fingerprint=compute_fingerprint([case.fingerprint, identity]),
        prompt_fingerprint=compute_digest([case.prompt_fingerprint, identity]),
    )


def _merge_metadata(suite: JsonValue, own: JsonValue) -> JsonValue:
    """Merge metadata: lists without duplicates, mappings by key; else the case's value replaces the file's."""
    if isinstance(suite, dict) and isinstance(own, dict):
        return {key: _merge_metadata(suite.get(key), own.get(key)) for key in {**own, **suite}}
    if isinstance(suite, list) and isinstance(own, list):
        by_json = {json.dumps(one, sort_keys=True): one for one in reversed([*suite, *own])}
        return list(reversed(by_json.values()))
    return suite if own is None else own


class CaseTemplate:
    """Variables of one case, filled into its texts. `too_much` is set when the size limit is exceeded."""

    def __init__(self, variables: Mapping[str, JsonValue]) -> None:
        self._variables = variables
        self._known: dict[str, tuple[JsonValue, str] | None] = {}
        self._left = MAX_TEMPLATE_CHARACTERS
        self.too_much = False

    def fill_fields(self, part: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return a case, or turn, with its variables filled in."""
        return {key: self.fill(value) if key in _TEMPLATED_FIELDS else value for key, value in part.items()}

    def fill(self, value: JsonValue) -> JsonValue:
        """Fill in all known variables. A text that is a single variable becomes the value of that variable."""
        return map_texts(value, self._fill_text) if self._variables else value

    def _fill_text(self, text: str) -> JsonValue:
        whole = _VARIABLE.fullmatch(text)
        if whole is None:
            return _VARIABLE.sub(self._replace_variable, text)
        variable = self._resolve_variable(whole[1])
        return text if variable is None else variable[0]

    def _replace_variable(self, match: re.Match[str]) -> str:
        variable = self._resolve_variable(match[1])
        return match[0] if variable is None else variable[1]

    def _resolve_variable(self, name: str) -> tuple[JsonValue, str] | None:
        """Return a variable's value and its text; a filled-in text that gets too long is recorded."""
        if name not in self._known:
            self._known[name] = _look_up_variable(self._variables, name)
        variable = self._known[name]
        self._left -= len(variable[1]) if variable else 0
        if self._left < 0:
            self.too_much = True
            return None
        return variable


def _look_up_variable(variables: Mapping[str, JsonValue], name: str) -> tuple[JsonValue, str] | None:
    """Look up the value of a dotted name, and return it with its text: JSON if it is not text."""
    value: JsonValue = dict(variables)
    for step in name.split("."):
        if not isinstance(value, dict) or step not in value:
            return None
        value = value[step]
    return value, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
