"""A store of baselines in a folder: one of two writers wins, and nothing that it holds is trusted."""

from __future__ import annotations

import zipfile
from functools import partial
from pathlib import Path

import pytest

from eval_gate.config.loader import load_config
from eval_gate.config.policy import Policy
from eval_gate.errors import GateError
from eval_gate.model.comparison import ReasonCode
from eval_gate.results.baseline import Baseline, NoBaseline
from eval_gate.results.baseline_store import BaselineStore, StoreError
from eval_gate.results.run_reader import find_baseline
from eval_gate.results.run_writer import write_history, write_result
from eval_gate.session.history_update import build_next_history
from eval_gate.struct import replace
from tests.support.results import make_baseline_run
from tests.support.verdicts import judge_against

NAME = "20261120T000000Z-r1.zip"


def find(store: Path, target: str | None = None, *, may_write: bool = True) -> Baseline | NoBaseline:
    return BaselineStore(str(store)).find_latest(
        partial(find_baseline, "latest", target=target), target, may_write=may_write
    )


def store_run(folder: Path, store: Path, run_id: str = "r1", status: str = "passed", day: int = 20) -> str:
    """The place of a run that is stored as one of the default branch is."""
    baseline = find(store)
    run = replace(make_baseline_run({"a": status}), run_id=run_id, timestamp=f"2026-11-{day}T00:00:00Z")
    decided = judge_against(run, NoBaseline(ReasonCode.NO_RUN_YET, "none"), Policy())
    write_history(folder, run_id, build_next_history(decided, baseline))
    return BaselineStore(str(store)).write_run(decided, write_result(folder, decided).file)


@pytest.fixture
def folders(tmp_path, monkeypatch) -> tuple[Path, Path]:
    monkeypatch.chdir(tmp_path)
    return Path("results"), tmp_path / "store"


def test_store__second_writer_of_a_name__loses_and_leaves_nothing_behind(folders) -> None:
    results, store = folders
    assert store_run(results, store) == f"{store}/{NAME}"
    first = (store / NAME).read_bytes()
    with pytest.raises(StoreError, match="already"):
        store_run(results, store, status="failed")
    assert [one.name for one in store.iterdir()] == [NAME]
    assert (store / NAME).read_bytes() == first


def test_store__newest_run_of_the_target_that_passed__is_the_baseline_with_its_history(folders) -> None:
    results, store = folders
    for day, run_id, status in ((20, "r1", "passed"), (21, "r2", "passed"), (22, "r3", "failed")):
        store_run(results, store, run_id, status, day)
    (store / "notes.txt").write_text("not a run")
    baseline = find(store, may_write=False)
    assert isinstance(baseline, Baseline)
    assert (baseline.result.run_id, [one.run_id for one in baseline.own_history.runs]) == ("r2", ["r2", "r1"])
    assert (baseline.folder, baseline.exact_reference) == (None, None), "the folder that it was unpacked in is gone"
    assert isinstance(find(store, "another"), Baseline), "it had another name before, as in a folder of runs"


@pytest.mark.parametrize(
    ("may_write", "code", "unavailable"),
    [(False, ReasonCode.BASELINE_UNAVAILABLE, True), (True, ReasonCode.NO_RUN_YET, False)],
)
def test_store__absent_place__is_empty_only_to_who_makes_it(folders, may_write, code, unavailable) -> None:
    missing = find(folders[1], may_write=may_write)
    assert isinstance(missing, NoBaseline)
    assert (missing.code, missing.unavailable) == (code, unavailable)
    assert str(folders[1]) in missing.reason


def test_store__archive_that_vanishes__is_no_empty_store(folders, monkeypatch) -> None:
    """A run of the default branch would pass as the first one."""
    results, place = folders
    store_run(results, place)
    store = BaselineStore(str(place))
    monkeypatch.setattr(store, "_list_newest", lambda: [NAME.replace("r1", "gone"), NAME])
    found = store.find_latest(partial(find_baseline, "latest"), None, may_write=True)
    assert isinstance(found, NoBaseline)
    assert found.unavailable


def test_store__newest_runs_are_no_baseline__does_not_say_that_there_is_no_run(folders, monkeypatch) -> None:
    monkeypatch.setattr("eval_gate.results.baseline_store.MAX_FETCHED", 2)
    results, place = folders
    for day, run_id in ((20, "r1"), (21, "r2"), (22, "r3")):
        store_run(results, place, run_id, "passed" if run_id == "r1" else "error", day)
    found = find(place)
    assert isinstance(found, NoBaseline)
    assert (found.unavailable, "newest 2 runs" in found.reason) == (True, True)


@pytest.mark.parametrize("entries", [None, {}, {"run.json": "{"}, {"../run.json": "{}"}])
def test_store__corrupt_archive__is_an_error_that_names_it(folders, entries) -> None:
    store = folders[1]
    store.mkdir()
    (store / NAME).write_bytes(b"PK")
    if entries is not None:
        with zipfile.ZipFile(store / NAME, "w") as archive:
            for name, text in entries.items():
                archive.writestr(name, text)
    with pytest.raises(GateError, match=NAME) as refusal:
        find(store)
    assert refusal.value.code == "invalid-run-result"


def test_store__scheme_that_nothing_reads__is_refused_before_the_run() -> None:
    with pytest.raises(GateError, match="not valid") as refusal:
        BaselineStore("foo://bucket/prefix")
    assert [one.field for one in refusal.value.problems] == ["store"]


@pytest.mark.parametrize("url", ["s3://key:hush@bucket/prefix", "s3://key:hu/sh@b/p", "simplecache::s3://key:hush@b/p"])
def test_store__password_in_the_url__is_refused_and_not_shown(tmp_path, url) -> None:
    (tmp_path / "eval-gate.yaml").write_text(f"# gate\nstore: {url}\n")
    with pytest.raises(GateError) as refusal:
        load_config({}, {}, tmp_path / "eval-gate.yaml")
    (problem,) = refusal.value.problems
    assert (problem.line, problem.field, "key:" in str(problem)) == (2, "store", False)
