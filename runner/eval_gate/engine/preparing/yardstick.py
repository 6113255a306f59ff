"""What every case is measured with, part by part: read before anything is asked, and only what is there.

A case's question and expectation come with the case. Added here is what stands outside of the eval file: the prompts
and programs that grade, who judges, and what tokens stood for. A part that a case does not have is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from pydantic_core import to_jsonable_python

from eval_gate.config.setting import values_in
from eval_gate.config.settings import RULES, RunConfig
from eval_gate.engine.folders import cases_before
from eval_gate.engine.judging import Grading, Judges, wanted_judges
from eval_gate.engine.preparing.snapshot import texts_with_tokens
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseKey, EvalCase, EvalSuite
from eval_gate.model.policy import Measuring
from eval_gate.model.result import Yardstick
from eval_gate.model.setup import SettingValue
from eval_gate.model.specs import evaluator as specs
from eval_gate.targets.base import Target
from eval_gate.targets.program_files import ProgramFiles
from eval_gate.targets.setup import (
    Mask,
    setup_fingerprint,
    setup_of_agent,
    shown_or_empty,
    shown_value,
    with_texts,
    without_keys,
)
from eval_gate.text.digest import digest
from eval_gate.text.escape import one_line
from eval_gate.text.tokens import TokenData, find_tokens, resolve, snapshot_tokens
from eval_gate.text.urls import hide_in_addresses, public_url

MAX_COMMAND: Final = 300
"""Characters of a command that are kept."""


def yardsticks(
    suites: Sequence[EvalSuite],
    judges: Judges,
    tokens: TokenData,
    scripts: ProgramFiles,
    tmp: str | None = None,
    target_of: Callable[[EvalCase], Target | None] = lambda _: None,
) -> Mapping[CaseKey, Yardstick]:
    """What every case of these suites is measured with. `tmp` names the files that agents of suites begin with."""
    fingerprints: dict[int, str | None] = {}

    def target_fingerprint(case: EvalCase) -> str | None:
        target = target_of(case)
        if target is None:
            return None
        if id(target) not in fingerprints:
            fingerprints[id(target)] = target.identity.fingerprint
        return fingerprints[id(target)]

    # cases that expect the same share their evaluators; all of them are here as long as this takes
    known: dict[tuple[str, str | None, int], _Graded] = {}

    def graded(case: EvalCase) -> _Graded:
        key = case.suite, case.target, id(case.evaluators)
        if key not in known:
            known[key] = _Graded(
                grader=_grader(case, scripts),
                judge="; ".join(sorted({one.identity for one in _judges(case, judges)})) or None,
                judge_setup=_judge_setup(case, judges),
                seeds=_values(case, tokens, snapshot=False),
                snapshot=_values(case, tokens, snapshot=True),
            )
        return known[key]

    before = {key: digest for suite in suites for key, digest in cases_before(suite).items()}
    return {
        case.key: Yardstick(
            question=_question(case, tmp),
            before=before.get(case.key),
            expectation=case.expectation,
            target=target_fingerprint(case),
            agent=agent,
            timeout_ms=case.timeout_ms,
            **graded(case)._asdict(),
        )
        for suite in suites
        for agent in (_agent(suite),)
        for case in suite.cases
    }


class _Graded(NamedTuple):
    """The parts of a yardstick that come with the evaluators."""

    grader: str | None
    judge: str | None
    judge_setup: str | None
    seeds: str | None
    snapshot: str | None


def _question(case: EvalCase, tmp: str | None) -> str | None:
    """What the agent is asked, with the files that it finds: it may be they that the assertions are about."""
    return digest([case.question, tmp]) if tmp is not None and case.uses_files else case.question


def _agent(suite: EvalSuite) -> str | None:
    """The agent that a suite describes for all of its cases. Its name and the model it wishes for change nothing."""
    agent = next((case.agent for case in suite.cases if case.agent is not None), None)
    return setup_of_agent(agent).fingerprint if agent else None


def run_settings(config: RunConfig, mask: Mask) -> tuple[SettingValue, ...]:
    """The settings of a run that differ from their defaults, can change a result and are not compared in another way.

    A setting is among them unless its row says why not.
    """
    return tuple(
        SettingValue(
            name=row.key, value=shown_or_empty(_masked(value, mask)), default=shown_value(_masked(row.default, mask))
        )
        for row, value in values_in(config)
        if not (row.no_effect or row.compared_as or row.key in RULES)
        if value != row.default
    )


def _masked(value: object, mask: Mask) -> JsonValue:
    return with_texts(to_jsonable_python(value), lambda text: without_keys(hide_in_addresses(mask(text))))


def measuring(
    config: RunConfig,
    scripts: ProgramFiles,
    recorded: str | None = None,
    control: str | None = None,
    judges: Iterable[Grading] = (),
    mask: Mask = lambda value: value,
) -> Measuring:
    """How all cases are measured.

    `recorded` is the file of recorded answers that may stand in for models, `control` names the base branch's agent,
    `mask` hides secrets.
    """
    path, command = config.snapshot_path, config.snapshot_command
    if config.snapshot_enabled is False:
        path = command = None
    is_url = path is not None and path.lower().startswith(("http://", "https://"))
    named = scripts.of(command, scripts.root) if command else []
    return Measuring(
        trials=config.limits.trials,
        confirm=config.policy.most_reruns,
        snapshot=public_url(path) if path and is_url else path or (_shown(command) if command else None),
        snapshot_fixed=path is not None and not is_url,
        snapshot_scripts=digest(named) if command else None,
        recorded=recorded,
        control=control,
        settings=run_settings(config, mask),
        judges=tuple(judge.described for judge in judges),
    )


def _shown(command: str) -> str:
    """The command in one line, without what addresses in it give away."""
    return one_line(hide_in_addresses(command), MAX_COMMAND)


def _grader(case: EvalCase, scripts: ProgramFiles) -> str | None:
    found = [_graded_by(spec, scripts) for spec in case.evaluators]
    return digest(found) if any(found) else None


def _graded_by(
    part: specs.EvaluatorSpec | specs.CodeAggregator | specs.JudgeAggregator, scripts: ProgramFiles
) -> JsonValue:
    """Own prompts by their text, programs by the content of the files that their command names; nothing for others."""
    match part:
        case specs.LlmJudge() | specs.JudgeAggregator():
            return part.prompt
        case specs.CodeJudge() | specs.CodeAggregator():
            cwd = Path(part.cwd)
            return [scripts.place(cwd), *scripts.of(part.command, cwd)]
        case specs.Composite():
            aggregator = part.aggregator
            by = None
            if isinstance(aggregator, specs.CodeAggregator | specs.JudgeAggregator):
                by = _graded_by(aggregator, scripts)
            found = [by, *(_graded_by(member, scripts) for member in part.members)]
            return found if any(found) else None
        case _:
            return None


def _judges(case: EvalCase, judges: Judges) -> list[Grading]:
    """Those who grade the case."""
    wanted = {name for spec in case.evaluators for name in wanted_judges(spec)}
    named = judges.by_name(case.suite)
    asked = (judges.default(case) if name is None else named.get(name) for name in wanted)
    return [judge for judge in asked if judge is not None]


def _judge_setup(case: EvalCase, judges: Judges) -> str | None:
    """What those who grade the case are set up with; None where nobody grades it, or nobody described them."""
    found = {fingerprint for judge in _judges(case, judges) if (fingerprint := judge.described.fingerprint)}
    return setup_fingerprint(sorted(found)) if found else None


def _values(case: EvalCase, data: TokenData, *, snapshot: bool) -> str | None:
    """What the case's tokens of one source stand for; one that leads nowhere stands for nothing."""
    found: dict[str, JsonValue] = {}
    for text in chain.from_iterable(map(texts_with_tokens, case.evaluators)):
        of_snapshot = snapshot_tokens(text)
        tokens = of_snapshot if snapshot else [token for token in find_tokens(text) if token not in of_snapshot]
        found.update({token: resolve(token, data).text for token in tokens})
    return digest(found) if found else None
