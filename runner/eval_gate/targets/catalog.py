"""Lookup of the target and judge of each case by eval file and name. Each one is built once.

A choice on the command line or in the configuration applies to all cases. Otherwise the eval file's own name applies,
looked up in the given list of targets or, as in AgentV, in the list nearest to the eval file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, TypeVar

from eval_gate.config.settings import TargetChoice
from eval_gate.errors import GateError, Problem, format_suggestion
from eval_gate.files.file_paths import find_repository, format_relative_path
from eval_gate.targets.base import BatchTarget, Target
from eval_gate.targets.build import build_model_settings, build_target, find_flag_target
from eval_gate.targets.build_context import BuildContext
from eval_gate.targets.kinds import is_model_provider, suggest_model
from eval_gate.targets.model.model_client import ModelClient
from eval_gate.targets.secret_masking import mask_target
from eval_gate.targets.secret_requests import find_secret_request
from eval_gate.targets.settings import ProgramSettings
from eval_gate.targets.target_list import ResolvedTarget, TargetList, find_targets_file, read_targets, read_targets_file
from eval_gate.text.quoting import quote_name
from eval_gate.text.redaction import Redactor

Grader: TypeAlias = ModelClient | Target
"""A judge: a model with its client, or any other target that responds."""
Built = TypeVar("Built")


class GraderRole(NamedTuple):
    """What another target does for the evaluated one."""

    name: str
    key: str
    """Setting of the run, in camelCase, that names it."""
    target_key: str
    """Setting of the evaluated target, in camelCase, that names it."""
    code: str
    """Code of the error that it is missing."""


JUDGE: Final = GraderRole("judge", "judge", "judgeTarget", code="missing-judge")
SIMULATED_USER: Final = GraderRole("simulated user", "simulatedUser", "userTarget", code="missing-simulated-user")


class TargetCatalog:
    """All targets and graders of a run. Raises GateError for unknown or invalid ones."""

    def __init__(self, choice: TargetChoice, context: BuildContext, custom_target: Target | None = None) -> None:
        """`custom_target` replaces the target of every case."""
        self._custom_target = mask_target(custom_target, context.redact) if custom_target is not None else None
        self._choice = choice
        self._context = context
        self._fixed = find_flag_target(choice)
        self._lists: dict[Path | None, TargetList] = {}
        self._targets: dict[tuple[Path | None, str], Target] = {}
        self._graders: dict[tuple[Path | None, str], Grader] = {}
        self._notices: dict[str, None] = {}
        self._remarks: dict[str, None] = {}
        self.starts_programs = False
        """Whether one of them is a program."""

    @property
    def is_fixed(self) -> bool:
        """Whether one target was chosen for all cases, whichever they name."""
        return self._fixed is not None or self._custom_target is not None or self._choice.name is not None

    @property
    def notices(self) -> tuple[str, ...]:
        """Lines for the result: settings that were left out or have no effect."""
        return (*self._remarks, *self._notices)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Those notices that the author of a target may not have meant."""
        return tuple(self._remarks)

    async def aclose(self) -> None:
        """Close all targets and graders that were built, for a run that does not begin."""
        custom_targets = (self._custom_target,) if self._custom_target is not None else ()
        for one in (*custom_targets, *self._targets.values(), *self._graders.values()):
            await one.aclose()

    def learn_secrets(self, eval_files: Iterable[str]) -> None:
        """Learn the values of the references in the lists of these eval files, whichever target is used.

        Where an endpoint or model was chosen nothing else is taken from a list, and one that cannot be read does no
        harm: the agent may still say what others of it are given.
        """
        for folder in dict.fromkeys(map(self._get_folder, eval_files)):
            with suppress(GateError, OSError):
                listed = self._find_list(folder, keep=False)[1]
                if listed is not None:
                    self._context.redact.include(listed.build_redactor(self._context.environment))

    def list_files(self) -> tuple[Path, ...]:
        """List the files with lists of targets that were read."""
        source = self._choice.targets
        chosen_files = (self._context.root / source,) if isinstance(source, str) and None in self._lists else ()
        return (*chosen_files, *(place for place in self._lists if place is not None))

    def describe_unread_list(self) -> str | None:
        """Describe a named list of targets that is not used, because an endpoint or model was chosen."""
        if self._choice.targets is None or not self._is_unread:
            return None
        return f"`targets` is ignored: {self._describe_choice()}"

    def describe_unnamed_list(self, folders: Iterable[str]) -> str | None:
        """Describe a list that is found, but not used. `folders` are relative to the root of the run."""
        if self._choice.targets is not None or not self._is_unread:
            return None
        root = self._context.root
        file = next(filter(None, (self._find_file(root / folder) for folder in folders)), None)
        return None if file is None else f"{format_relative_path(file, root)} is not used: {self._describe_choice()}"

    @property
    def _is_unread(self) -> bool:
        """Whether no list was read, because an endpoint or model was chosen."""
        return self._fixed is not None and self._custom_target is None and not self._lists

    def _describe_choice(self) -> str:
        choices = {"agentEndpoint": self._choice.endpoint, "agentFunction": self._choice.function}
        key = next((key for key, value in choices.items() if value is not None), "model")
        return f"`{key}` names the target. Remove `{key}` to use a target of the list"

    def get_target(self, eval_file: str = "", target_name: str | None = None) -> Target:
        """Return the target for the cases of an eval file that name the target `target_name`."""
        if self._custom_target is not None:
            return self._custom_target
        place, chosen = self._resolve_target(eval_file, target_name)
        key = place, chosen.settings.name
        if key not in self._targets:
            target = self._build_or_stand_in(chosen, eval_file, partial(self._build_target, grades=False))
            self._targets[key] = target
            if chosen.settings.provider_batching and not isinstance(target, BatchTarget):
                what = f"target {chosen.settings.name}: {chosen.settings.provider} does not support batches"
                self._notices[f"{what} (provider_batching): each case is sent separately"] = None
        return self._targets[key]

    def resolve_target(self) -> ResolvedTarget:
        """Return the target chosen for all cases, and mask its secrets from now on. Raises GateError."""
        chosen = self._resolve_target("", None)[1]
        self._context.redact.include(chosen.redact)
        return chosen

    def find_grader(
        self, role: GraderRole, eval_file: str, target_name: str | None, name: str | None
    ) -> tuple[str, Grader] | None:
        """Find the one with a role: the configured `name`, else the target's own, else a model judges itself.

        A simulated user is a model, except where this machine lacks a requirement, and targets are only checked.
        """
        if name is not None:
            with self._choice.sources.attribute_errors(role.key):
                return self.get_grader(eval_file, name, role=role)
        if self._custom_target is not None:
            return None
        _, chosen = self._resolve_target(eval_file, target_name)
        named_grader = self._find_own(chosen, eval_file, role)
        if named_grader is not None or role is not JUDGE or not chosen.kind.is_model:
            return named_grader
        return chosen.settings.name, self._build_grader(None, chosen, eval_file)

    def _find_own(self, chosen: ResolvedTarget, eval_file: str, role: GraderRole) -> tuple[str, Grader] | None:
        settings, key = chosen.settings, role.target_key
        name = settings.judge_target if role is JUDGE else settings.user_target
        if name is not None:
            self._context.redact.include(chosen.redact)
            try:
                return self.get_grader(eval_file, name, settings.find_reference(key), role)
            except GateError as error:
                error.mask(self._context.redact.mask_message)
                if chosen.problem is not None and not error.problems:
                    error.problems = (chosen.problem(error.message, key),)
                raise
        if key in chosen.unset_settings and self._context.missing_requirements is not None:
            return settings.name, _build_stand_in(chosen)
        return None

    def get_grader(
        self, eval_file: str, name: str, reference: str | None = None, role: GraderRole = JUDGE
    ) -> tuple[str, Grader]:
        """Return a grader and its name: a target or `provider:model`, written as `reference`. Raises GateError."""
        model = _find_model(name, reference)
        if model is not None:
            return name, self._build_grader(None, model, eval_file)
        place, listed = self._find_list(self._get_folder(eval_file))
        if listed is None or name not in listed.names:
            raise _build_no_grader_error(name, reference, listed, role)
        chosen = self._resolve_listed(listed, name)
        if role is SIMULATED_USER and not chosen.kind.is_model:
            what = quote_name(name) if reference is None else reference[:80]
            raise GateError(
                "unsupported-simulated-user",
                f"the {role.name} {what} is no model: its provider is {chosen.settings.provider}",
                "name a target that is a model, or a model as provider:model",
            )
        if chosen.kind.chatty:
            self._notices[f"the {role.name} {name} is an agent: its responses may not be valid JSON grades"] = None
        return name, self._build_grader(place, chosen, eval_file)

    def _build_grader(self, place: Path | None, chosen: ResolvedTarget, eval_file: str) -> Grader:
        key = place, chosen.settings.name
        if key not in self._graders:
            make = self._build_client if chosen.kind.is_model else partial(self._build_target, grades=True)
            self._graders[key] = self._build_or_stand_in(chosen, eval_file, make)
        return self._graders[key]

    def _build_or_stand_in(
        self, chosen: ResolvedTarget, eval_file: str, make: Callable[[ResolvedTarget], Built]
    ) -> Built | Target:
        """Build a target, or a stand-in where targets are only checked and this machine lacks a requirement."""
        self._notices |= dict.fromkeys(chosen.notices)
        self._remarks |= dict.fromkeys(chosen.remarks)
        if not chosen.is_complete:
            return _build_stand_in(chosen)
        self._context.redact.include(chosen.redact)
        try:
            secret_request = find_secret_request(chosen, self._context.environment)
            if secret_request is not None and self._context.secret_policy is not None:
                self._context.secret_policy(secret_request)
            return make(chosen)
        except GateError as error:
            error.mask(self._context.redact.mask_message)
            error.problems = chosen.locate_problems(error)
            lacking = self._context.missing_requirements
            if lacking is None or not lacking.is_missing_requirement(error):
                raise
            problem = chosen.problem(error.message, "") if chosen.problem else Problem(error.message, eval_file or None)
            lacking.add_problem(problem)
            return _build_stand_in(chosen)

    def _build_target(self, chosen: ResolvedTarget, *, grades: bool) -> Target:
        self.starts_programs |= isinstance(chosen.settings, ProgramSettings)
        return build_target(chosen, self._choice, self._context, grades=grades)

    def _build_client(self, chosen: ResolvedTarget) -> ModelClient:
        return chosen.kind.build_client(chosen.settings, self._choice, self._context)

    def _resolve_listed(self, listed: TargetList, name: str | None) -> ResolvedTarget:
        context = self._context
        return listed.resolve_target(
            name, context.environment, keyless=context.is_replay, lacking=context.missing_requirements
        )

    def _resolve_target(self, eval_file: str, target_name: str | None) -> tuple[Path | None, ResolvedTarget]:
        if self._fixed is not None:
            return None, self._fixed
        if self._choice.name is None and target_name is not None and (model := _find_model(target_name)) is not None:
            return None, model
        place, listed = self._find_list(self._get_folder(eval_file))
        name = self._choice.name or target_name
        if listed is None:
            reason = (
                f"the target {quote_name(name)} is not described{suggest_model(name)}: no targets are set"
                if name
                else "no target to evaluate: no agent endpoint, model or targets are set"
            )
            raise GateError(
                "missing-target",
                f"{reason}, and no targets.yaml exists",
                "use --agent-endpoint http://localhost:8000/chat (in a workflow, the input `agent-endpoint`), "
                "--agent-function module:name, --provider openai --model NAME, or describe the target in targets.yaml",
            )
        with self._choice.sources.attribute_errors("target"):
            return place, self._resolve_listed(listed, name)

    def _get_folder(self, eval_file: str) -> Path:
        # not resolved: a link to an eval file belongs where the link is
        root = self._context.root
        return Path(os.path.normpath(root / eval_file)).parent if eval_file else root

    def _find_file(self, folder: Path) -> Path | None:
        return find_targets_file(folder, find_repository(folder) or self._context.root, self._context.root)

    def _find_list(self, folder: Path, *, keep: bool = True) -> tuple[Path | None, TargetList | None]:
        """Find the list of targets for evals in a folder, and the file that holds it: None if the list was given."""
        root, source = self._context.root, self._choice.targets
        place = self._find_file(folder) if source is None else None
        if source is None and place is None:
            return None, None
        listed = self._lists.get(place)
        if listed is None:
            if place is not None:
                listed = read_targets_file(place, format_relative_path(place, root))
            else:
                assert source is not None
                listed = read_targets(source, root, self._choice.sources)
            if keep:
                self._lists[place] = listed
        return place, listed


