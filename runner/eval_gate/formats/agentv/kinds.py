"""The kinds of evaluators and aggregators by the names that files have for them, and how an unknown one is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from eval_gate.formats.agentv import wire
from eval_gate.formats.agentv.today import wire as today
from eval_gate.formats.agentv.today.assertions import KINDS
from eval_gate.model.base import JsonValue

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
TODAY: Final[Kinds] = {**EVALUATORS, **KINDS, **dict.fromkeys(wire.TOOL_TRAJECTORY, KINDS[wire.TOOL_TRAJECTORY[1]])}
"""In a file of today the two names of the trajectory mean its newer form."""
AGGREGATORS: Final[Kinds] = {
    "weighted_average": wire.WeightedAverage,
    "threshold": today.Threshold,
    **dict.fromkeys((*wire.CODE_JUDGE, wire.CODE_GRADER), wire.CodeAggregator),
    **dict.fromkeys(wire.LLM_JUDGE, wire.JudgeAggregator),
}


def kind_list(kinds: Kinds) -> str:
    """The kinds by the spec's names."""
    first: dict[type[wire.Wire], str] = {}
    for name, model in kinds.items():
        first.setdefault(model, name)
    return ", ".join(first.values())


def newest(raw: JsonValue) -> str:
    """The type in the spelling of today."""
    kind = raw.get("type") if isinstance(raw, dict) else None
    return kind.replace("_", "-") if isinstance(kind, str) else ""


def unknown(kind: str, kinds: Kinds) -> str:
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
