"""Command that re-runs only the cases that need attention, with the same baseline."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from eval_gate.gate.pass_score import apply_recorded_pass_score
from eval_gate.model.comparison import CaseClass
from eval_gate.model.execution import Status
from eval_gate.model.result import RunResult
from eval_gate.results.baseline import Baseline, NoBaseline
from eval_gate.text.globs import matches_glob
from eval_gate.text.mask import MASK
from eval_gate.text.quoting import looks_like_key
from eval_gate.text.safe_output import is_invisible
from eval_gate.text.shell import format_shell_line
from eval_gate.text.urls import mask_address, mask_addresses

MAX_PATTERNS: Final = 5
MAX_NAMES: Final = 400
"""Characters of all patterns together."""
MAX_PREPARATORY_NAMES: Final = 2_000
"""Characters of the names of cases that are only run for the files they leave."""
_URL_START: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]{0,20}://")
_ID_SEPARATORS: Final = re.compile(r"[/.:_-]")
"""What ends the part of an id that several cases share."""


class RerunCommand(NamedTuple):
    """Re-run command, and how many of the cases did not fit into it."""

    command: str
    omitted_count: int = 0


def build_rerun_command(
    arguments: Sequence[str], result: RunResult, baseline: Baseline | NoBaseline | None = None
) -> RerunCommand | None:
    """Build the command that re-runs only the cases to look at; return None if it would name none.

    Cases that prepare files for the chosen ones are named before them, because the chosen ones would give other
    results without them. If too many cases would be needed for that, there is no command.

    The command names the baseline that `latest` or a folder of runs led to, because they may lead to another run
    next time. It omits the shard, because a chosen case may be in another part of the next run. Secrets are
    replaced by `***`: user part and query of URLs, and values that look like a key. External results get no
    command, because only the tool that wrote them can run their cases.
    """
    if result.is_external:
        return None
    patterns = _choose_patterns(_select_cases(result), result)
    kept = patterns[:MAX_PATTERNS]
    while len(kept) > 1 and sum(len(pattern) for pattern, _ in kept) > MAX_NAMES:
        kept.pop()
    before = _format_preparatory_cases(kept, result)
    while kept and len(before) > MAX_PREPARATORY_NAMES:
        kept.pop()
        before = _format_preparatory_cases(kept, result)
    if not kept:
        return None
    exact = baseline.exact_reference if isinstance(baseline, Baseline) else None
    given = _remove_options(
        _redact_arguments(arguments), "--case", "--resume", "--shard", *(["--baseline"] if exact else [])
    )
    options = [
        *(["--baseline", exact] if exact else []),
        "--case",
        before + ",".join(dict.fromkeys(pattern for pattern, _ in kept)),
    ]
    # behind `--` everything is a path
    end = given.index("--") if "--" in given else len(given)
    left_out = sum(cases for _, cases in patterns[len(kept) :])
    return RerunCommand(format_shell_line(["eval-gate", *given[:end], *options, *given[end:]]), left_out)


def _choose_patterns(chosen: Sequence[str], result: RunResult) -> list[tuple[str, int]]:
    """Choose patterns that find only these cases, such as `refund/*` where there are many; count what each finds."""
    if len(chosen) <= MAX_PATTERNS or result.eval_paths is None or result.shard is not None:
        return [(_build_glob(case_id), 1) for case_id in chosen]  # what else the eval files hold is not known
    wanted = frozenset(chosen)
    others = {begin for _, case in result.iter_cases() if case.id not in wanted for begin in _list_prefixes(case.id)}
    shared = Counter(begin for case_id in chosen for begin in _list_prefixes(case_id))
    found: Counter[str] = Counter()
    for case_id in chosen:
        free = (begin for begin in _list_prefixes(case_id) if begin not in others)
        begin = next(free, None)
        found[f"{_build_glob(begin)}*" if begin and shared[begin] > 1 else _build_glob(case_id)] += 1
    return found.most_common()


def _format_preparatory_cases(patterns: Sequence[tuple[str, int]], result: RunResult) -> str:
    """`write-file,list-files,`: the cases on whose files those that the patterns find work, as `--case` finds them."""
    if not patterns or not _list_dependent_suites(result):
        return ""
    found = [
        case.id for _, case in result.iter_cases() if any(matches_glob(pattern, case.id) for pattern, _ in patterns)
    ]
    return "".join(f"{_build_glob(case_id)}," for case_id in find_preparatory_cases(found, result))


def find_preparatory_cases(chosen: Sequence[str], result: RunResult) -> list[str]:
    """Find the ids of cases, not chosen themselves, whose files the `chosen` ones depend on, in run order."""
    wanted = set(chosen)
    while True:  # an id may stand in several suites
        more: list[str] = []
        for ids in _list_dependent_suites(result):
            last = max((at for at, case_id in enumerate(ids) if case_id in wanted), default=0)
            more += [case_id for case_id in ids[:last] if case_id not in wanted]
        if not more:
            break
        wanted.update(more)
    wanted.difference_update(chosen)
    return list(dict.fromkeys(one for ids in _list_dependent_suites(result) for one in ids if one in wanted))


def _list_dependent_suites(result: RunResult) -> tuple[tuple[str, ...], ...]:
    """List the case ids, in order, of each suite whose cases depend on each other's files."""
    return tuple(
        tuple(case.id for case in suite.cases) for suite in result.suites if any(case.dependent for case in suite.cases)
    )


