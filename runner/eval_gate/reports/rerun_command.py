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
"""Characters of the names of preparatory cases, which run only for the files that they write."""
_URL_START: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]{0,20}://")
_ID_SEPARATORS: Final = re.compile(r"[/.:_-]")
"""Characters that end the part of an id that several cases share."""


class RerunCommand(NamedTuple):
    """Re-run command, and the number of cases that did not fit into it."""

    command: str
    omitted_count: int = 0


def build_rerun_command(
    arguments: Sequence[str], result: RunResult, baseline: Baseline | NoBaseline | None = None
) -> RerunCommand | None:
    """Build the command that re-runs only the cases to look at; return None if it would name none.

    Cases that write files for the chosen ones are named before them. If that takes too many cases, there is no
    command.

    The command names the run that `latest` or a folder of runs selected, because they may select another run next
    time. It omits the shard, because a chosen case may be in another part of the next run. Secrets are
    replaced by `***`: user part and query of URLs, and values that look like a key. External results get no
    command, because only the tool that wrote them can run their cases.
    """
    if result.is_external:
        return None
    patterns = _choose_patterns(_select_cases(result), result)
    chosen = patterns[:MAX_PATTERNS]
    while len(chosen) > 1 and sum(len(pattern) for pattern, _ in chosen) > MAX_NAMES:
        chosen.pop()
    preparatory = _format_preparatory_cases(chosen, result)
    while chosen and len(preparatory) > MAX_PREPARATORY_NAMES:
        chosen.pop()
        preparatory = _format_preparatory_cases(chosen, result)
    if not chosen:
        return None
    exact = baseline.exact_reference if isinstance(baseline, Baseline) else None
    words = _remove_options(
        _redact_arguments(arguments), "--case", "--resume", "--shard", *(["--baseline"] if exact else [])
    )
    options = [
        *(["--baseline", exact] if exact else []),
        "--case",
        preparatory + ",".join(dict.fromkeys(pattern for pattern, _ in chosen)),
    ]
    # behind `--` everything is a path
    end = words.index("--") if "--" in words else len(words)
    left_out = sum(cases for _, cases in patterns[len(chosen) :])
    return RerunCommand(format_shell_line(["eval-gate", *words[:end], *options, *words[end:]]), left_out)


def _choose_patterns(chosen: Sequence[str], result: RunResult) -> list[tuple[str, int]]:
    """Choose patterns that match only these cases, such as `refund/*` for many of them; count the cases of each."""
    if len(chosen) <= MAX_PATTERNS or result.eval_paths is None or result.shard is not None:
        return [(_build_glob(case_id), 1) for case_id in chosen]  # the other cases of the eval files are unknown
    chosen_ids = frozenset(chosen)
    other_ids = (case.id for _, case in result.iter_cases() if case.id not in chosen_ids)
    other_prefixes = {begin for case_id in other_ids for begin in _list_prefixes(case_id)}
    shared = Counter(begin for case_id in chosen for begin in _list_prefixes(case_id))
    patterns: Counter[str] = Counter()
    for case_id in chosen:
        free = (begin for begin in _list_prefixes(case_id) if begin not in other_prefixes)
        begin = next(free, None)
        patterns[f"{_build_glob(begin)}*" if begin and shared[begin] > 1 else _build_glob(case_id)] += 1
    return patterns.most_common()


def _format_preparatory_cases(patterns: Sequence[tuple[str, int]], result: RunResult) -> str:
    """`write-file,list-files,`: the preparatory cases of those that the patterns match, for `--case`."""
    if not patterns or not _list_dependent_suites(result):
        return ""
    matches = [
        case.id for _, case in result.iter_cases() if any(matches_glob(pattern, case.id) for pattern, _ in patterns)
    ]
    return "".join(f"{_build_glob(case_id)}," for case_id in find_preparatory_cases(matches, result))


def find_preparatory_cases(chosen: Sequence[str], result: RunResult) -> list[str]:
    """Find the ids of cases, not chosen themselves, whose files the `chosen` ones depend on, in run order."""
    needed = set(chosen)
    while True:  # an id may stand in several suites
        more: list[str] = []
        for ids in _list_dependent_suites(result):
            last = max((at for at, case_id in enumerate(ids) if case_id in needed), default=0)
            more += [case_id for case_id in ids[:last] if case_id not in needed]
        if not more:
            break
        needed.update(more)
    needed.difference_update(chosen)
    return list(dict.fromkeys(one for ids in _list_dependent_suites(result) for one in ids if one in needed))


def _list_dependent_suites(result: RunResult) -> tuple[tuple[str, ...], ...]:
    """List the case ids, in order, of each suite whose cases depend on each other's files."""
    return tuple(
        tuple(case.id for case in suite.cases) for suite in result.suites if any(case.dependent for case in suite.cases)
    )


def _list_prefixes(case_id: str) -> list[str]:
    """`refund/`, `refund/late-` of `refund/late-order`, the shortest first; none that begins or ends with a blank."""
    begins = (case_id[: match.end()] for match in _ID_SEPARATORS.finditer(case_id))
    return [begin for begin in begins if begin.strip() == begin]


def build_case_rerun_command(case_id: str, command: str, preparatory_ids: Sequence[str] = ()) -> str | None:
    """Build the command of `build_rerun_command` for this case alone.

    `preparatory_ids` are the cases on whose files it depends (`find_preparatory_cases`); the command runs them too.
    None if `command` names no cases, if not every shell can read it, or if the names are too long.
    """
    globs = ",".join(_build_glob(one) for one in (*preparatory_ids, case_id))
    if "$'" in command or len(globs) > MAX_NAMES + MAX_PREPARATORY_NAMES:
        return None
    words = shlex.split(command)
    place = words.index("--case") + 1 if "--case" in words else len(words)
    if place >= len(words):
        return None
    return format_shell_line([*words[:place], globs, *words[place + 1 :]])


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
    redacted: list[str] = []
    of_option = False
    for place, argument in enumerate(arguments):
        if argument == "--":
            return [*redacted, *arguments[place:]]
        name, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
        masked = mask_address(value) if _URL_START.match(value) else mask_addresses(value)
        is_key = (equals or of_option) and looks_like_key(masked)
        redacted.append(name + equals + (MASK if is_key else masked))
        of_option = argument.startswith("--") and not equals
    return redacted


def _remove_options(arguments: Sequence[str], *names: str) -> list[str]:
    remaining: list[str] = []
    skip_value = False
    for place, argument in enumerate(arguments):
        if skip_value:
            skip_value = False
        elif argument == "--":
            return [*remaining, *arguments[place:]]
        elif argument in names:
            skip_value = True
        elif not argument.startswith(tuple(f"{name}=" for name in names)):
            remaining.append(argument)
    return remaining
