"""The evaluators of an AgentV file as data: what grades, by which prompt, command or sequence, and how much it counts.

Source: agentv evaluation spec, "Custom Evaluators", "Tool Trajectory Evaluator", "Per-evaluator weights in top-level
aggregation"; agentv behaviour 1.5, 6 and 13. What cannot judge is a problem when the file is read: an evaluator that
is dropped would make the gate smaller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from eval_gate.errors import did_you_mean
from eval_gate.formats.agentv import wire
from eval_gate.formats.agentv.evaluator_parts import PartReader
from eval_gate.formats.agentv.files import EvalRepository
from eval_gate.formats.agentv.findings import AgentVFindings, Path
from eval_gate.formats.agentv.recognising import name_used
from eval_gate.formats.agentv.today import refusals
from eval_gate.formats.agentv.today import wire as today
from eval_gate.formats.agentv.today.assertions import KINDS, AssertionReader, compared_with, said_of
from eval_gate.formats.agentv.today.refusals import HARMLESS
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
from eval_gate.text.sources.shape import kind_of

MAX_DEPTH: Final = limits.EVALUATORS_DEPTH
"""Composites within composites."""
MAX_STRANGERS: Final = 20
"""Weights of nobody that are named."""
Aggregator = WeightedAverage | ThresholdAggregator | CodeAggregator | JudgeAggregator
Kinds = Mapping[str, type[wire.Wire]]

EVALUATORS: Final[Kinds] = {
    **dict.fromkeys(wire.LLM_JUDGE, wire.LlmJudge),
    **dict.fromkeys(wire.CODE_JUDGE, wire.CodeJudge),
    **dict.fromkeys(wire.TOOL_TRAJECTORY, wire.ToolTrajectory),
    "composite": wire.Composite,
    **dict.fromkeys(("rubrics", "rubric"), today.Rubrics),
    wire.CODE_GRADER: today.CodeGrader,
    **{kind: model for kind, model in KINDS.items() if kind not in wire.TOOL_TRAJECTORY},
}
EVALUATORS_TODAY: Final[Kinds] = {
    **EVALUATORS,
    **KINDS,
    **dict.fromkeys(wire.TOOL_TRAJECTORY, KINDS[wire.TOOL_TRAJECTORY[1]]),
}
"""In a file of today the two names of the trajectory mean its newer form."""
AGGREGATORS: Final[Kinds] = {
    "weighted_average": wire.WeightedAverage,
    "threshold": today.Threshold,
    **dict.fromkeys((*wire.CODE_JUDGE, wire.CODE_GRADER), wire.CodeAggregator),
    **dict.fromkeys(wire.LLM_JUDGE, wire.JudgeAggregator),
}


class EvaluatorReader:
    """Reads the evaluators of one eval file, and says what is wrong with them."""

    def __init__(self, findings: AgentVFindings, repository: EvalRepository) -> None:
        self._findings = findings
        self._assertions = AssertionReader(findings)
        self.parts = PartReader(findings, repository)
        self.expected: JsonValue = None
        """The answer that the case which is read expects, where it is JSON."""

    def default(self, kind: str | None, path: Path) -> tuple[EvaluatorSpec, ...]:
        """What judges where nothing else is said: our judge. `kind` is the file's own word for it."""
        if kind is not None and kind not in wire.LLM_JUDGE:
            if kind in EVALUATORS:
                message = f'"{kind}" needs settings: put it into the list execution.evaluators'
            else:
                message = describe_unknown_kind(kind, EVALUATORS)
            self._findings.problem(message, path)
        return (LlmJudge(),)

    def evaluators(self, raw: JsonValue, path: Path, depth: int = 0) -> tuple[EvaluatorSpec, ...]:
        """The list at `path`, without those in which something is wrong: that was said."""
        if not isinstance(raw, list):
            self._findings.problem(f"expected a list of evaluators, got {kind_of(raw)}", path)
            return ()
        if not raw:
            self._findings.problem("an empty list: nothing would be judged", path)
        texts = [one for one in raw if isinstance(one, str)] if self._findings.today and not depth else []
        specs: list[EvaluatorSpec | None] = []
        first = True
        for index, one in enumerate(raw):
            if not texts or not isinstance(one, str):
                specs.append(self._one(one, (*path, index), depth))
            elif first:
                first = False
                specs.append(self._criteria(texts, path))
        return tuple(spec for spec in specs if spec is not None)

    def _criteria(self, texts: Sequence[str], path: Path) -> EvaluatorSpec | None:
        """The plain texts of a list: one judge is asked all of them, and each counts as an assertion of its own."""
        checks = self.parts.checks(list(texts), path)
        return RubricJudge(label="rubrics", weight=float(len(checks)), checks=checks) if checks else None

    def _one(self, raw: JsonValue, path: Path, depth: int) -> EvaluatorSpec | None:
        found = self._read(EVALUATORS_TODAY if self._findings.today else EVALUATORS, raw, path)
        if isinstance(found, wire.Evaluator):
            self._held(found, path, depth)
        match found:
            case today.Rubrics():
                return self._rubrics(found, raw, path)
            case today.CodeGrader():
                return self._code_grader(found, raw, path)
            case wire.LlmJudge() as found:
                return self._llm_judge(found, path)
            case wire.CodeJudge() as found:
                return self._code_judge(found, raw, path)
            case wire.ToolTrajectory() as found:
                return self._trajectory(found, path)
            case wire.Composite() as found:
                return self._composite(found, raw, path, depth)
            case wire.Evaluator():
                return self._assertions.read(found, newest_kind(raw), raw, path, self.expected)
        return None

    def _held(self, found: wire.Evaluator, path: Path, depth: int) -> None:
        """What the case needs of an evaluator is asked of the whole, not of a member of it."""
        if not depth:
            return
        for key in ("negate", "required", "min_score"):
            if getattr(found, key):
                self._findings.problem(refusals.MEMBER, (*path, key))

    def _rubrics(self, found: today.Rubrics, raw: JsonValue, path: Path) -> EvaluatorSpec | None:
        checks = self.parts.checks(
            wire.raw(found.criteria), (*path, name_used(raw, ("criteria", "rubrics")) or "criteria")
        )
        if not checks:
            return None
        return RubricJudge(checks=checks, judge_target=found.judge_target, **said_of(found, "rubrics"))

    def _code_grader(self, found: today.CodeGrader, raw: JsonValue, path: Path) -> EvaluatorSpec | None:
        command = self.parts.command(
            wire.raw(found.command), (*path, name_used(raw, ("command", "script")) or "command")
        )
        cwd = self.parts.folder(found.cwd, (*path, "cwd"))
        others = {key: value for key, value in (found.model_extra or {}).items() if key not in HARMLESS}
        if "target" in others:
            self._findings.problem(refusals.GRADER_TARGET, (*path, "target"))
        if "preprocessors" in others:
            self._findings.problem(refusals.refusal_of("preprocessors") or "", (*path, "preprocessors"))
        if command is None:
            return None
        return CodeGrader(command=command, cwd=cwd, config={**others, **(found.config or {})} or None, **said_of(found))

    def _read(self, kinds: Kinds, raw: JsonValue, path: Path) -> wire.Wire | None:
        """The part in the shape that its `type` says."""
        if not isinstance(raw, dict):
            self._findings.problem(f"expected a mapping with a `type`, got {kind_of(raw)}", path)
            return None
        if self._findings.today and isinstance(raw.get("prompt"), dict):
            self._findings.problem(refusals.PROMPT_COMMAND, (*path, "prompt"))
            return None
        kind = raw.get("type")
        if isinstance(kind, str) and kind not in kinds and newest_kind(raw) in kinds:
            kind = newest_kind(raw)
            raw = {**raw, "type": kind}
        if isinstance(kind, str) and kind in kinds:
            free = list(raw) if kinds[kind] is today.CodeGrader else []
            return self._findings.read(kinds[kind], raw, path, ignored=free)
        if self._findings.today and "include" in raw:
            self._findings.problem(refusals.INCLUDE, (*path, "include"))
            return None
        if "type" not in raw:
            self._findings.problem(f"is missing; known: {kind_list(kinds)}", (*path, "type"))
        else:
            message = (
                describe_unknown_kind(kind, kinds) if isinstance(kind, str) else f"expected text, got {kind_of(kind)}"
            )
            if self._findings.today and isinstance(kind, str) and "did you mean" not in message:
                message = f'"{kind[:60]}" {refusals.OWN_KIND}'
            self._findings.problem(message, (*path, "type"))
        return None

    def _llm_judge(self, found: wire.LlmJudge, path: Path) -> EvaluatorSpec | None:
        self._no_model(found, path)
        if found.rubrics is None:
            prompt = self.parts.prompt(found.prompt, (*path, "prompt"))
            return LlmJudge(
                prompt=prompt,
                include_trace=found.include_trace,
                judge_target=found.judge_target,
                **said_of(found),
            )
        if found.prompt is not None:
            message = "is not read beside `rubrics`, which are asked in a way of their own"
            self._findings.unread(message, (*path, "prompt"))
        checks = self.parts.checks(wire.raw(found.rubrics), (*path, "rubrics"))
        if not checks:
            return None
        return RubricJudge(checks=checks, judge_target=found.judge_target, **said_of(found))

    def _no_model(self, found: wire.LlmJudge | wire.JudgeAggregator, path: Path) -> None:
        if found.model is not None:
            message = "is not used: name a target that asks this model in `judge_target`"
            self._findings.unread(message, (*path, "model"))

    def _code_judge(self, found: wire.CodeJudge, raw: JsonValue, path: Path) -> EvaluatorSpec | None:
        key = name_used(raw, wire.COMMAND) or "script"
        command = self.parts.command(wire.raw(found.script), (*path, key))
        cwd = self.parts.folder(found.cwd, (*path, "cwd"))
        if command is None:
            return None
        return CodeJudge(command=command, cwd=cwd, timeout_seconds=found.timeout_seconds, **said_of(found))

    def _trajectory(self, found: wire.ToolTrajectory, path: Path) -> EvaluatorSpec | None:
        counts = found.mode == "any_order"
        value = compared_with(found, self._findings, path)
        if not value:
            return None
        return ToolTrajectory(
            mode=found.mode,
            minimums=(found.minimums or {}) if counts else {},
            expected=() if counts else self._expected(value, (*path, "expected")),
            **said_of(found),
        )

    def _expected(self, raw: JsonValue, path: Path) -> tuple[str, ...]:
        """The tools in their order."""
        if not isinstance(raw, list):
            self._findings.problem(f"expected a list of calls, got {kind_of(raw)}", path)
            return ()
        calls = [self._findings.read(wire.ExpectedCall, one, (*path, index)) for index, one in enumerate(raw)]
        for index, call in enumerate(calls):
            if call is not None and call.args is not None:
                message = "arguments are not compared: only which tools are called, and in which order"
                self._findings.warn(message, (*path, index, "args"), silent=True)
        return tuple(call.tool for call in calls if call is not None)

    def _composite(self, found: wire.Composite, raw: JsonValue, path: Path, depth: int) -> EvaluatorSpec | None:
        if depth >= MAX_DEPTH:
            self._findings.problem(f"composites are nested deeper than {MAX_DEPTH} levels", path)
            return None
        key = name_used(raw, wire.EVALUATORS)
        if key is None:
            self._findings.problem("is missing", (*path, "evaluators"))
            return None
        members = self.evaluators(wire.raw(found.evaluators), (*path, key), depth + 1)
        names = self._names(members, (*path, key))
        aggregator = self._aggregator(wire.raw(found.aggregator), (*path, "aggregator"), names)
        if not members or aggregator is None:
            return None
        if isinstance(aggregator, WeightedAverage):
            self.warn_of_no_weight([aggregator.weights.get(name, 1.0) for name in names], (*path, "aggregator"))
        return Composite(members=members, aggregator=aggregator, **said_of(found))

    def _names(self, members: Sequence[EvaluatorSpec], path: Path) -> list[str]:
        """The members' names: weights and results are told by them, so that no two may be equal."""
        names = [member.name for member in members]
        for name, times in Counter(names).items():
            if times > 1:
                self._findings.problem(f'several members are called "{name}": give each a name of its own', path)
        for member in members:
            if member.weight != 1:
                message = f'the weight of the member "{member.name}" is not read: put it into the aggregator\'s weights'
                self._findings.warn(message, path, silent=True)
        return names

    def _aggregator(self, raw: JsonValue, path: Path, names: Sequence[str]) -> Aggregator | None:
        if raw is None:
            return WeightedAverage()
        match self._read(AGGREGATORS, raw, path):
            case wire.WeightedAverage() as found:
                known = set(names)
                strangers = [name for name in found.weights if name not in known]
                for name in strangers[:MAX_STRANGERS]:
                    message = f'no member is called "{name[:60]}"{did_you_mean(name, names)}'
                    self._findings.problem(message, (*path, "weights", name))
                return WeightedAverage(weights=found.weights)
            case today.Threshold() as found:
                return ThresholdAggregator(threshold=found.threshold)
            case wire.CodeAggregator() as found:
                key = name_used(raw, wire.AGGREGATOR_COMMAND) or "path"
                command = self.parts.command(wire.raw(found.path), (*path, key))
                cwd = self.parts.folder(found.cwd, (*path, "cwd"))
                return None if command is None else CodeAggregator(command=command, cwd=cwd)
            case wire.JudgeAggregator() as found:
                self._no_model(found, path)
                prompt = self.parts.prompt(found.prompt, (*path, "prompt"), aggregates=True)
                return JudgeAggregator(prompt=prompt, judge_target=found.judge_target)
        return None

    def warn_of_no_weight(self, weights: Iterable[float], path: Path) -> None:
        """A mean of nothing is 0, whatever the answer (agentv behaviour 13)."""
        if not any(weights):
            self._findings.warn("every evaluator has weight 0: the score is always 0", path)


