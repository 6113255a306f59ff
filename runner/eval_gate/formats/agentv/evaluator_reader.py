"""Reader for the evaluators of an AgentV eval file.

Source: agentv evaluation spec, "Custom Evaluators", "Tool Trajectory Evaluator", "Per-evaluator weights in top-level
aggregation"; agentv behaviour 1.5, 6 and 13. An evaluator that cannot run is a problem of the file: without it, the
case would pass more easily.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from eval_gate.errors import format_suggestion
from eval_gate.formats.agentv import file_model
from eval_gate.formats.agentv.detection import find_used_name
from eval_gate.formats.agentv.eval_repository import EvalRepository
from eval_gate.formats.agentv.evaluator_parts import EvaluatorPartReader
from eval_gate.formats.agentv.findings import AgentVFindings, Path
from eval_gate.formats.agentv.v4 import file_model as today
from eval_gate.formats.agentv.v4 import unsupported_features
from eval_gate.formats.agentv.v4.assertion_reader import (
    ASSERTION_MODELS,
    AssertionReader,
    read_common_fields,
    read_comparison_value,
)
from eval_gate.formats.agentv.v4.unsupported_features import IGNORED_KEYS
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.model.specs.evaluator import (
    CodeAggregator,
    CodeGrader,
    CodeJudge,
    Composite,
    EvaluatorSpec,
    JudgeAggregator,
    LlmJudge,
    RubricJudge,
    ThresholdAggregator,
    ToolTrajectory,
    WeightedAverage,
)
from eval_gate.struct import replace
from eval_gate.text.sources.validation_errors import describe_value

MAX_DEPTH: Final = limits.EVALUATORS_DEPTH
MAX_UNKNOWN_MEMBERS: Final = 20
"""Weights without a member that are reported."""
Aggregator = WeightedAverage | ThresholdAggregator | CodeAggregator | JudgeAggregator
ModelsByType = Mapping[str, type[file_model.AgentVFileModel]]

EVALUATOR_MODELS: Final[ModelsByType] = {
    **dict.fromkeys(file_model.LLM_JUDGE, file_model.AgentVLlmJudge),
    **dict.fromkeys(file_model.CODE_JUDGE, file_model.AgentVCodeJudge),
    **dict.fromkeys(file_model.TOOL_TRAJECTORY, file_model.AgentVToolTrajectory),
    "composite": file_model.AgentVComposite,
    **dict.fromkeys(("rubrics", "rubric"), today.RubricsAssertion),
    file_model.CODE_GRADER: today.CodeGraderAssertion,
    **{kind: model for kind, model in ASSERTION_MODELS.items() if kind not in file_model.TOOL_TRAJECTORY},
}
V4_EVALUATOR_MODELS: Final[ModelsByType] = {
    **EVALUATOR_MODELS,
    **ASSERTION_MODELS,
    **dict.fromkeys(file_model.TOOL_TRAJECTORY, ASSERTION_MODELS[file_model.TOOL_TRAJECTORY[1]]),
}
"""In a file of AgentV 4, both names of the trajectory mean its newer form."""
AGGREGATOR_MODELS: Final[ModelsByType] = {
    "weighted_average": file_model.AgentVWeightedAverage,
    "threshold": today.AgentV4ThresholdAggregator,
    **dict.fromkeys((*file_model.CODE_JUDGE, file_model.CODE_GRADER), file_model.AgentVCodeAggregator),
    **dict.fromkeys(file_model.LLM_JUDGE, file_model.AgentVJudgeAggregator),
}


class EvaluatorReader:
    """Read the evaluators of one eval file, and record what is wrong with them."""

    def __init__(self, findings: AgentVFindings, repository: EvalRepository) -> None:
        self._findings = findings
        self._assertions = AssertionReader(findings)
        self.parts = EvaluatorPartReader(findings, repository)
        self.required_score: float | None = None
        """Default minimum score of a required assertion of the case: the case's own threshold."""
        self.expected: JsonValue = None
        """Expected output of the case that is being read, if it is JSON."""

    def read_default(self, kind: str | None, path: Path) -> tuple[EvaluatorSpec, ...]:
        """Return the default LLM judge; report a `kind` that the file names and that is another evaluator."""
        if kind is not None and kind not in file_model.LLM_JUDGE:
            if kind in EVALUATOR_MODELS:
                message = f'"{kind}" needs settings: put it into the list execution.evaluators'
            else:
                message = describe_unknown_kind(kind, EVALUATOR_MODELS)
            self._findings.add_problem(message, path)
        return (LlmJudge(),)

    def read_evaluators(
        self, raw: JsonValue, path: Path, depth: int = 0, *, of_turn: bool = False
    ) -> tuple[EvaluatorSpec, ...]:
        """Read the list of evaluators at `path`, without those that have a problem, which is reported.

        `of_turn`: the texts of the list together weigh as much as one assertion, and not each of them (AgentV).
        """
        if not isinstance(raw, list):
            self._findings.add_problem(f"expected a list of evaluators, got {describe_value(raw)}", path)
            return ()
        if not raw:
            self._findings.add_problem("an empty list: nothing would be evaluated", path)
        texts = [one for one in raw if isinstance(one, str)] if self._findings.today and not depth else []
        specs: list[EvaluatorSpec | None] = []
        first = True
        for index, one in enumerate(raw):
            if not texts or not isinstance(one, str):
                specs.append(self._read_evaluator(one, (*path, index), depth))
            elif first:
                first = False
                specs.append(self._build_criteria_rubric(texts, path, of_turn=of_turn))
        return tuple(spec for spec in specs if spec is not None)

    def _build_criteria_rubric(self, texts: Sequence[str], path: Path, *, of_turn: bool) -> EvaluatorSpec | None:
        """Build one rubric, scored in one request. Its texts weigh one assertion each; those of a turn, one together.

        A text of a turn is not required: it only lowers the score of its turn (AgentV 4.42.4).
        """
        checks = self.parts.read_checks(list(texts), path)
        if of_turn:
            checks = tuple(replace(check, required=False) for check in checks)
        weight = 1.0 if of_turn else float(len(checks))
        return RubricJudge(label="rubrics", weight=weight, checks=checks) if checks else None

    def _read_evaluator(self, raw: JsonValue, path: Path, depth: int) -> EvaluatorSpec | None:
        entry = self._read_by_type(V4_EVALUATOR_MODELS if self._findings.today else EVALUATOR_MODELS, raw, path)
        if isinstance(entry, file_model.AgentVEvaluator):
            self._check_member_keys(entry, path, depth)
            if entry.required is True and entry.min_score is None and self.required_score is not None:
                entry = entry.model_copy(update={"min_score": self.required_score})
        match entry:
            case today.RubricsAssertion():
                return self._read_rubrics(entry, raw, path)
            case today.CodeGraderAssertion():
                return self._read_code_grader(entry, raw, path)
            case file_model.AgentVLlmJudge() as entry:
                return self._read_llm_judge(entry, path)
            case file_model.AgentVCodeJudge() as entry:
                return self._read_code_judge(entry, raw, path)
            case file_model.AgentVToolTrajectory() as entry:
                return self._read_trajectory(entry, path)
            case file_model.AgentVComposite() as entry:
                return self._read_composite(entry, raw, path, depth)
            case file_model.AgentVEvaluator():
                return self._assertions.read(entry, normalize_kind(raw), raw, path, self.expected)
        return None

    def _check_member_keys(self, entry: file_model.AgentVEvaluator, path: Path, depth: int) -> None:
        """Report keys of a composite's member that apply only to the evaluator as a whole, such as `required`."""
        if not depth:
            return
        for key in ("negate", "required", "min_score"):
            if getattr(entry, key):
                self._findings.add_problem(unsupported_features.MEMBER_KEY, (*path, key))

    def _read_rubrics(self, entry: today.RubricsAssertion, raw: JsonValue, path: Path) -> EvaluatorSpec | None:
        checks = self.parts.read_checks(
            file_model.as_raw_json(entry.criteria), (*path, find_used_name(raw, ("criteria", "rubrics")) or "criteria")
        )
        if not checks:
            return None
        return RubricJudge(checks=checks, judge_target=entry.judge_target, **read_common_fields(entry, "rubrics"))

    def _read_code_grader(self, entry: today.CodeGraderAssertion, raw: JsonValue, path: Path) -> EvaluatorSpec | None:
        command = self.parts.read_command(
            file_model.as_raw_json(entry.command), (*path, find_used_name(raw, ("command", "script")) or "command")
        )
        cwd = self.parts.resolve_folder(entry.cwd, (*path, "cwd"))
        extra = {key: value for key, value in (entry.model_extra or {}).items() if key not in IGNORED_KEYS}
        if "target" in extra:
            self._findings.add_problem(unsupported_features.GRADER_TARGET, (*path, "target"))
        if "preprocessors" in extra:
            self._findings.add_problem(
                unsupported_features.describe_unsupported_key("preprocessors") or "", (*path, "preprocessors")
            )
        if command is None:
            return None
        return CodeGrader(
            command=command, cwd=cwd, config={**extra, **(entry.config or {})} or None, **read_common_fields(entry)
        )

    def _read_by_type(self, kinds: ModelsByType, raw: JsonValue, path: Path) -> file_model.AgentVFileModel | None:
        """Read a part of the file with the model of its `type`, or return None after reporting a problem."""
        if not isinstance(raw, dict):
            self._findings.add_problem(f"expected a mapping with a `type`, got {describe_value(raw)}", path)
            return None
        if self._findings.today and isinstance(raw.get("prompt"), dict):
            self._findings.add_problem(unsupported_features.PROMPT_COMMAND, (*path, "prompt"))
            return None
        kind = raw.get("type")
        if isinstance(kind, str) and kind not in kinds and normalize_kind(raw) in kinds:
            kind = normalize_kind(raw)
            raw = {**raw, "type": kind}
        if isinstance(kind, str) and kind in kinds:
            free = list(raw) if kinds[kind] is today.CodeGraderAssertion else []
            return self._findings.read_part(kinds[kind], raw, path, ignored=free)
        if self._findings.today and "include" in raw:
            self._findings.add_problem(unsupported_features.INCLUDE, (*path, "include"))
            return None
        if "type" not in raw:
            self._findings.add_problem(f"is missing; known: {format_kinds(kinds)}", (*path, "type"))
        else:
            message = (
                describe_unknown_kind(kind, kinds)
                if isinstance(kind, str)
                else f"expected text, got {describe_value(kind)}"
            )
            if self._findings.today and isinstance(kind, str) and "did you mean" not in message:
                message = f'"{kind[:60]}" {unsupported_features.CUSTOM_EVALUATOR}'
            self._findings.add_problem(message, (*path, "type"))
        return None

    def _read_llm_judge(self, entry: file_model.AgentVLlmJudge, path: Path) -> EvaluatorSpec | None:
        self._warn_unused_model(entry, path)
        if entry.rubrics is None:
            prompt = self.parts.read_prompt(entry.prompt, (*path, "prompt"))
            return LlmJudge(
                prompt=prompt,
                include_trace=entry.include_trace,
                judge_target=entry.judge_target,
                **read_common_fields(entry),
            )
        if entry.prompt is not None:
            message = "is ignored: `rubrics` have their own prompt"
            self._findings.add_unsupported(message, (*path, "prompt"))
        checks = self.parts.read_checks(file_model.as_raw_json(entry.rubrics), (*path, "rubrics"))
        if not checks:
            return None
        return RubricJudge(checks=checks, judge_target=entry.judge_target, **read_common_fields(entry))

    def _warn_unused_model(
        self, entry: file_model.AgentVLlmJudge | file_model.AgentVJudgeAggregator, path: Path
    ) -> None:
        if entry.model is not None:
            message = "is ignored: name a target with this model in `judge_target`"
            self._findings.add_unsupported(message, (*path, "model"))

    def _read_code_judge(self, entry: file_model.AgentVCodeJudge, raw: JsonValue, path: Path) -> EvaluatorSpec | None:
        key = find_used_name(raw, file_model.COMMAND) or "script"
        command = self.parts.read_command(file_model.as_raw_json(entry.script), (*path, key))
        cwd = self.parts.resolve_folder(entry.cwd, (*path, "cwd"))
        if command is None:
            return None
        return CodeJudge(command=command, cwd=cwd, timeout_seconds=entry.timeout_seconds, **read_common_fields(entry))

    def _read_trajectory(self, entry: file_model.AgentVToolTrajectory, path: Path) -> EvaluatorSpec | None:
        counts = entry.mode == "any_order"
        value = read_comparison_value(entry, self._findings, path)
        if not value:
            return None
        return ToolTrajectory(
            mode=entry.mode,
            minimums=(entry.minimums or {}) if counts else {},
            expected=() if counts else self._read_expected_calls(value, (*path, "expected")),
            **read_common_fields(entry),
        )

    def _read_expected_calls(self, raw: JsonValue, path: Path) -> tuple[str, ...]:
        """Read the expected tool names, in their order. Arguments get a warning, because they are not compared."""
        if not isinstance(raw, list):
            self._findings.add_problem(f"expected a list of calls, got {describe_value(raw)}", path)
            return ()
        calls = [
            self._findings.read_part(file_model.AgentVExpectedCall, one, (*path, index))
            for index, one in enumerate(raw)
        ]
        for index, call in enumerate(calls):
            if call is not None and call.args is not None:
                message = "arguments are not compared, only the tools and their order"
                self._findings.add_warning(message, (*path, index, "args"), silent=True)
        return tuple(call.tool for call in calls if call is not None)

    def _read_composite(
        self, entry: file_model.AgentVComposite, raw: JsonValue, path: Path, depth: int
    ) -> EvaluatorSpec | None:
        if depth >= MAX_DEPTH:
            self._findings.add_problem(f"composites are nested deeper than {MAX_DEPTH} levels", path)
            return None
        key = find_used_name(raw, file_model.EVALUATORS)
        if key is None:
            self._findings.add_problem("is missing", (*path, "evaluators"))
            return None
        members = self.read_evaluators(file_model.as_raw_json(entry.evaluators), (*path, key), depth + 1)
        names = self._check_member_names(members, (*path, key))
        aggregator = self._read_aggregator(file_model.as_raw_json(entry.aggregator), (*path, "aggregator"), names)
        if not members or aggregator is None:
            return None
        if isinstance(aggregator, WeightedAverage):
            self.warn_if_no_weight([aggregator.weights.get(name, 1.0) for name in names], (*path, "aggregator"))
        return Composite(members=members, aggregator=aggregator, **read_common_fields(entry))

    def _check_member_names(self, members: Sequence[EvaluatorSpec], path: Path) -> list[str]:
        """Check that the members' names, by which weights and results refer to them, are unique; return them."""
        names = [member.name for member in members]
        for name, times in Counter(names).items():
            if times > 1:
                self._findings.add_problem(f'several members have the name "{name}": give each its own name', path)
        # a member's own weight is not read
        for member in members:
            if member.weight != 1:
                message = f'the weight of the member "{member.name}" is ignored: put it into the aggregator\'s weights'
                self._findings.add_warning(message, path, silent=True)
        return names

    def _read_aggregator(self, raw: JsonValue, path: Path, names: Sequence[str]) -> Aggregator | None:
        if raw is None:
            return WeightedAverage()
        match self._read_by_type(AGGREGATOR_MODELS, raw, path):
            case file_model.AgentVWeightedAverage() as entry:
                members = set(names)
                strangers = [name for name in entry.weights if name not in members]
                for name in strangers[:MAX_UNKNOWN_MEMBERS]:
                    message = f'no member has the name "{name[:60]}"{format_suggestion(name, names)}'
                    self._findings.add_problem(message, (*path, "weights", name))
                return WeightedAverage(weights=entry.weights)
            case today.AgentV4ThresholdAggregator() as entry:
                return ThresholdAggregator(threshold=entry.threshold)
            case file_model.AgentVCodeAggregator() as entry:
                key = find_used_name(raw, file_model.AGGREGATOR_COMMAND) or "path"
                command = self.parts.read_command(file_model.as_raw_json(entry.path), (*path, key))
                cwd = self.parts.resolve_folder(entry.cwd, (*path, "cwd"))
                return None if command is None else CodeAggregator(command=command, cwd=cwd)
            case file_model.AgentVJudgeAggregator() as entry:
                self._warn_unused_model(entry, path)
                prompt = self.parts.read_prompt(entry.prompt, (*path, "prompt"), aggregates=True)
                return JudgeAggregator(prompt=prompt, judge_target=entry.judge_target)
        return None

    def warn_if_no_weight(self, weights: Iterable[float], path: Path) -> None:
        """Warn if every weight is 0, because the score is then always 0 (agentv behaviour 13)."""
        if not any(weights):
            self._findings.add_warning("every evaluator has weight 0: the score is always 0", path)


