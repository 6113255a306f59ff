"""Assigns a target and judges to every case before the first request, and finds the base agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import TypeVar

from eval_gate.config.settings import RecordingMode, RubricMode, RunConfig, TargetChoice
from eval_gate.engine.judge_targets import AnyJudge, Judges, ModelJudge, TargetJudge, list_judge_names
from eval_gate.engine.simulated_user import SimulatedUserPlayer
from eval_gate.errors import GateError, Problem
from eval_gate.model.case import EvalCase, EvalSuite
from eval_gate.model.setup import TargetIdentity
from eval_gate.model.specs.evaluator import Rubric
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.agent_address import ContainerProbe, parse_agent_address
from eval_gate.targets.base import Target
from eval_gate.targets.build_context import BuildContext
from eval_gate.targets.catalog import JUDGE, SIMULATED_USER, Grader, TargetCatalog
from eval_gate.targets.model.model_client import ModelClient
from eval_gate.targets.model.recording import Recording
from eval_gate.text.escape import format_count
from eval_gate.text.secret import SecretAddress

MAX_PROBLEMS = 20
"""Cases that are named in one message."""

Resolved = TypeVar("Resolved")
TargetKey = tuple[str, str | None]
"""Eval file, and the name of the target that its case wants."""


class Assignment(FrozenStruct):
    """Targets and judges by eval file and target name; `main` is the run's own target."""

    main: Target
    targets: dict[TargetKey, Target]
    judges: Judges

    def get_target(self, case: EvalCase) -> Target:
        """Return the target of a case that is not skipped."""
        return self.targets[case.suite, case.target]


def assign_targets(suites: Sequence[EvalSuite], catalog: TargetCatalog, config: RunConfig) -> Assignment:
    """Look up every target and judge that the cases need.

    Raises GateError with all problems: a target that is not described, an evaluator without a judge, a simulated user
    without a model. The case of a rubric without a judge is skipped, as its own rule has it.
    """
    cases = [case for suite in suites for case in suite.cases if case.skip_reason is None]
    cases = cases or [case for suite in suites for case in suite.cases]
    targets = _look_up(cases, catalog.get_target, decided=catalog.is_fixed)
    judges = _JudgeBuilder(catalog, config.judge, config.limits.timeout_ms / 1000).build(cases, config.rubric)
    judges = replace(judges, users=_find_users(cases, catalog, config.simulated_user))
    return Assignment(targets[cases[0].suite, cases[0].target], targets, judges)


def _look_up(
    cases: Sequence[EvalCase], find: Callable[[str, str | None], Resolved], *, decided: bool
) -> dict[TargetKey, Resolved]:
    """Resolve every pair of suite and target name once; an error names the case, unless all is `decided` without it."""
    targets: dict[TargetKey, Resolved] = {}
    for case in cases:
        place = case.suite, case.target
        if place in targets:
            continue
        try:
            targets[place] = find(*place)
        except GateError as error:
            if case.target is None or error.problems or decided:
                raise
            field = "agent.model" if case.agent is not None else "execution.target"
            problem = Problem(error.message, case.location.file, case.location.line, field)
            raise GateError(
                error.code, error.message, error.hint, problems=[problem], exit_code=error.exit_code
            ) from error
    return targets


def _find_users(
    cases: Sequence[EvalCase], catalog: TargetCatalog, user_name: str | None
) -> dict[TargetKey, SimulatedUserPlayer]:
    """Find the models that play the simulated users of these cases. Raises GateError if one is missing."""
    having = [case for case in cases if case.conversation is not None and case.conversation.user is not None]
    places = dict.fromkeys((case.suite, case.target) for case in having)
    clients = {place: catalog.find_grader(SIMULATED_USER, *place, user_name) for place in places}
    problems = [
        Problem(f"{case.id}: no simulated user", case.location.file, case.location.line)
        for case in having
        if clients[case.suite, case.target] is None
    ]
    if problems:
        raise _build_missing_error(
            f"{format_count(len(problems), 'case needs', 'cases need')} a simulated user, and no model plays it",
            "set `simulatedUser` (--simulated-user) to provider:model or to a target that is a model, or `user_target` "
            "in the target",
            problems,
            code="missing-simulated-user",
        )
    players = {
        id(client): SimulatedUserPlayer(name, client)
        for name, client in filter(None, clients.values())
        if isinstance(client, ModelClient)
    }
    return {place: players[id(one[1])] for place, one in clients.items() if one and id(one[1]) in players}


