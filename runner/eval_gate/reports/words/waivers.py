"""Failures that do not block: who accepted them, why, until when and where, and how somebody may accept more.

The words hold foreign text as it is: whoever shows them escapes it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from eval_gate.gate.must_pass import must_pass_keys
from eval_gate.gate.waivers.command import command_line
from eval_gate.gate.waivers.names import name_problem
from eval_gate.gate.waivers.words import DONE, MAX_NAMED, author, place_words, terms, warnings
from eval_gate.model.case import CaseKey, Location
from eval_gate.model.comparison import CaseClass, Outcome, RuleCode
from eval_gate.model.result import RunResult
from eval_gate.model.waiver import (
    CommentOrigin,
    FileOrigin,
    WaivedCase,
    WaiverEntry,
    WaiverKind,
    WaiverStanding,
    WaiverState,
    Waiving,
)
from eval_gate.reports.context import ReportContext
from eval_gate.reports.facts import changes_that_count
from eval_gate.reports.links import line_url
from eval_gate.reports.words.numbers import count
from eval_gate.struct import FrozenStruct
from eval_gate.text.globs import escaped
from eval_gate.text.shell import shell_line

_ADDRESS: Final = re.compile(r"[A-Za-z0-9._~/?#=&%-]{1,500}", re.ASCII)
"""What an address of GitHub's is made of, and nothing that would end a link."""
_NOT_NEW: Final = frozenset({WaiverState.PROPOSED, WaiverState.EXPIRED})
"""States of new entries that are said otherwise, or change nothing."""
MAX_CASES: Final = 10
"""Cases that are offered to be accepted: more than that is seldom meant."""
MAX_COMMAND: Final = 1_500
"""Characters of the command."""
REASON: Final = "<reason>"
"""What is to be replaced by whoever sends it."""
_DAYS: Final = "14d"


class WaiverWords(FrozenStruct):
    """What is to be said of one waiver."""

    kind: WaiverKind
    done: str
    """`accepted`, `quarantined`; `would be accepted` where it does not count."""
    until: str
    """`2026-12-05, 14 days left`."""
    by: str
    """`@ada` where GitHub knows them, `Kim` where a file says so; empty where nobody is named."""
    where: str
    """`.eval-gate/accepted.yaml:12`, or the address of the comment."""
    url: str | None
    reason: str
    named: str
    """The id or glob it was written with."""
    cases: tuple[str, ...]
    """Those of its cases that fail, the first few."""
    terms: str
    """All of it in one line."""
    new: bool = False
    """The change under test brings it."""


class Waivers(FrozenStruct):
    """All there is to say about waivers beside the cases themselves. Nothing where nobody waived anything."""

    by_case: Mapping[tuple[str, str], WaiverWords]
    """Why a case's failure does not block, by its eval file and id."""
    brought: tuple[WaiverWords, ...] = ()
    """Entries that the change under test brings, whatever they did to this run."""
    proposed: tuple[WaiverWords, ...] = ()
    """Entries that the change brings and that do not count, because only the base branch's do."""
    warnings: tuple[str, ...] = ()


def waivers_of(run: RunResult, context: ReportContext) -> Waivers:
    """What waivers did to a run."""
    waiving = run.waiving
    if waiving is None:
        return Waivers({})
    words = [_words(entry, context) for entry in waiving.entries]
    both = list(zip(waiving.entries, words, strict=True))
    return Waivers(
        by_case={(one.suite, one.case_id): words[one.entry] for one in _sound(waiving)},
        brought=tuple(said for entry, said in both if entry.waiver.new and entry.state not in _NOT_NEW),
        proposed=tuple(said for entry, said in both if entry.state is WaiverState.PROPOSED),
        warnings=warnings(waiving, without={WaiverState.PROPOSED}),
    )


def waived_counts(run: RunResult) -> tuple[str, ...]:
    """`1 regression accepted`, `2 failures quarantined`: what would have counted against the change, or may have."""
    if run.waiving is None:
        return ()
    found: dict[tuple[WaiverKind, str], int] = {}
    for kind, word in _kinds(run):
        found[kind, word] = found.get((kind, word), 0) + 1
    order = sorted(found, key=lambda one: (one[0] is not WaiverKind.ACCEPTED, _WORDS.index(one[1])))
    return tuple(f"{count(found[one], one[1])} {DONE[one[0]]}" for one in order)


_WORDS: Final = ("regression", "failure", "score drop", "unsettled case", "flaky case")


