"""What every case is measured with, part by part: read before anything is asked, and only what is there.

A case's question and expectation come with the case. Added here is what stands outside of the eval file: the prompts
and programs that grade, who judges, and what tokens stood for. A part that a case does not have is None.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from eval_gate.config.settings import RunConfig
from eval_gate.engine.judging import Judges, wanted_judges
from eval_gate.model import limits
from eval_gate.model.base import JsonValue, construct
from eval_gate.model.case import CaseKey, EvalCase, EvalSuite
from eval_gate.model.policy import Measuring
from eval_gate.model.result import Yardstick
from eval_gate.model.specs import evaluator as specs
from eval_gate.text.digest import digest
from eval_gate.text.escape import one_line
from eval_gate.text.tokens import TokenData, find_tokens, resolve, snapshot_tokens
from eval_gate.text.urls import public_url

MAX_SCRIPT_BYTES: Final = limits.SCRIPT_BYTES
"""Of a longer file its beginning and its size are what counts."""
MAX_WORDS: Final = 50
"""Words of a command that may name a file."""
MAX_COMMAND: Final = 300
"""Characters of a command that are kept."""
_CREDENTIALS: Final = re.compile(r"//[^\s/@]*@")
_WITH_TOKENS: Final = (specs.ToolParams, specs.ResponseContains, specs.ResponseContainsAny, specs.ResponseNotContains)


class NamedScripts:
    """The files that commands name, by content; each is read once. `root` is the folder of the run."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._known: dict[Path, str | None] = {}

    def of(self, command: str | Sequence[str], cwd: Path) -> list[JsonValue]:
        """The command's words, and beside each that names a file inside of the run's or its own folder its content.

        What is neither, such as an interpreter, is another one on every machine, and is no part of the yardstick.
        """
        return [[word, self._content(word, cwd)] for word in _words(command)[:MAX_WORDS]]

    def place(self, folder: Path) -> str:
        """The folder as it lies to the folder of the run: the same in every checkout."""
        return Path(os.path.relpath(folder, self.root)).as_posix()

    def _content(self, word: str, cwd: Path) -> str | None:
        named = word.rpartition("=")[2]
        file = cwd / named
        if not named or len(named) > 1_000 or "\0" in named:
            return None
        if file not in self._known:
            self._known[file] = self._read(file, cwd)
        return self._known[file]

    def _read(self, file: Path, cwd: Path) -> str | None:
        try:
            real = file.resolve(strict=True)
            if not real.is_file() or not any(real.is_relative_to(place.resolve()) for place in (self.root, cwd)):
                return None
            with real.open("rb") as stream:
                data = stream.read(MAX_SCRIPT_BYTES)
                size = os.fstat(stream.fileno()).st_size
        except OSError:  # what cannot be read is said by whoever runs it
            return None
        return f"{hashlib.sha256(data).hexdigest()}{f' of {size}' if size > MAX_SCRIPT_BYTES else ''}"


def _words(command: str | Sequence[str]) -> list[str]:
    if not isinstance(command, str):
        return list(command)
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # a quotation that does not end: the shell will say so
        return command.split()


def yardsticks(
    suites: Sequence[EvalSuite], judges: Judges, tokens: TokenData, scripts: NamedScripts, tmp: str | None = None
) -> Mapping[CaseKey, Yardstick]:
    """What every case of these suites is measured with. `tmp` names the files that agents of suites begin with."""
    # cases that expect the same share their evaluators; all of them are here as long as this takes
    known: dict[tuple[str, str | None, int], _Graded] = {}

    def graded(case: EvalCase) -> _Graded:
        key = case.suite, case.target, id(case.evaluators)
        if key not in known:
            known[key] = _Graded(
                grader=_grader(case, scripts),
                judge=_judge(case, judges),
                seeds=_values(case, tokens, snapshot=False),
                snapshot=_values(case, tokens, snapshot=True),
            )
        return known[key]

    return {
        case.key: construct(
            Yardstick,
            question=_question(case, tmp),
            expectation=case.expectation,
            **graded(case)._asdict(),
        )
        for suite in suites
        for case in suite.cases
    }


class _Graded(NamedTuple):
    """The parts of a yardstick that come with the evaluators."""

    grader: str | None
    judge: str | None
    seeds: str | None
    snapshot: str | None


def _question(case: EvalCase, tmp: str | None) -> str | None:
    """What the agent is asked, with the files that it finds: it may be they that the assertions are about."""
    return digest([case.question, tmp]) if tmp is not None and case.dependent else case.question


def measuring(
    config: RunConfig, scripts: NamedScripts, recorded: str | None = None, control: str | None = None
) -> Measuring:
    """How all cases are measured.

    `recorded` is the file of recorded answers that may stand in for models, `control` names the base branch's agent.
    """
    path, command = config.snapshot_path, config.snapshot_command
    if config.snapshot_enabled is False:
        path = command = None
    is_url = path is not None and path.lower().startswith(("http://", "https://"))
    named = scripts.of(command, scripts.root) if command else []
    return Measuring(
        trials=config.limits.trials,
        confirm=config.policy.confirm,
        snapshot=public_url(path) if path and is_url else path or (_shown(command) if command else None),
        snapshot_fixed=path is not None and not is_url,
        snapshot_scripts=digest(named) if command else None,
        recorded=recorded,
        control=control,
    )


def _shown(command: str) -> str:
    """The command in one line, without what addresses in it give away."""
    return _CREDENTIALS.sub("//", one_line(command, MAX_COMMAND))


def _grader(case: EvalCase, scripts: NamedScripts) -> str | None:
    found = [_graded_by(spec, scripts) for spec in case.evaluators]
    return digest(found) if any(found) else None


def _graded_by(
    part: specs.EvaluatorSpec | specs.CodeAggregator | specs.JudgeAggregator, scripts: NamedScripts
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


def _judge(case: EvalCase, judges: Judges) -> str | None:
    wanted = {name for spec in case.evaluators for name in wanted_judges(spec)}
    named = judges.by_name(case.suite)
    asked = [judges.default(case) if name is None else named.get(name) for name in wanted]
    return "; ".join(sorted({judge.identity for judge in asked if judge is not None})) or None


def _values(case: EvalCase, data: TokenData, *, snapshot: bool) -> str | None:
    """What the case's tokens of one source stand for; one that leads nowhere stands for nothing."""
    found: dict[str, JsonValue] = {}
    for text in (text for spec in case.evaluators if isinstance(spec, _WITH_TOKENS) for text in _texts(spec)):
        of_snapshot = snapshot_tokens(text)
        tokens = of_snapshot if snapshot else [token for token in find_tokens(text) if token not in of_snapshot]
        found.update({token: resolve(token, data).text for token in tokens})
    return digest(found) if found else None


def _texts(spec: specs.EvaluatorSpec) -> Iterator[str]:
    """The texts of an assertion that may hold tokens."""
    match spec:
        case specs.ResponseContains() | specs.ResponseNotContains():
            values: Sequence[JsonValue] = spec.values
        case specs.ResponseContainsAny():
            values = [member for group in spec.groups for member in group]
        case specs.ToolParams():
            values = [
                value
                for check in spec.checks
                for value in (check.value if isinstance(check.value, list) else [check.value])
            ]
        case _:
            return
    yield from (value for value in values if isinstance(value, str) and "{{" in value)