def kind_list(kinds: Kinds) -> str:
    """The kinds by the spec's names."""
    first: dict[type[wire.Wire], str] = {}
    for name, model in kinds.items():
        first.setdefault(model, name)
    return ", ".join(first.values())


def newest_kind(raw: JsonValue) -> str:
    """The type in the spelling of today."""
    kind = raw.get("type") if isinstance(raw, dict) else None
    return kind.replace("_", "-") if isinstance(kind, str) else ""


def describe_unknown_kind(kind: str, kinds: Kinds) -> str:
    """With the name that is meant where one letter is wrong. A name that is only near is another evaluator's."""
    meant = next((name for name in kinds if _is_slip(kind[:60], name)), None)
    hint = f' (did you mean "{meant}"?)' if meant else ""
    return f'"{kind[:60]}" is not known{hint}; known: {kind_list(kinds)}'


def _is_slip(written: str, name: str) -> bool:
    """Whether one letter is missing, too many, wrong, or has changed places with the next."""
    same = next((at for at, (one, other) in enumerate(zip(written, name, strict=False)) if one != other), None)
    at = min(len(written), len(name)) if same is None else same
    tails = (
        (written[at:], name[at + 1 :]),
        (written[at + 1 :], name[at:]),
        (written[at + 1 :], name[at + 1 :]),
        (written[at : at + 2][::-1] + written[at + 2 :], name[at:]),
    )
    return len(name) > 3 and any(one == other for one, other in tails)
