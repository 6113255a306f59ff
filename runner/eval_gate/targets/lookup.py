"""Which target is meant by which name, for which eval file; each is built once.

What the command line or configuration chooses holds for all cases. Else the eval file's own word counts, looked up in
the given list of targets or, as AgentV does it, in the one nearest to the eval file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias, TypeVar

from eval_gate.config.settings import TargetChoice
from eval_gate.errors import GateError, Problem, did_you_mean
from eval_gate.files.place import repository_of, shown_from
from eval_gate.targets.base import BatchTarget, Target
from eval_gate.targets.build import BuildContext, described_by_flags, grading_setup, make_target, model_settings
from eval_gate.targets.kinds import meant_model, names_model
from eval_gate.targets.listing import Chosen, TargetList, find_targets, read_list, read_targets
from eval_gate.targets.masked import masked
from eval_gate.targets.model.asker import Asker
from eval_gate.targets.settings import ProgramSettings
from eval_gate.targets.variables import receiver_of
from eval_gate.text.quoting import quoted_name
from eval_gate.text.redact import Redactor

Grader: TypeAlias = Asker | Target
"""Who grades: a model with everything around it, or any other target that answers."""
Made = TypeVar("Made")


class TargetBook:
    """All targets and graders of a run. Raises GateError for what is not there or not described well."""

    def __init__(self, choice: TargetChoice, context: BuildContext, answerer: Target | None = None) -> None:
        """`answerer` answers every case, whatever is chosen or described."""
        self._answerer = masked(answerer, context.redact) if answerer is not None else None
        self._choice = choice
        self._context = context
        self._fixed = described_by_flags(choice)
        self._lists: dict[Path | None, TargetList] = {}
        self._targets: dict[tuple[Path | None, str], Target] = {}
        self._graders: dict[tuple[Path | None, str], Grader] = {}
        self._notices: dict[str, None] = {}
        self._remarks: dict[str, None] = {}
        self.starts_programs = False
        """Whether one of them is a program."""

    @property
    def decided(self) -> bool:
        """Whether who is asked was chosen for all cases, whatever they want themselves."""
        return self._fixed is not None or self._answerer is not None or self._choice.name is not None

    @property
    def notices(self) -> tuple[str, ...]:
        """What is worth a line in the result: settings that were left out, wishes that cannot be met."""
        return (*self._remarks, *self._notices)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Of these, what the author of a target may not have meant, wherever it is run."""
        return tuple(self._remarks)

    def learn_secrets(self, eval_files: Iterable[str]) -> None:
        """Learn what the references stand for in the lists that belong to these eval files, whoever of them is asked.

        Where an endpoint or model was chosen nothing else is taken from a list, and one that cannot be read does no
        harm: the agent may still say what others of it are given.
        """
        root, context = self._context.root, self._context
        for folder in dict.fromkeys(str(Path(file).parent) for file in eval_files):
            with suppress(GateError, OSError):
                if self._choice.targets is not None:
                    listed = self._lists.get(None) or read_targets(self._choice.targets, root, self._choice.given)
                else:
                    found = find_targets(root / folder, repository_of(root / folder) or root, root)
                    if found is None:
                        continue
                    listed = self._lists.get(found) or read_list(found, shown_from(found, root))
                context.redact.include(listed.redactor(context.environment))

    def unread(self, folders: Iterable[str] = ()) -> str | None:
        """A sentence about a list of targets that nothing is taken from, because an endpoint or model was chosen.

        None where there is no such list. `folders`, relative to the root of the run, are looked through for lists that
        nobody named; without them only a list that was named counts.
        """
        if self._fixed is None or self._answerer is not None or self._lists:
            return None
        root, named = self._context.root, self._choice.targets
        what = "`targets`" if named is not None else None
        for folder in () if named is not None else folders:
            found = find_targets(root / folder, repository_of(root / folder) or root, root)
            if found is not None and what is None:
                what = shown_from(found, root)
        if what is None:
            return None
        key = "agentEndpoint" if self._choice.endpoint is not None else "model"
        return f"nothing is taken from {what}: `{key}` says who is asked. Without it, a target of the list is asked"

    def target(self, eval_file: str = "", wanted: str | None = None) -> Target:
        """Who is asked the cases of this eval file that want the target of this name."""
        if self._answerer is not None:
            return self._answerer
        place, chosen = self._described(eval_file, wanted)
        key = place, chosen.settings.name
        if key not in self._targets:
            self._targets[key] = self._built(chosen, eval_file, self._evaluated)
            self._note(chosen, self._targets[key])
        return self._targets[key]

    def judge(self, eval_file: str, wanted: str | None, named: str | None) -> tuple[str, Grader] | None:
        """Who grades these cases; None when nobody does.

        Whom the configuration names, else the target's own judge, else the target itself if it is a model.
        """
        if named is not None:
            with self._choice.given.blamed("judge"):
                return self.grader(eval_file, named)
        if self._answerer is not None:
            return None
        _, chosen = self._described(eval_file, wanted)
        settings = chosen.settings
        if settings.judge_target is not None:
            self._context.redact.include(chosen.redact)
            try:
                return self.grader(eval_file, settings.judge_target, settings.reference("judgeTarget"))
            except GateError as error:
                error.mask(self._context.redact.message)
                if chosen.problem is not None and not error.problems:
                    error.problems = (chosen.problem(error.message, "judgeTarget"),)
                raise
        if "judgeTarget" in chosen.left_out and self._context.lacking is not None:
            return settings.name, _stand_in(chosen)
        return (settings.name, self._grader(None, chosen, eval_file)) if chosen.kind.is_model else None

    def grader(self, eval_file: str, name: str, reference: str | None = None) -> tuple[str, Grader]:
        """A grader by name: a target of the list, or `provider:model`.

        `reference` is what is written where the name is a variable's value.
        """
        model = _model(name, reference)
        if model is not None:
            return name, self._grader(None, model, eval_file)
        place, listed = self._list(eval_file)
        if listed is None or name not in listed.names:
            raise _no_grader(name, reference, listed)
        chosen = self._chosen(listed, name)
        if chosen.kind.chatty:
            self._notices[f"the judge {name} is an agent: its answers may not be the JSON that a grade is"] = None
        return name, self._grader(place, chosen, eval_file)

    def _grader(self, place: Path | None, chosen: Chosen, eval_file: str) -> Grader:
        key = place, chosen.settings.name
        if key not in self._graders:
            make = self._asker if chosen.kind.is_model else self._grading
            self._graders[key] = self._built(chosen, eval_file, make)
            self._notices |= dict.fromkeys(chosen.notices)
            self._remarks |= dict.fromkeys(chosen.remarks)
        return self._graders[key]

    def _admit(self, chosen: Chosen) -> None:
        """Raises GateError where the target must not be given what its description asks for."""
        receiver = receiver_of(chosen, self._context.environment)
        if receiver is not None and self._context.doorkeeper is not None:
            self._context.doorkeeper(receiver)

    def _built(self, chosen: Chosen, eval_file: str, make: Callable[[Chosen], Made]) -> Made | Target:
        """What `make` makes of it. Where it is only checked, a stand-in for what this machine cannot make."""
        if not chosen.whole:
            return _stand_in(chosen)
        self._context.redact.include(chosen.redact)
        try:
            self._admit(chosen)
            return make(chosen)
        except GateError as error:
            error.mask(self._context.redact.message)
            error.problems = chosen.places_of(error)
            lacking = self._context.lacking
            if lacking is None or not lacking.explains(error):
                raise
            said = chosen.problem(error.message, "") if chosen.problem else Problem(error.message, eval_file or None)
            lacking.note(said)
            return _stand_in(chosen)

    def _evaluated(self, chosen: Chosen) -> Target:
        return self._made(chosen, grades=False)

    def _grading(self, chosen: Chosen) -> Target:
        return self._made(chosen, grades=True)

    def _made(self, chosen: Chosen, *, grades: bool) -> Target:
        self.starts_programs |= isinstance(chosen.settings, ProgramSettings)
        return make_target(chosen, self._choice, self._context, grades=grades)

    def _asker(self, chosen: Chosen) -> Asker:
        asker = chosen.kind.asker(chosen.settings, self._choice, self._context)
        asker.setup = grading_setup(chosen, self._context)
        return asker

    def _chosen(self, listed: TargetList, name: str | None) -> Chosen:
        context = self._context
        return listed.choose(name, context.environment, keyless=context.replays, lacking=context.lacking)

    def _described(self, eval_file: str, wanted: str | None) -> tuple[Path | None, Chosen]:
        if self._fixed is not None:
            return None, self._fixed
        if self._choice.name is None and wanted is not None and (model := _model(wanted)) is not None:
            return None, model
        place, listed = self._list(eval_file)
        name = self._choice.name or wanted
        if listed is None:
            asked = (
                f"the target {quoted_name(name)} is described nowhere{meant_model(name)}"
                if name
                else "nothing to evaluate"
            )
            raise GateError(
                "no-target",
                f"{asked}: no agent endpoint, no model and no targets were given, and there is no targets.yaml",
                "--agent-endpoint http://localhost:8000/chat, --provider openai --model NAME, or --targets FILE",
            )
        with self._choice.given.blamed("target"):
            return place, self._chosen(listed, name)

    def _list(self, eval_file: str) -> tuple[Path | None, TargetList | None]:
        """The list that counts for an eval file, and the file it was found in; None where it was given."""
        root = self._context.root
        if self._choice.targets is not None:
            if None not in self._lists:
                self._lists[None] = read_targets(self._choice.targets, root, self._choice.given)
            return None, self._lists[None]
        # not resolved: a link to an eval file belongs where the link is
        folder = Path(os.path.normpath(root / eval_file)).parent if eval_file else root
        found = find_targets(folder, repository_of(folder) or root, root)
        if found is None:
            return None, None
        if found not in self._lists:
            self._lists[found] = read_list(found, shown_from(found, root))
        return found, self._lists[found]

    def _note(self, chosen: Chosen, target: Target) -> None:
        self._notices |= dict.fromkeys(chosen.notices)
        self._remarks |= dict.fromkeys(chosen.remarks)
        if chosen.settings.provider_batching and not isinstance(target, BatchTarget):
            what = f"target {chosen.settings.name}: {chosen.settings.provider} takes no batches (provider_batching)"
            self._notices[f"{what}: each case is asked by itself"] = None