def _build_missing_error(message: str, hint: str, problems: Sequence[Problem], *, code: str) -> GateError:
    """Build the error for cases that lack a model. It names the first ones."""
    listed = f" (first {MAX_PROBLEMS} listed)" if len(problems) > MAX_PROBLEMS else ""
    return GateError(code, f"{message}{listed}", hint, problems=problems[:MAX_PROBLEMS])


class _JudgeBuilder:
    def __init__(self, catalog: TargetCatalog, judge_name: str | None, timeout_s: float) -> None:
        self._catalog = catalog
        self._judge_name = judge_name
        self._timeout_s = timeout_s
        self._judges: dict[int, AnyJudge] = {}

    def build(self, cases: Sequence[EvalCase], rubric: RubricMode) -> Judges:
        """Build all judges that these cases need. Raises GateError if an evaluator has no judge."""
        defaults: dict[TargetKey, AnyJudge] = {}
        by_name: dict[str, dict[str, AnyJudge]] = {}
        problems: dict[Problem, None] = {}
        for case in cases:
            for name, needed in _iter_wanted_judges(case, rubric):
                if name is not None:
                    by_name.setdefault(case.suite, {})[name] = self._get_judge(self._find_named(case, name))
                    continue
                place = case.suite, case.target
                judge = defaults.get(place) or self._find_default(place)
                if judge is not None:
                    defaults[place] = judge
                elif needed:
                    problems[Problem(f"{case.id}: no judge", case.location.file, case.location.line)] = None
        if problems:
            raise _build_missing_error(
                f"{format_count(len(problems), 'case needs', 'cases need')} a judge: none is configured, and "
                "the target is not a model",
                "set `judge_target` in the target, or `judge` (--judge) to the name of a target or to provider:model",
                [*problems],
                code="missing-judge",
            )
        return Judges(defaults, by_name)

    def _find_named(self, case: EvalCase, name: str) -> tuple[str, Grader]:
        """Find the LLM judge that an evaluator names; an error without a location gets that of the case."""
        try:
            return self._catalog.get_grader(case.suite, name)
        except GateError as error:
            error.problems = error.problems or (Problem(error.message, case.location.file, case.location.line),)
            raise

    def _find_default(self, place: TargetKey) -> AnyJudge | None:
        named_grader = self._catalog.find_grader(JUDGE, *place, self._judge_name)
        return None if named_grader is None else self._get_judge(named_grader)

    def _get_judge(self, named_grader: tuple[str, Grader]) -> AnyJudge:
        name, grader = named_grader
        if id(grader) not in self._judges:
            judge = (
                ModelJudge(name, grader)
                if isinstance(grader, ModelClient)
                else TargetJudge(name, grader, self._timeout_s)
            )
            self._judges[id(grader)] = judge
        return self._judges[id(grader)]


def _iter_wanted_judges(case: EvalCase, rubric: RubricMode) -> Iterator[tuple[str | None, bool]]:
    """Yield the judges that a case names, and whether it requires each: a rubric is skipped without a judge."""
    for spec in case.all_evaluators:
        if isinstance(spec, Rubric) and rubric is RubricMode.NEVER:
            continue
        for name in sorted(list_judge_names(spec), key=str):
            yield name, not isinstance(spec, Rubric)


class SeveralTargetsError(GateError):
    """The eval files name several targets, the same in all files."""

    def __init__(self, names: Sequence[str], problems: Sequence[Problem]) -> None:
        super().__init__(
            "several-targets",
            f"the eval files ask for {len(names)} targets, and a run has one",
            "choose one with `target` (--target), or use `eval-gate run`, which makes a table of them",
            problems=problems,
        )
        self.names = tuple(names)


