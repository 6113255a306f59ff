"""Finds waivers for cases that nobody has, for `eval-gate waive` and `eval-gate validate`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from eval_gate.errors import GateError, format_suggestion
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.discovery import find_eval_files, load_suites
from eval_gate.gate.waivers.case_names import CaseNameIndex
from eval_gate.model.case import CaseKey
from eval_gate.model.result import RunResult
from eval_gate.model.waiver import CaseStanding, Waiver, WaiverStanding
from eval_gate.results.run_reader import read_runs
from eval_gate.text.quoting import quote_name


class UnknownWaiver(NamedTuple):
    """A waiver that names no case, and a sentence about it."""

    waiver: Waiver
    message: str
    is_suite: bool
    """Whether no eval file has the name of its suite, which results of another tool may have."""
    may_be_external: bool
    """Whether it may be for a case of another tool: results of one are configured, and none are stored."""


def find_unknown_waivers(
    waivers: Sequence[Waiver], evals: Sequence[str], root: Path, results: Path, *, has_external: bool
) -> tuple[UnknownWaiver, ...] | None:
    """Find the waivers that name no case of these eval files, which are all of the configuration.

    Results of another tool have no eval file, and a run may have had paths beside the configuration. Their cases are
    known by the runs in the folder `results`. `has_external` says whether results of another tool are configured.
    Return None if there is neither an eval file nor such a run, so that nothing is known. Raises GateError for an
    invalid eval file or stored run.
    """
    if not waivers:
        return ()
    keys = _load_case_keys(evals, root)
    unknown = _select_unmatched(waivers, keys)
    if unknown:
        runs = list(read_runs(results))
        has_external = has_external and not any(run.is_external for run in runs)
        keys += _list_other_case_keys(runs, root, {key.suite for key in keys})
        unknown = _select_unmatched(unknown, keys)
    return tuple(_describe_unknown(one, keys, may_be_external=has_external) for one in unknown) if keys else None


def _load_case_keys(evals: Sequence[str], root: Path) -> list[CaseKey]:
    try:
        suites = load_suites(find_eval_files(evals, root), root, ReadOptions())
    except GateError as error:
        if error.code != "eval-files-not-found":
            raise
        return []
    return [case.key for suite in suites for case in suite.cases]


def _list_other_case_keys(runs: Iterable[RunResult], root: Path, files: set[str]) -> Iterator[CaseKey]:
    for run in runs:
        for key, _ in run.iter_cases():
            if key.suite not in files and (run.is_external or (root / key.suite).is_file()):
                yield key


def _select_unmatched(waivers: Iterable[Waiver], keys: Iterable[CaseKey]) -> list[Waiver]:
    index = _index_cases(keys)
    return [one for one in waivers if not index.find_cases(one.case, one.suite)]


def _index_cases(keys: Iterable[CaseKey]) -> CaseNameIndex:
    fails = WaiverStanding.FAILS
    return CaseNameIndex(CaseStanding(suite=key.suite, case_id=key.case_id, standing=fails) for key in keys)


def _describe_unknown(waiver: Waiver, keys: Sequence[CaseKey], *, may_be_external: bool) -> UnknownWaiver:
    other = "; results of another tool may have it" if may_be_external else ""
    if waiver.suite is not None and not _index_cases(keys).find_cases("*", waiver.suite):
        files = dict.fromkeys(key.suite for key in keys)
        message = f"no eval file matches {quote_name(waiver.suite)}{format_suggestion(waiver.suite, files)}{other}"
        return UnknownWaiver(waiver, message, is_suite=True, may_be_external=may_be_external)
    ids = dict.fromkeys(key.case_id for key in keys)
    message = f"no eval file has a case {quote_name(waiver.case)}{format_suggestion(waiver.case, ids)}{other}"
    return UnknownWaiver(waiver, message, is_suite=False, may_be_external=may_be_external)
