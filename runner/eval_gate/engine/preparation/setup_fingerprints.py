"""Setup fingerprints of every case, computed before the first request.

The case has its prompt and expectation. This module adds what stands outside of the eval file: prompts and programs of
graders, LLM judges, and the values of tokens. A part that a case does not have is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from pydantic_core import to_jsonable_python

from eval_gate.config.setting import iter_values
from eval_gate.config.settings import POLICY_KEYS, RunConfig
from eval_gate.engine.judge_targets import AnyJudge, Judges, list_judge_names
from eval_gate.engine.preparation.program_files import MAX_COMMAND, ProgramFiles
from eval_gate.engine.preparation.snapshot import iter_token_texts
from eval_gate.engine.workspaces import digest_preceding_cases
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseKey, EvalCase, EvalSuite
from eval_gate.model.policy import EvaluationSetup
from eval_gate.model.result import CaseFingerprints
from eval_gate.model.setup import SettingValue
from eval_gate.model.specs import evaluator as specs
from eval_gate.struct import replace
from eval_gate.targets.base import Target
from eval_gate.targets.secret_masking import MaskedTarget
from eval_gate.targets.setup import (
    Mask,
    TargetPrograms,
    compute_agent_setup,
    compute_setup_fingerprint,
    format_value,
    format_value_or_empty,
    hide_keys,
)
from eval_gate.text.digest import compute_digest
from eval_gate.text.escape import to_one_line
from eval_gate.text.json_values import map_texts
from eval_gate.text.tokens import TokenData, find_snapshot_tokens, find_tokens, resolve_tokens
from eval_gate.text.urls import mask_addresses, to_public_url


def build_setup_fingerprints(
    suites: Sequence[EvalSuite],
    judges: Judges,
    tokens: TokenData,
    files: ProgramFiles,
    tmp: str | None = None,
    target_of: Callable[[EvalCase], Target | None] = lambda _: None,
) -> Mapping[CaseKey, CaseFingerprints]:
    """Build the setup fingerprints of every case. `tmp` is the digest of the files with which agents begin."""
    fingerprints: dict[int, str | None] = {}

    def fingerprint_target(target: Target | None) -> str | None:
        if target is None:
            return None
        if id(target) not in fingerprints:
            fingerprints[id(target)] = target.identity.fingerprint
        return fingerprints[id(target)]

    programs = _CasePrograms(files, judges)
    # cases that expect the same share their evaluators; all of them are here as long as this takes
    graded_by_key: dict[tuple[str, str | None, int], CaseFingerprints] = {}

    def fingerprint_graded(case: EvalCase) -> CaseFingerprints:
        key = case.suite, case.target, id(case.all_evaluators)
        if key not in graded_by_key:
            graded_by_key[key] = replace(
                programs.fingerprint_graders(case),
                judge="; ".join(sorted({one.identity for one in _list_judges(case, judges)})) or None,
                judge_setup=_fingerprint_judges(case, judges),
                seeds=_digest_token_values(case, tokens, snapshot=False),
                snapshot=_digest_token_values(case, tokens, snapshot=True),
            )
        return graded_by_key[key]

    preceding = {key: digest for suite in suites for key, digest in digest_preceding_cases(suite).items()}
    return {
        case.key: replace(
            programs.add_preparation(fingerprint_graded(case), case, target),
            prompt=_fingerprint_prompt(case, tmp),
            cases_before=preceding.get(case.key),
            expectation=case.expectation_fingerprint,
            target=fingerprint_target(target),
            agent=agent,
            timeout_ms=case.timeout_ms,
            user=None if user is None else user.identity,
            user_setup=None if user is None else user.setup_fingerprint,
        )
        for suite in suites
        for agent in (_fingerprint_agent(suite),)
        for case in suite.cases
        for target in (target_of(case),)
        for user in (judges.find_user(case),)
    }


class _CasePrograms:
    """Programs that grade or prepare cases, and what they can load."""

    def __init__(self, files: ProgramFiles, judges: Judges) -> None:
        self._files = files
        self._judges = judges

    def fingerprint_graders(self, case: EvalCase) -> CaseFingerprints:
        """Compute the parts of the graders, and of the judges that are programs."""
        keys: dict[str, None] = {}
        graders = [self._describe_grader(spec, keys) for spec in case.all_evaluators]
        judging = [
            key for judge in _list_judges(case, self._judges) for key in self._measure(judge.programs, case.suite)[:1]
        ]
        return CaseFingerprints(
            grader=compute_digest(graders) if any(graders) else None,
            judge_program=compute_digest(self._files.digest_content(judging)) if judging else None,
            programs=tuple(dict.fromkeys((*keys, *judging))),
        )

    def add_preparation(self, parts: CaseFingerprints, case: EvalCase, target: Target | None) -> CaseFingerprints:
        """Add the part of the hooks of the case, and of the health check of its target."""
        hooks = case.hooks.list_hooks()
        keys = [self._files.measure(hook.command, Path(hook.cwd)) for _, hook in hooks if hook.command]
        if isinstance(target, MaskedTarget):
            keys += self._measure(target.programs, case.suite, checks=True)
        if not keys and not hooks:
            return parts
        content: list[JsonValue] = [*(name for name, _ in hooks), self._files.digest_content(keys)]
        content += [[one.request, {**one.headers}, one.body] for _, one in hooks if one.request]
        return replace(parts, preparation=compute_digest(content), preparing_programs=tuple(dict.fromkeys(keys)))

    def _measure(self, programs: TargetPrograms | None, suite: str, *, checks: bool = False) -> list[str]:
        """Measure the command of a judge, or with `checks` the health check of a target, if it has one."""
        command = None if programs is None else programs.healthcheck if checks else programs.command
        if programs is None or command is None:
            return []
        folders = list_target_folders(programs, self._files.root, [suite])
        # a health check often is the agent's own program: its folder is the agent's
        return [self._files.measure(command, *folders, by_name=checks or not programs.is_own_command)]

    def _describe_grader(
        self, part: specs.EvaluatorSpec | specs.CodeAggregator | specs.JudgeAggregator, keys: dict[str, None]
    ) -> JsonValue:
        """Describe own prompts by their text, and programs by what they can load; nothing for others."""
        match part:
            case specs.LlmJudge() | specs.JudgeAggregator():
                return part.prompt
            case specs.CodeJudge() | specs.CodeAggregator():
                key = self._files.measure(part.command, Path(part.cwd))
                keys[key] = None
                return self._files.digest_content([key])
            case specs.Composite():
                aggregator = part.aggregator
                by = None
                if isinstance(aggregator, specs.CodeAggregator | specs.JudgeAggregator):
                    by = self._describe_grader(aggregator, keys)
                parts = [by, *(self._describe_grader(member, keys) for member in part.members)]
                return parts if any(parts) else None
            case _:
                return None


def list_target_folders(programs: TargetPrograms, root: Path, suites: Iterable[str]) -> tuple[Path, ...]:
    """List the folders in which a command of a target may run: those of the eval files, else the root of the run."""
    folders = (root / Path(suite).parent / programs.cwd for suite in suites)
    return tuple(dict.fromkeys((*folders, root / programs.cwd)))


def _fingerprint_prompt(case: EvalCase, tmp: str | None) -> str | None:
    """Fingerprint the prompt, with the files of `tmp` if the case uses files: assertions may be about them."""
    with_files = tmp is not None and case.uses_files
    return compute_digest([case.prompt_fingerprint, tmp]) if with_files else case.prompt_fingerprint


def _fingerprint_agent(suite: EvalSuite) -> str | None:
    """Fingerprint the agent that the suite describes; its name and the model that the suite names have no effect."""
    agent = next((case.agent for case in suite.cases if case.agent is not None), None)
    return compute_agent_setup(agent).fingerprint if agent else None


def list_result_settings(config: RunConfig, mask: Mask) -> tuple[SettingValue, ...]:
    """List the settings of a run that differ from their defaults and can change a result.

    Settings that are compared in another way, such as the policy, are left out. Every other setting is included
    unless its definition says that it has no effect.
    """
    return tuple(
        SettingValue(
            name=row.key,
            value=format_value_or_empty(mask_value(value, mask)),
            default=format_value(mask_value(row.default, mask)),
        )
        for row, value in iter_values(config)
        if not (row.no_effect or row.compared_as or row.key in POLICY_KEYS)
        if value != row.default
    )


def mask_value(value: object, mask: Mask) -> JsonValue:
    """Convert the value of a setting to JSON without secrets."""
    return map_texts(to_jsonable_python(value), lambda text: hide_keys(mask_addresses(mask(text))))


def build_evaluation_setup(
    config: RunConfig,
    files: ProgramFiles,
    recording: str | None = None,
    base_agent: str | None = None,
    judges: Judges | None = None,
    mask: Mask = lambda value: value,
) -> EvaluationSetup:
    """Build the evaluation setup of all cases.

    `recording` is the file of recorded responses that may replace models, `base_agent` names the base branch's agent,
    and `mask` hides secrets.
    """
    path, command = config.snapshot_path, config.snapshot_command
    if config.snapshot_enabled is False:
        path = command = None
    line = to_one_line(mask_addresses(command), MAX_COMMAND) if command else None
    is_url = path is not None and path.lower().startswith(("http://", "https://"))
    return EvaluationSetup(
        trials=config.limits.trials,
        passes=config.limits.passes,
        reruns=config.policy.max_reruns,
        snapshot=to_public_url(path) if path and is_url else path or line,
        snapshot_is_file=path is not None and not is_url,
        snapshot_program=files.measure(command) if command else None,
        recording=recording,
        base_agent=base_agent,
        settings=list_result_settings(config, mask),
        judges=() if judges is None else tuple(judge.target_identity for judge in judges.list_judges()),
        users=() if judges is None else tuple(user.target_identity for user in judges.list_users()),
        programs=files.build_record(),
    )


def _list_judges(case: EvalCase, judges: Judges) -> list[AnyJudge]:
    names = {name for spec in case.all_evaluators for name in list_judge_names(spec)}
    by_name = judges.get_named(case.suite)
    candidates = (judges.find_default(case) if name is None else by_name.get(name) for name in names)
    return [judge for judge in candidates if judge is not None]


def _fingerprint_judges(case: EvalCase, judges: Judges) -> str | None:
    """Fingerprint the setup of the case's LLM judges, if any describes it."""
    digests = sorted(filter(None, {judge.target_identity.fingerprint for judge in _list_judges(case, judges)}))
    return compute_setup_fingerprint(digests) if digests else None


def _digest_token_values(case: EvalCase, data: TokenData, *, snapshot: bool) -> str | None:
    """Compute a digest of the values of the case's tokens, either those of the snapshot or all others."""
    values: dict[str, JsonValue] = {}
    for text in chain.from_iterable(map(iter_token_texts, case.all_evaluators)):
        of_snapshot = find_snapshot_tokens(text)
        tokens = of_snapshot if snapshot else [token for token in find_tokens(text) if token not in of_snapshot]
        values.update({token: resolve_tokens(token, data).text for token in tokens})
    return compute_digest(values) if values else None