def _no_grader(name: str, reference: str | None, listed: TargetList | None) -> GateError:
    """That nobody is called so who could grade."""
    called = quoted_name(name) if reference is None else f"with the value of {reference[:80]} as its name"
    near = "" if reference is not None else meant_model(name)
    if listed is None:
        return GateError(
            "no-judge",
            f"there is no target {called} to grade{near}",
            "name a model as provider:model, or describe the target with --targets",
        )
    near = "" if reference is not None else did_you_mean(name, listed.names) or near
    names = f"one of {', '.join(listed.names)}, or " if listed.names else ""
    where = f" in {listed.file}" if listed.file else ""
    return GateError(
        "unknown-target",
        f"there is no target {called}{where}{near}",
        f"a judge is {names}a model as provider:model",
    )


def _model(name: str, reference: str | None = None) -> Chosen | None:
    """The model that `provider:model` names; None for what is the name of a target.

    `reference` is what is written where the name is a variable's value.
    """
    provider, colon, model = name.partition(":")
    if not colon or not names_model(provider):
        return None
    settings = model_settings(name, {"provider": provider, "model": model})
    return Chosen(settings.made_of({} if reference is None else {"model": reference}), Redactor())


def _stand_in(chosen: Chosen) -> Target:
    """Somebody who is never asked."""
    from eval_gate.targets.mock import MockSettings, MockTarget

    return MockTarget(MockSettings(name=chosen.settings.name))