def _kinds(run: RunResult) -> Iterator[tuple[WaiverKind, str]]:
    """Kind and word of every waived case that a rule of this verdict would have counted."""
    assert run.waiving is not None
    flaky_counts = run.verdict is not None and run.verdict.rule(RuleCode.FLAKY) is not None
    drops_count = run.verdict is not None and run.verdict.rule(RuleCode.SCORE_DROP) is not None
    changes = {one.key: one.change for one in (run.comparison.changes if run.comparison else ())}
    flaky = {key for key, case in run.cases() if case.flaky}
    for one in _sound(run.waiving):
        key, kind = one.key, run.waiving.decisive(one).waiver.kind
        if one.standing is WaiverStanding.REGRESSED and kind is WaiverKind.ACCEPTED:
            yield kind, "regression"
        elif one.standing in {WaiverStanding.REGRESSED, WaiverStanding.FAILS}:
            yield kind, "failure"  # nobody asks what a case in quarantine is called
        elif changes.get(key) is CaseClass.UNSETTLED:
            if flaky_counts:
                yield kind, "unsettled case"
        elif key in flaky or changes.get(key) is CaseClass.FLAKY:
            if flaky_counts:
                yield kind, "flaky case"
        elif drops_count:
            yield kind, "score drop"


def _words(entry: WaiverEntry, context: ReportContext) -> WaiverWords:
    waiver, origin = entry.waiver, entry.waiver.origin
    return WaiverWords(
        kind=waiver.kind,
        done=f"would be {DONE[waiver.kind]}" if entry.state is WaiverState.PROPOSED else DONE[waiver.kind],
        until=f"{waiver.until}, {_left(entry.days_left)}",
        by=author(waiver),
        where=place_words(waiver),
        url=_url(origin, context),
        reason=waiver.reason,
        named=waiver.case,
        cases=tuple(case.case_id for case in entry.failing[:MAX_NAMED]),
        terms=terms(entry),
        new=waiver.new is True,
    )


def _sound(waiving: Waiving) -> Iterator[WaivedCase]:
    """Waived cases whose entry is there: the record may be anybody's."""
    return (one for one in waiving.waived if 0 <= one.entry < len(waiving.entries))


def _left(days: int) -> str:
    if days < 0:
        return "ended"
    return f"{count(days, 'day')} left" if days else "its last day"


def _url(origin: FileOrigin | CommentOrigin, context: ReportContext) -> str | None:
    """Where it can be seen: its line at the commit that was evaluated, or the comment; only on the server itself."""
    if isinstance(origin, FileOrigin):
        return line_url(Location(file=origin.file, line=origin.line), context)
    path = origin.url.removeprefix(f"{context.server_url}/")
    return origin.url if path != origin.url and _ADDRESS.fullmatch(path) else None


def accept_line(run: RunResult, file: str | None) -> str | None:
    """The command that accepts the regressions of a failed run; None without any that it could name.

    One that must pass nobody can accept.

    Its reason is none yet and would be refused: whoever sends it has to give one. `file` is where that is not the
    usual one.
    """
    if run.comparison is None or run.verdict is None or run.verdict.outcome is not Outcome.FAIL:
        return None
    must = must_pass_keys(run, run.policy.must_pass if run.policy else ())
    found = [one for one in changes_that_count(run, CaseClass.REGRESSION) if one.key not in must]
    files = [key.suite for key, _ in run.cases() if key.case_id in {one.case_id for one in found}]
    # an id that other files have too is told apart by its file
    suite = found[0].suite if found and len(files) > len(found) else None
    named = [one.case_id for one in found if suite in (None, one.suite) and name_problem(one.case_id) is None]
    if not named:
        return None
    options = ["--reason", "…", "--until", _DAYS, *(["--suite", escaped(suite)] if suite else [])]
    options += ["--file", file] if file else []
    cases = named[:MAX_CASES]
    if any(case.startswith("-") for case in cases):
        return shell_line(["eval-gate", "accept", *options, "--", *cases])
    return shell_line(["eval-gate", "accept", *cases, *options])


def accept_line_of(key: CaseKey, line: str) -> str | None:
    """The command of `accept_line` for this case alone, whatever file it is from; None where it cannot be named."""
    if name_problem(key.case_id) is not None or "$'" in line:
        return None
    words = shlex.split(line)
    file = words[words.index("--file") + 1 :][:1] if "--file" in words else []
    options = ["--reason", "…", "--until", _DAYS, "--suite", escaped(key.suite), *(["--file", *file] if file else [])]
    return shell_line(["eval-gate", "accept", *options, "--", key.case_id])


def accept_command(cases: Iterable[str], context: ReportContext) -> str | None:
    """The comment for the first of these cases that a command can name; None where nobody could use it."""
    if not context.accept_hint or (context.accept_by_commit and context.head_sha is None):
        return None
    line, named = None, list[str]()
    for case_id in list(dict.fromkeys(cases))[:MAX_CASES]:
        longer = _line([*named, case_id], context)
        if longer is not None and len(longer) <= MAX_COMMAND:
            line, named = longer, [*named, case_id]
    return line


def _line(cases: list[str], context: ReportContext) -> str | None:
    try:
        return command_line(cases, REASON, commit=context.head_sha if context.accept_by_commit else None)
    except ValueError:
        return None