def _build_no_grader_error(name: str, reference: str | None, listed: TargetList | None, role: GraderRole) -> GateError:
    """Build the error for a grader name that matches no target."""
    label = quote_name(name) if reference is None else f"with the value of {reference[:80]} as its name"
    near = "" if reference is not None else suggest_model(name)
    if listed is None:
        return GateError(
            role.code,
            f"unknown {role.name} {label}{near}",
            "name a model as provider:model, or describe the target with --targets",
        )
    near = "" if reference is not None else format_suggestion(name, listed.names) or near
    names = f"one of {', '.join(listed.names)}, or " if listed.names else ""
    where = f" in {listed.file}" if listed.file else ""
    return GateError(
        "unknown-target",
        f"unknown target {label}{where}{near}",
        f"name a {role.name}: {names}a model as provider:model",
    )


def _find_model(name: str, reference: str | None = None) -> ResolvedTarget | None:
    """Resolve `provider:model`; `reference` is the text as written if `name` is the value of a variable."""
    provider, colon, model = name.partition(":")
    if not colon or not is_model_provider(provider):
        return None
    hint = "describe this model as a target in targets.yaml, and give the name of that target here"
    settings = build_model_settings(name, {"provider": provider, "model": model}, hint)
    return ResolvedTarget(settings.set_references({} if reference is None else {"model": reference}), Redactor())


def _build_stand_in(chosen: ResolvedTarget) -> Target:
    """Build a target that never gets a request."""
    from eval_gate.targets.mock import MockSettings, MockTarget

    return MockTarget(MockSettings(name=chosen.settings.name))