def format_kinds(kinds: ModelsByType) -> str:
    """Format the list of evaluator types, each by its name in the specification."""
    first: dict[type[file_model.AgentVFileModel], str] = {}
    for name, model in kinds.items():
        first.setdefault(model, name)
    return ", ".join(first.values())


def normalize_kind(raw: JsonValue) -> str:
    """Return the `type` in its present spelling, with hyphens, or an empty text if it is not text."""
    kind = raw.get("type") if isinstance(raw, dict) else None
    return kind.replace("_", "-") if isinstance(kind, str) else ""


def describe_unknown_kind(kind: str, kinds: ModelsByType) -> str:
    """Correct a name with one wrong letter. A name that is less near is another evaluator's."""
    meant = next((name for name in kinds if _is_one_letter_typo(kind[:60], name)), None)
    hint = f' (did you mean "{meant}"?)' if meant else ""
    return f'"{kind[:60]}" is not known{hint}; known: {format_kinds(kinds)}'


def _is_one_letter_typo(word: str, name: str) -> bool:
    """Whether one letter is missing, too many, wrong, or has changed places with the next."""
    same = next((at for at, (one, other) in enumerate(zip(word, name, strict=False)) if one != other), None)
    at = min(len(word), len(name)) if same is None else same
    tails = (
        (word[at:], name[at + 1 :]),
        (word[at + 1 :], name[at:]),
        (word[at + 1 :], name[at + 1 :]),
        (word[at : at + 2][::-1] + word[at + 2 :], name[at:]),
    )
    return len(name) > 3 and any(one == other for one, other in tails)
