"""Targets as LLM judges, and handling of cases that no judge can score.

Source of the rubric tier: tool-forge interfaces, "RubricEvalCase".
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from eval_gate.config.settings import RubricMode
from eval_gate.engine.model_role import ModelRole, format_identity
from eval_gate.engine.simulated_user import SimulatedUserPlayer
from eval_gate.evaluators.base import EvaluatorError, JudgeReply
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalCase, EvalSuite
from eval_gate.model.conversation import Message
from eval_gate.model.result import NO_JUDGE
from eval_gate.model.setup import TargetIdentity
from eval_gate.model.specs.evaluator import Composite, EvaluatorSpec, JudgeAggregator, LlmJudge, Rubric, RubricJudge
from eval_gate.struct import FrozenStruct, field, replace
from eval_gate.targets.base import Request, Target, TargetError
from eval_gate.targets.secret_masking import MaskedTarget
from eval_gate.targets.setup import TargetPrograms
from eval_gate.text.quoting import quote_name

RUBRICS_OFF_REASON = "rubric cases are switched off (rubric: never)"


class ModelJudge(ModelRole):
    """LLM judge that calls a model, with retries, rate limits and recording."""

    role = "judge"
    programs: None = None
    """A model runs no command."""


class TargetJudge:
    """LLM judge that calls any other target: an HTTP agent, a command, a mock."""

    def __init__(self, name: str, target: Target, timeout_s: float) -> None:
        self._name = name
        self._target = target
        self._timeout_s = None if target.timeout_ms is not None else timeout_s

    @property
    def identity(self) -> str:
        """Name and address of the judge, without credentials."""
        target = self._target.identity
        return format_identity(self._name, target.provider, target.identity)

    @property
    def target_identity(self) -> TargetIdentity:
        """Identity and setup of the judge as a target."""
        return replace(self._target.identity, name=self._name, identity=self.identity)

    @property
    def programs(self) -> TargetPrograms | None:
        """Commands of a judge that is a program; None for any other."""
        return self._target.programs if isinstance(self._target, MaskedTarget) else None

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices of the target that is the judge."""
        return tuple(f"judge {self._name}: {notice}" for notice in self._target.notices)

    async def ask(self, system: str, user: str, schema: Mapping[str, JsonValue] | None = None) -> JudgeReply:
        """Send one prompt, without the schema: only models take one.

        Raises EvaluatorError if no response arrives in time.
        """
        messages = (Message(role="system", content=system), Message(role="user", content=user))
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._target.respond(Request("judge", messages))
        except TargetError as error:
            raise EvaluatorError(
                f"the judge {quote_name(self._name)} gave no response: {error.message}", hint=error.hint
            ) from error
        except TimeoutError as error:
            what = f"the judge {quote_name(self._name)} did not respond within {self._timeout_s:g} s"
            raise EvaluatorError(what) from error
        if response.dry_run:
            raise EvaluatorError(f"the judge {quote_name(self._name)} is a dry run: it got no request")
        return JudgeReply(response.text, response.usage, response.cost_usd)

    async def aclose(self) -> None:
        """Close the target."""
        await self._target.aclose()


AnyJudge: TypeAlias = ModelJudge | TargetJudge
_NO_JUDGES: Mapping[str, AnyJudge] = MappingProxyType({})


class Judges(FrozenStruct):
    """Judges and simulated users. `defaults`: by eval file and target; `by_file`: by eval file and judge name."""

    defaults: Mapping[tuple[str, str | None], AnyJudge] = field(default_factory=dict)
    by_file: Mapping[str, Mapping[str, AnyJudge]] = field(default_factory=dict)
    users: Mapping[tuple[str, str | None], SimulatedUserPlayer] = field(default_factory=dict)
    """Simulated users, by eval file and target as `defaults`."""

    def find_default(self, case: EvalCase) -> AnyJudge | None:
        """Find the judge for evaluators that name none."""
        return self.defaults.get((case.suite, case.target))

    def get_named(self, suite: str) -> Mapping[str, AnyJudge]:
        """Return the judges that evaluators of this file name."""
        return self.by_file.get(suite, _NO_JUDGES)

    def find_user(self, case: EvalCase) -> SimulatedUserPlayer | None:
        """Find the player of the simulated user of a case; None for a case without one."""
        has_user = case.conversation is not None and case.conversation.user is not None
        return self.users.get((case.suite, case.target)) if has_user else None

    def list_judges(self) -> list[AnyJudge]:
        """List all judges, each once."""
        every = [*self.defaults.values(), *(judge for names in self.by_file.values() for judge in names.values())]
        return list({id(judge): judge for judge in every}.values())

    def list_users(self) -> list[SimulatedUserPlayer]:
        """List all players of simulated users, each once."""
        return list({id(user): user for user in self.users.values()}.values())

    def __iter__(self) -> Iterator[AnyJudge | SimulatedUserPlayer]:
        return iter((*self.list_judges(), *self.list_users()))


def list_judge_names(spec: EvaluatorSpec) -> set[str | None]:
    """Return the names of the LLM judges that an evaluator needs; None stands for the default judge."""
    match spec:
        case Rubric():
            return {None}
        case LlmJudge() | RubricJudge():
            return {spec.judge_target}
        case Composite():
            names = {name for member in spec.members for name in list_judge_names(member)}
            return names | ({spec.aggregator.judge_target} if isinstance(spec.aggregator, JudgeAggregator) else set())
        case _:
            return set()


def is_rubric_case(case: EvalCase) -> bool:
    """Whether a case has only a rubric as evaluator."""
    return bool(case.all_evaluators) and all(isinstance(spec, Rubric) for spec in case.all_evaluators)


def skip_ungradable(suites: tuple[EvalSuite, ...], mode: RubricMode, judges: Judges) -> tuple[EvalSuite, ...]:
    """Return the suites with cases skipped, or their rubrics dropped, where rubrics are not scored.

    Each such case gets the reason: rubrics are turned off, or no LLM judge is available. A case that only a rubric
    scores is skipped; any other case loses its rubric.
    """
    return tuple(
        replace(suite, cases=tuple(_skip_if_ungradable(case, mode, judges) for case in suite.cases)) for suite in suites
    )


def _skip_if_ungradable(case: EvalCase, mode: RubricMode, judges: Judges) -> EvalCase:
    if mode is RubricMode.NEVER:
        return _drop_rubric(case, RUBRICS_OFF_REASON)
    return case if judges.find_default(case) is not None else _drop_rubric(case, NO_JUDGE)


def _drop_rubric(case: EvalCase, reason: str) -> EvalCase:
    if case.skip_reason is not None or not any(isinstance(spec, Rubric) for spec in case.evaluators):
        return case
    if is_rubric_case(case):
        return replace(case, skip_reason=reason)
    conversation = case.conversation
    if conversation is not None:
        conversation = replace(conversation, all_evaluators=_list_others(conversation.all_evaluators))
    warnings = (*case.warnings, f"its rubric is not evaluated: {reason}")
    return replace(case, evaluators=_list_others(case.evaluators), conversation=conversation, warnings=warnings)


def _list_others(specs: tuple[EvaluatorSpec, ...]) -> tuple[EvaluatorSpec, ...]:
    return tuple(spec for spec in specs if not isinstance(spec, Rubric))
