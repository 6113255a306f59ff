"""The command that runs only the cases to look at, against the same baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eval_gate.gate.pass_score import judged_as
from eval_gate.model.comparison import CaseClass
from eval_gate.model.execution import Status
from eval_gate.model.grounds import Why
from eval_gate.model.result import RunResult
from eval_gate.results.baseline import Baseline, NoBaseline
from eval_gate.text.shell import hidden, shell_line

MAX_RERUN_CASES: Final = 20
MAX_NAMES: Final = 2_000
"""Characters of the names of all cases."""


def rerun_command(
    arguments: Sequence[str], result: RunResult, baseline: Baseline | NoBaseline | None = None
) -> str | None:
    """The same command for only the cases to look at; None when there are none.

    What `latest` or a folder of runs led to is named: by the next run they may lead to another one. A shard is left
    out, because a chosen case need not be in the same part again.
    """
    globs = [_glob(case_id) for case_id in _worth_a_look(result)[:MAX_RERUN_CASES]]
    while len(globs) > 1 and sum(map(len, globs)) > MAX_NAMES:
        globs.pop()
    if not globs:
        return None
    exact = baseline.exact if isinstance(baseline, Baseline) else None
    kept = _without_option(arguments, "--case", "--resume", "--shard", *(["--baseline"] if exact else []))
    options = [*(["--baseline", exact] if exact else []), "--case", ",".join(globs)]
    # behind `--` everything is a path
    end = kept.index("--") if "--" in kept else len(kept)
    return shell_line(["eval-gate", *kept[:end], *options, *kept[end:]])


def _glob(case_id: str) -> str:
    """What `--case` finds this case by: it splits at commas, takes blanks away at the ends, and reads globs."""
    glob = "".join("?" if char == "," or hidden(char) else f"[{char}]" if char in "*?[" else char for char in case_id)
    begin, end = len(glob) - len(glob.lstrip()), len(glob.rstrip())
    return "?" * begin + glob[begin:end] + "?" * (len(glob) - end) if begin < end else "?" * len(glob)


def _worth_a_look(result: RunResult) -> list[str]:
    """Regressions, score drops and what could not be decided if there are any, else everything that is no pass.

    What somebody accepted or set aside is not among them.
    """
    waived = result.waived
    if result.comparison is not None:
        worse = [*result.comparison.of(CaseClass.REGRESSION), *result.comparison.score_drops()]
        worse += [one for one in result.comparison.changes if one.grounds and one.grounds.why is Why.NOT_RERUN]
        if ids := [change.case_id for change in worse if change.key not in waived]:
            return list(dict.fromkeys(ids))
    bad = {Status.FAILED, Status.ERROR}
    return [case.id for key, case in judged_as(result).cases() if case.status in bad and key not in waived]


def _without_option(arguments: Sequence[str], *names: str) -> list[str]:
    """The arguments without these options, up to `--`, behind which there are none."""
    kept: list[str] = []
    skip_value = False
    for place, argument in enumerate(arguments):
        if skip_value:
            skip_value = False
        elif argument == "--":
            return [*kept, *arguments[place:]]
        elif argument in names:
            skip_value = True
        elif not argument.startswith(tuple(f"{name}=" for name in names)):
            kept.append(argument)
    return kept