def check_target_count(suites: Sequence[EvalSuite]) -> None:
    """Raise SeveralTargetsError if the eval files name several targets.

    Raises GateError `several-targets` if they do not all ask for the same ones: a table has every case in each column.
    """
    several = [suite for suite in suites if suite.targets]
    if not several:
        return
    names = several[0].targets
    problems = [
        Problem(f"asks for {', '.join(suite.targets)[:200] or 'no several targets'}", file=suite.file)
        for suite in suites
        if suite.cases
    ]
    if any(suite.targets != names for suite in suites if suite.cases):
        raise GateError(
            "several-targets",
            "the eval files do not all ask for the same targets",
            "choose targets for all of them with --target, or run the files one by one",
            problems=problems,
        )
    raise SeveralTargetsError(names, problems)


class BaseAgentTarget(FrozenStruct):
    """Base agent, its name in results, and notices about it."""

    target: Target
    name: str
    notices: tuple[str, ...] = ()


def build_base_agent_target(
    config: RunConfig,
    context: BuildContext,
    main: Target | None,
    eval_file: str,
    opened: AsyncExitStack | None = None,
) -> BaseAgentTarget | None:
    """Build the base agent's target from the configuration; None if none is configured.

    The target is not connected yet. `main` is the evaluated agent, or None if it is unknown. The base agent never
    responds from a recording: its present behavior counts. `opened` closes it if the run does not begin. Raises
    GateError if the agent is not described, is described twice, or is the evaluated agent, which would clear every
    regression that it causes.
    """
    choice = config.base_agent
    if choice.endpoint is None and choice.target is None:
        return None
    if choice.endpoint is not None and choice.target is not None:
        raise GateError(
            "conflicting-base-agents",
            "baseAgentEndpoint and baseAgentTarget are both set",
            "remove one of them",
        )
    live_context = replace(context, recording=Recording(RecordingMode.OFF))
    catalog = TargetCatalog(_build_choice(config.target, choice.endpoint, choice.target), live_context)
    if opened is not None:
        opened.push_async_callback(catalog.aclose)
    try:
        target = catalog.get_target(eval_file)
    except GateError as error:
        # another `--target` would be another agent that is evaluated
        error.hint = error.hint and error.hint.replace("--target with", "--base-agent-target with")
        raise
    identity = target.identity
    notices = catalog.notices
    if main is not None:
        notices = (*_check_base_agent(identity, main.identity, by_name=choice.endpoint is None), *notices)
    name = choice.display_name or ""
    if choice.target is not None:
        name = f"{identity.name} ({', '.join(filter(None, (identity.provider, identity.identity, identity.model)))})"
    return BaseAgentTarget(target, name, notices)


def describe_unused_base_agent(config: RunConfig) -> tuple[str, ...]:
    """Return a notice if the configured base agent is only for external results and not for these evals."""
    choice = config.base_agent
    if choice.command is None or choice.display_name is not None:
        return ()
    return (
        (
            "ignoring baseAgentCommand: it works only with results of another tool. For these evals, set "
            "baseAgentEndpoint or baseAgentTarget"
        ),
    )


def _check_base_agent(base: TargetIdentity, main: TargetIdentity, *, by_name: bool) -> tuple[str, ...]:
    """Check that the base agent is not the evaluated agent; give notice if only their paths tell them apart."""
    same, notices = by_name and base.name == main.name, tuple[str, ...]()
    if base.provider == main.provider == "http":
        one, other = parse_agent_address(base.identity), parse_agent_address(main.identity)
        same = same or one.is_same_agent(other, ContainerProbe())
        if one.is_same_host(other):
            notices = (f"the base agent has the same host and port as the evaluated agent: {base.identity}",)
    if same:
        raise GateError(
            "base-agent-is-target",
            f"the base agent is the evaluated agent itself: {base.name} ({base.identity})",
            "set baseAgentEndpoint or baseAgentTarget to the agent of the base branch, started in addition to this one "
            "(on the same machine: on another port)",
        )
    return notices


def _build_choice(main: TargetChoice, endpoint: SecretAddress[str] | None, name: str | None) -> TargetChoice:
    preset = main.protocol if endpoint is not None else None
    return TargetChoice(
        endpoint=endpoint,
        protocol=preset,
        name=name,
        targets=main.targets if name is not None else None,
        concurrency=main.concurrency,
        wait_for=main.wait_for,
        max_retries=main.max_retries,
        sources=main.sources.with_aliases(agentEndpoint="baseAgentEndpoint", target="baseAgentTarget"),
    )