def _list_prefixes(case_id: str) -> list[str]:
    """`refund/`, `refund/late-` of `refund/late-order`, the shortest first; none where it would begin or end blank."""
    begins = (case_id[: match.end()] for match in _ID_SEPARATORS.finditer(case_id))
    return [begin for begin in begins if begin.strip() == begin]


def build_case_rerun_command(case_id: str, command: str, before: Sequence[str] = ()) -> str | None:
    """Build the command of `build_rerun_command` for this case alone.

    `before` are the cases on whose files it depends (`find_preparatory_cases`); the command runs them too. Return
    None if `command` names no cases, if not every shell can read it, or if the names are too long.
    """
    named = ",".join(_build_glob(one) for one in (*before, case_id))
    if "$'" in command or len(named) > MAX_NAMES + MAX_PREPARATORY_NAMES:
        return None
    words = shlex.split(command)
    place = words.index("--case") + 1 if "--case" in words else len(words)
    if place >= len(words):
        return None
    return format_shell_line([*words[:place], named, *words[place + 1 :]])


def _build_glob(case_id: str) -> str:
    """Build the glob of one case for `--case`, which splits at commas, strips blanks, and reads globs."""
    glob = "".join(
        "?" if char == "," or is_invisible(char) else f"[{char}]" if char in "*?[" else char for char in case_id
    )
    begin, end = len(glob) - len(glob.lstrip()), len(glob.rstrip())
    return "?" * begin + glob[begin:end] + "?" * (len(glob) - end) if begin < end else "?" * len(glob)


def _select_cases(result: RunResult) -> list[str]:
    """Select regressions, score drops and inconclusive cases, or else all that did not pass; waived ones never."""
    waived = result.waived_keys
    if result.comparison is not None:
        worse = [*result.comparison.select_changes(CaseClass.REGRESSION), *result.comparison.list_score_drops()]
        worse += [one for one in result.comparison.changes if one.grounds and one.grounds.kind.is_inconclusive]
        if ids := [change.case_id for change in worse if change.key not in waived]:
            return list(dict.fromkeys(ids))
    bad = {Status.FAILED, Status.ERROR}
    return [
        case.id
        for key, case in apply_recorded_pass_score(result).iter_cases()
        if case.status in bad and key not in waived
    ]


def _redact_arguments(arguments: Sequence[str]) -> list[str]:
    """Mask URLs, and keys in values of options; arguments after `--` are paths and stay as they are."""
    shown: list[str] = []
    of_option = False
    for place, argument in enumerate(arguments):
        if argument == "--":
            return [*shown, *arguments[place:]]
        name, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
        hidden = mask_address(value) if _URL_START.match(value) else mask_addresses(value)
        is_key = (equals or of_option) and looks_like_key(hidden)
        shown.append(name + equals + (MASK if is_key else hidden))
        of_option = argument.startswith("--") and not equals
    return shown


def _remove_options(arguments: Sequence[str], *names: str) -> list[str]:
    """Remove the named options and their values from the arguments before `--`."""
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
