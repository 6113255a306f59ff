"""Baselines from artifacts: which one is taken, which are not and in what words, and how much is asked for it."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import threading
import time
import zipfile
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from eval_gate.errors import ExitCode, GateError
from eval_gate.github.artifacts.artifact_search import (
    MAX_LISTED_ARTIFACTS,
    MAX_RUNS,
    BaselineCriteria,
    is_wanted_workflow,
)
from eval_gate.github.artifacts.baseline_finder import (
    MAX_FETCHED_ARTIFACTS,
    MAX_READ_RESULTS,
    MAX_USELESS_HISTORIES,
    BaselineFinder,
    CompanionFile,
    FoundBaseline,
)
from eval_gate.github.commits import ANY_COMMIT, BaseCommit
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.model.comparison import UnscoredRun
from eval_gate.model.result import GitFacts, ResultProducer, Shard
from eval_gate.results import archive
from eval_gate.results import run_reader as stored
from eval_gate.results.baseline import NoBaseline
from eval_gate.results.history import CaseHistory, History, HistoryRun, build_history, encode_history
from eval_gate.struct import replace
from tests.support.github import GATE, Fault, sha, zipped
from tests.support.github.state import iso
from tests.support.results import make_run

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
OWN_RUN = 9001
ZIP, BLOB, RUN, LIST = (
    r"/actions/artifacts/\d+/zip$",
    r"^/artifacts/\d+\?",
    r"/actions/runs/\d+$",
    r"/actions/artifacts\?",
)


def record(run_id: str = "stored", cases: dict[str, str] | None = None, **fields) -> bytes:
    """A stored run that says nothing of its commit, unless it is told to."""
    values = {"run_id": run_id, "git": None} | fields
    return msgspec.json.encode(make_run(cases or {"a": "passed"}, **values))


LEDGER = History(runs=(HistoryRun(run_id="before", timestamp="2026-11-20T10:00:00Z"),))
SENSELESS = replace(LEDGER, suites={"a": {"b": CaseHistory(fingerprints=("x",), runs="0Q*3")}})
WANTED = BaselineCriteria(
    names=("eval-gate-results",), branch="main", workflows=(GATE,), base=ANY_COMMIT, own_run_id=OWN_RUN
)


@pytest.fixture
def state(github):
    """Six commits on main: root, c1, …, c5."""
    for number in range(1, 6):
        github.state.add_commit(f"c{number}", branch="main")
    return github.state


@pytest.fixture
def keep(state):
    """A run on a commit of main that left an artifact: its result names the commit."""

    def keep(commit: str = "c5", data: bytes | None = None, name: str = "eval-gate-results", **run):
        facts = {"expired": run.pop("expired", False), "digest": run.pop("digest", "")}
        made = state.add_run(head_sha=commit, **run)
        return state.add_artifact(made, data or {"run.json": record(f"of-{commit}")}, name, **facts)

    return keep


@pytest.fixture
def store(client, tmp_path):
    def store(**wanted) -> BaselineFinder:
        base = {name: wanted.pop(name) for name in BaseCommit.__struct_fields__ if name in wanted}
        return BaselineFinder(client, replace(WANTED, base=BaseCommit(**base), **wanted), temporary=tmp_path)

    return store


def taken(found: FoundBaseline | NoBaseline) -> str:
    assert isinstance(found, FoundBaseline), found
    return found.baseline.result.run_id


# --- which one


def test_nearest__commit_has_its_own__is_that_and_no_ancestor_is_asked_for(github, store, keep) -> None:
    for commit in ("c1", "c3", "c5"):
        keep(commit)
    assert taken(store(commit=sha("c3")).find_nearest(NOW)) == "of-c3"
    assert len(github.requests("GET", r"/commits\?")) == 1  # the branch's own


def test_nearest__commit_has_several__is_the_newest_of_them(store, keep) -> None:
    keep("c3", {"run.json": record("older")})
    keep("c3", {"run.json": record("newer")})
    keep("c5")
    assert taken(store(commit=sha("c3")).find_nearest(NOW)) == "newer"


def test_nearest__commit_has_none__is_the_nearest_before_it_never_a_later_one(store, keep) -> None:
    for commit in ("c1", "c2", "c5"):
        keep(commit)
    assert taken(store(commit=sha("c4")).find_nearest(NOW)) == "of-c2"


@pytest.mark.parametrize("near", ["c2", "a commit that GitHub does not know"])
def test_nearest__none_before_it__a_later_one_is_none(store, keep, near) -> None:
    """What is done there is not in what is evaluated: it would be blamed on the change, or excuse it."""
    for commit in ("c5", "c4"):
        keep(commit)
    found = store(commit=sha(near)).find_nearest(NOW)
    assert isinstance(found, NoBaseline)
    assert found.unavailable
    assert "seen 2: 2 of a commit that is not in the base; update this change with main" in found.reason


def test_nearest__near_to_nothing__is_the_newest_there_is(store, keep) -> None:
    for commit in ("c3", "c5", "c1"):
        keep(commit)
    assert taken(store(commit=None).find_nearest(NOW)) == "of-c1"


def test_nearest__test_merge__is_near_to_what_was_merged_into(store, keep, state) -> None:
    for commit in ("c1", "c4", "c5"):
        keep(commit)
    state.add_commit("topic", sha("c1"))
    state.add_commit("merge", (sha("c4"), sha("topic")))
    found = store(first_parent_of=sha("merge")).find_nearest(NOW)
    assert taken(found) == "of-c4"
    assert (found.baseline.base_sha, found.baseline.commits_since) == (sha("c4"), 0)


def test_nearest__older_than_the_base__says_by_how_much(store, keep, state) -> None:
    keep("c2")
    found = store(commit=sha("c5")).find_nearest(NOW)
    assert (taken(found), found.baseline.base_sha, found.baseline.commits_since) == ("of-c2", sha("c5"), 3)


def test_nearest__left_another_branch__is_near_to_where_it_left_that(store, keep, state) -> None:
    """A change into `release`: what release had is the base, and its nearest commit on main has the baseline."""
    state.add_commit("r1", sha("c2"), branch="release")
    state.add_commit("r2", branch="release")
    state.add_commit("topic", sha("r2"))
    for commit in ("c1", "c2", "c5"):
        keep(commit)
    found = store(fork_point_of=sha("topic"), forked_from="release").find_nearest(NOW)
    assert (taken(found), found.baseline.base_sha, found.baseline.commits_since) == ("of-c2", sha("r2"), 2)


@pytest.mark.parametrize(("of", "taken_of"), [("c3", "of-c3"), ("c2", None)])
def test_nearest__only_its_own_will_do__nothing_before_it_is_taken(store, keep, state, of, taken_of) -> None:
    state.branches["production"] = sha("c3")
    keep(of)
    keep("c5")
    found = store(branch="production", exact_commit_branch="main", commit=sha("c3")).find_nearest(NOW)
    if taken_of is None:
        assert isinstance(found, NoBaseline)
        assert (found.unavailable, f"for commit {sha('c3')[:7]}" in found.reason) == (True, True)
    else:
        assert taken(found) == taken_of


@pytest.mark.slow
def test_nearest__commit_is_before_all_of_a_long_history__ancestors_are_bounded(github, store, keep, state) -> None:
    for number in range(450):
        state.add_commit(f"long {number}", branch="main")
    keep("c1")
    assert taken(store(commit=state.branches["main"]).find_nearest(NOW)) == "of-c1"
    asked = github.requests("GET", r"/commits\?")
    assert len(asked) == 3 + 5  # those before the commit, and those of the branch as far as the baseline


def test_nearest__red_default_branch__counts_all_the_same(store, keep) -> None:
    keep("c4")
    keep("c5", conclusion="failure")
    assert taken(store(commit=sha("c5")).find_nearest(NOW)) == "of-c5"


@pytest.mark.parametrize("event", ["push", "schedule", "workflow_dispatch"])
def test_nearest__events_that_run_what_is_on_the_branch__are_trusted(store, keep, event) -> None:
    keep("c5", event=event)
    assert taken(store().find_nearest(NOW)) == "of-c5"


def test_nearest__where_it_comes_from__is_github_s_word_and_not_the_artifact_s(store, keep) -> None:
    claimed = GitFacts(sha=sha("c4"), ref="refs/heads/evil", repository="mallory/bot")
    keep("c4", {"run.json": record("x", git=claimed)})
    found = store().find_nearest(NOW)
    assert isinstance(found, FoundBaseline)
    git = found.baseline.result.git
    assert git is not None
    assert (git.sha, git.ref, git.repository) == (sha("c4"), "refs/heads/main", "acme/bot")
    assert (found.sha, found.trail) == (sha("c4"), "")


def test_nearest__own_run__is_never_its_own_baseline(store, keep) -> None:
    keep("c4")
    keep("c5", run_id=OWN_RUN)
    assert taken(store(commit=sha("c5")).find_nearest(NOW)) == "of-c4"


def test_nearest__fork_that_was_deleted__does_not_spoil_the_list(store, keep, state) -> None:
    keep("c5")
    deleted = state.add_run(event="pull_request", head_branch="main", head_repo=None)
    state.add_artifact(deleted, {"run.json": record("evil")})
    assert taken(store().find_nearest(NOW)) == "of-c5"


@pytest.mark.parametrize("name", ["a&b=c", "größe 100%", "x+y", "#1?"])
def test_nearest__artifact_with_any_name__is_found_by_it(store, keep, name) -> None:
    keep("c5", {"run.json": record("other")})
    keep("c4", name=name)
    assert taken(store(names=(name,), commit=sha("c5")).find_nearest(NOW)) == "of-c4"


# --- which not, and why


def zip_of(*entries: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in entries:
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def damaged(method: int) -> bytes:
    """A zip whose directory is whole and whose content was damaged, as by a bad disk."""
    whole = bytearray(zip_of(("run.json", record() * 20), method=method))
    for place in range(60, 90):
        whole[place] ^= 0xFF
    return bytes(whole)


def misnamed() -> bytes:
    """An entry that says its name is UTF-8, and it is not."""
    return zip_of(("run.json", record()), ("größe.html", b"x")).replace("ö".encode(), b"\xff\xfe")


def encrypted() -> bytes:
    whole = bytearray(zip_of(("run.json", record())))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = whole.index(signature) + offset
        whole[place : place + 2] = struct.pack("<H", 1)
    return bytes(whole)


def unfit(**changes) -> bytes:
    return json.dumps({**json.loads(record()), **changes}).encode()


WITH_RUN = {"run.json": record()}
REJECTED = {
    "expired": ({"expired": True}, "1 expired"),
    "from a fork": ({"head_repo": "mallory/bot", "event": "push"}, "1 from a fork"),
    "from a deleted fork": ({"head_repo": None, "event": "push"}, "1 from a fork"),
    "of a pull request": ({"event": "pull_request"}, "1 from a run of pull_request"),
    "of pull_request_target": ({"event": "pull_request_target"}, "1 from a run of pull_request_target"),
    "of workflow_run": ({"event": "workflow_run"}, "1 from a run of workflow_run"),
    "of issue_comment": ({"event": "issue_comment"}, "1 from a run of issue_comment"),
    "of a merge queue": ({"event": "merge_group"}, "1 from a run of merge_group"),
    "another workflow": ({"path": ".github/workflows/x.yml"}, "1 of another workflow (.github/workflows/x.yml)"),
    "of another commit": (
        {"data": {"run.json": record(git=GitFacts(sha="f" * 40))}},
        "1 of another commit than its run's",
    ),
    "of chosen cases": ({"data": {"run.json": record(partial=True)}}, "1 of some cases only"),
    "of one shard": ({"data": {"run.json": record(shard=Shard(index=1, count=4))}}, "1 of another part of the cases"),
    "not complete": ({"data": {"run.json": record(complete=False)}}, "1 of an incomplete run"),
    "wrong digest": ({"digest": "sha256:" + "0" * 64}, "1 not usable (its content does not match GitHub's digest)"),
    "not a zip": ({"data": b"{}"}, "1 not usable (it is not a zip archive)"),
    "half a zip": ({"data": zipped(WITH_RUN)[:-30]}, "1 corrupt"),
    "only a beginning": ({"data": b"PK\x03\x04"}, "1 corrupt"),
    "damaged, deflate": ({"data": damaged(zipfile.ZIP_DEFLATED)}, "1 corrupt"),
    "damaged, lzma": ({"data": damaged(zipfile.ZIP_LZMA)}, "1 corrupt"),
    "damaged, bzip2": ({"data": damaged(zipfile.ZIP_BZIP2)}, "1 corrupt"),
    "damaged, stored": ({"data": damaged(zipfile.ZIP_STORED)}, "1 corrupt"),
    "a name that is no text": ({"data": misnamed()}, "1 corrupt"),
    "encrypted": ({"data": encrypted()}, "1 corrupt"),
    "nothing in it": ({"data": zipped({})}, "1 corrupt"),
    "no record": ({"data": {"report.html": b"x"}}, "1 corrupt"),
    "two records": ({"data": {"run.json": record(), "a/run.json": record()}}, "1 corrupt"),
    "the record twice": ({"data": None, "twice": True}, "1 corrupt"),
    "leads up": ({"data": {"../run.json": record()}}, "1 corrupt"),
    "leads up beside": ({"data": WITH_RUN | {"a/../../x": b"x"}}, "1 corrupt"),
    "leads up as on Windows": ({"data": WITH_RUN | {"..\\x": b"x"}}, "1 corrupt"),
    "absolute": ({"data": WITH_RUN | {"/etc/passwd": b"x"}}, "1 corrupt"),
    "a drive": ({"data": WITH_RUN | {"C:x": b"x"}}, "1 corrupt"),
    "not JSON": ({"data": {"run.json": b"\xff{"}}, "1 corrupt"),
    "very deep": ({"data": {"run.json": b"[" * 100_000}}, "1 corrupt"),
    "a number without end": ({"data": {"run.json": b'{"schemaVersion": ' + b"9" * 10_000 + b"}"}}, "1 corrupt"),
    "another shape": ({"data": {"run.json": b'{"schemaVersion": 1}'}}, "1 corrupt"),
    "no version": ({"data": {"run.json": b"{}"}}, "1 corrupt"),
    "newer version": ({"data": {"run.json": unfit(schemaVersion=2, more=1)}}, "1 written by a newer version"),
    "newer version of another shape": (
        {"data": {"run.json": b'{"schemaVersion": 99}'}},
        "1 written by a newer version",
    ),
}


@pytest.fixture
def reject(keep):
    def reject(how) -> None:
        facts = dict(how)
        if facts.pop("twice", False):
            with pytest.warns(UserWarning, match="Duplicate name"):
                facts["data"] = zip_of(("run.json", record()), ("run.json", record()))
        keep(facts.pop("commit", "c5"), **facts)

    return reject


@pytest.mark.slow
@pytest.mark.parametrize(("how", "sentence"), REJECTED.values(), ids=REJECTED)
def test_nearest__the_nearest_must_not_be_used__the_next_is_and_the_trail_says_why(
    store, keep, reject, how, sentence
) -> None:
    keep("c3")
    reject(how)
    found = store(commit=sha("c5")).find_nearest(NOW)
    assert taken(found) == "of-c3"
    assert found.trail in {f"seen 1: {sentence}", f"seen 2: {sentence}"}


@pytest.mark.slow
@pytest.mark.parametrize(("how", "sentence"), REJECTED.values(), ids=REJECTED)
def test_nearest__only_one_that_must_not_be_used__there_is_none_and_the_reason_says_why(
    store, reject, how, sentence
) -> None:
    reject(how)
    found = store(commit=sha("c5")).find_nearest(NOW)
    assert isinstance(found, NoBaseline)
    unread = any(
        words in sentence for words in ("corrupt", "not usable", "newer version", "expired", "cases only", "the cases")
    )
    assert (found.code, found.unavailable) == ("baseline-artifact-not-found", unread)
    assert found.reason.startswith(f"no usable artifact eval-gate-results of main; seen 1: {sentence}; ")


def test_nearest__nothing_at_all__says_how_to_get_one(store, keep, state) -> None:
    state.branches["topic"] = sha("c5")
    keep("c5", name="another-name")
    keep("c5", head_branch="topic")
    found = store().find_nearest(NOW)
    assert isinstance(found, NoBaseline)
    assert found.reason == "no usable artifact eval-gate-results of main; the next run on main stores one"


def test_nearest__several_for_several_reasons__are_counted(store, keep, reject) -> None:
    for how in ("expired", "expired", "half a zip", "of a pull request"):
        reject(REJECTED[how][0])
    keep("c1")
    found = store(commit=sha("c5")).find_nearest(NOW)
    assert isinstance(found, FoundBaseline)
    assert found.trail.startswith("seen 5: ")
    assert all(part in found.trail for part in ("2 expired", "1 corrupt", "1 from a run of pull_request"))


@pytest.mark.parametrize(("status", "kind"), [(404, FailureKind.NOT_FOUND), (410, FailureKind.GONE)])
def test_nearest__listed_and_cannot_be_fetched__is_not_known_and_no_older_one_stands_for_it(
    github, store, keep, status, kind
) -> None:
    keep("c4")
    keep("c5")
    github.faults.add("GET", ZIP, Fault.status(status, message="Artifact has expired"))
    with pytest.raises(GitHubError, match=f"lists it as not expired, but GitHub responded with {status}") as caught:
        store(commit=sha("c5")).find_nearest(NOW)
    assert caught.value.kind is kind


@pytest.mark.slow
def test_nearest__a_bomb__is_read_no_further_than_allowed(store, keep, monkeypatch) -> None:
    monkeypatch.setattr(stored, "MAX_RESULT_BYTES", 100_000)
    keep("c4")
    keep("c5", {"run.json": b" " * 50_000_000})
    began = time.monotonic()
    found = store(commit=sha("c5")).find_nearest(NOW)
    assert (taken(found), found.trail) == ("of-c4", "seen 2: 1 corrupt")
    assert time.monotonic() - began < 5


def test_nearest__more_entries_than_anybody_needs__is_corrupt(store, keep, monkeypatch) -> None:
    monkeypatch.setattr(archive, "MAX_ENTRIES", 10)
    keep("c5", WITH_RUN | {f"{number}.txt": b"" for number in range(10)})
    found = store().find_nearest(NOW)
    assert isinstance(found, NoBaseline)
    assert "1 corrupt" in found.reason


@pytest.mark.slow
def test_nearest__record_with_a_key_twice_among_very_many__is_refused_in_reasonable_time(store, keep) -> None:
    """Four hundred kilobytes must not keep a job busy for minutes."""
    members = b",".join(b'"k%d":1' % number for number in range(40_000))
    keep("c5", {"run.json": b'{"schemaVersion":1,' + members + b',"k0":2}'})
    began = time.monotonic()
    found = store().find_nearest(NOW)
    assert isinstance(found, NoBaseline)
    assert time.monotonic() - began < 5


READ_IT = """
import re, sys
from pathlib import Path
from eval_gate.errors import GateError
from eval_gate.results.run_reader import read_archived_run
try:
    read_archived_run(Path(sys.argv[1]), "it")
except GateError as error:
    # not ru_maxrss, which begins with what the parent process had
    print(error.code, int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1000)
"""


@pytest.mark.slow
def test_nearest__record_with_very_many_mistakes__is_refused_within_bounds(tmp_path) -> None:
    """Two kilobytes of zip are two megabytes of mistakes, and must not be gigabytes of memory."""
    beginning = unfit(suites=[]).partition(b'"suites": [')[0]
    file = tmp_path / "artifact.zip"
    file.write_bytes(zip_of(("run.json", beginning + b'"suites": [' + b"1," * 1_000_000 + b"1]}")))
    assert file.stat().st_size < 10_000
    command = [sys.executable, "-c", READ_IT, str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    code, megabytes = ended.stdout.split()
    assert code == "invalid-run-result"
    assert int(megabytes) < 600


@pytest.mark.slow
def test_nearest__many_that_cannot_be_used__at_most_ten_are_fetched(github, store, keep) -> None:
    for _ in range(MAX_READ_RESULTS + 5):
        keep("c5", {"run.json": record("outage", OUTAGE)})
    found = store(commit=sha("c5")).find_nearest(NOW)
    assert isinstance(found, NoBaseline)
    assert "10 without enough scores" in found.reason
    assert len(github.requests("GET", ZIP)) == MAX_READ_RESULTS == 10


@pytest.mark.slow
@pytest.mark.parametrize("hours", [15, 60])
def test_nearest__another_workflow_keeps_more_of_the_same_name__ours_is_found_behind_them(
    github, store, keep, hours
) -> None:
    """An hourly workflow on one commit, over a weekend: its results must not crowd ours out, or nothing is compared."""
    keep("c5")
    for _ in range(hours):
        keep("c5", path=".github/workflows/hourly.yml", event="schedule")
    assert taken(store(commit=sha("c5")).find_nearest(NOW)) == "of-c5"
    assert len(github.log) < 80


def test_nearest__of_another_workflow__is_not_even_fetched(github, store, keep) -> None:
    keep("c5", path=".github/workflows/x.yml")
    store().find_nearest(NOW)
    assert github.requests("GET", ZIP) == []


@pytest.mark.parametrize("how", ["expired", "from a fork", "from a deleted fork"])
def test_nearest__what_the_list_speaks_against__is_asked_no_further(github, store, reject, how) -> None:
    reject(REJECTED[how][0])
    store().find_nearest(NOW)
    assert len(github.requests("GET", "/actions/")) == 1


def test_nearest__github_does_not_answer__is_no_absence(github, store, keep) -> None:
    """As if there were none would let every regression through."""
    keep("c5")
    github.faults.add("GET", ZIP, *[Fault.status(502)] * 5)
    with pytest.raises(GitHubError) as caught:
        store().find_nearest(NOW)
    assert caught.value.kind is FailureKind.SERVER


@pytest.mark.parametrize("route", [LIST, RUN, ZIP])
def test_nearest__permission_missing__is_no_absence(github, store, keep, route) -> None:
    keep("c5")
    github.faults.add("GET", route, Fault.permission())
    with pytest.raises(GitHubError, match="`permissions: actions: read`"):
        store().find_nearest(NOW)


def test_nearest__token__is_never_seen_by_the_blob_host(github, store, keep) -> None:
    keep("c5")
    store().find_nearest(NOW)
    assert ["authorization" in one.headers for one in github.requests("GET", BLOB)] == [False]


@pytest.mark.parametrize("how", ["of another commit", "not complete", "another workflow", "two records"])
def test_nearest__what_is_refused__leaves_none_of_its_answers_behind(client, keep, reject, tmp_path, how) -> None:
    """Recorded answers are replayed in place of the agent's: those of a refused artifact are somebody else's words."""
    keep("c3")
    facts = dict(REJECTED[how][0])
    files = facts.get("data") or {"run.json": record()}
    reject(facts | {"data": {**files, "recording.jsonl": b'{"forged": true}'}})
    kept = tmp_path / "results" / "recording.jsonl"
    beside = CompanionFile("recording.jsonl", kept, 1_000)
    found = BaselineFinder(client, replace(WANTED, base=BaseCommit(sha("c5"))), companion=beside).find_nearest(NOW)
    assert taken(found) == "of-c3"
    assert not kept.exists()


def test_nearest__taken_with_its_answers__they_are_kept_unless_there_are_too_many(client, keep, tmp_path) -> None:
    keep("c5", {"run.json": record("x"), "recording.jsonl": b"12345"})
    for limit, there in ((4, False), (5, True)):
        kept = tmp_path / f"{limit}.jsonl"
        store = BaselineFinder(client, WANTED, companion=CompanionFile("recording.jsonl", kept, limit))
        assert taken(store.find_nearest(NOW)) == "x"
        assert kept.exists() is there


@pytest.mark.parametrize(
    ("beside", "runs", "lost"),
    [
        ({"history.json": encode_history(LEDGER)}, 1, ""),
        ({"history.json": b"12345"}, 0, "the history of artifact"),
        ({"history.json": encode_history(SENSELESS)}, 0, "the history of artifact"),
        ({"other.json": b"1"}, 0, ""),
        ({"agent/history.json": encode_history(LEDGER)}, 0, ""),
    ],
)
@pytest.mark.parametrize("folder", ["", "evals/results/x/"])
def test_nearest__its_history__comes_with_it_or_is_said_to_be_lost(client, keep, beside, runs, lost, folder) -> None:
    keep("c5", {f"{folder}{name}": data for name, data in {"run.json": record("x"), **beside}.items()})
    found = BaselineFinder(client, WANTED).find_nearest(NOW)
    assert isinstance(found, FoundBaseline)
    assert len(found.baseline.history.runs) == runs
    assert found.history_error[: len("the history of artifact")] == lost


OUTAGE = {"a": "error", "b": "error", "c": "passed"}


def test_nearest__fewer_than_half_of_the_cases_were_judged__is_the_run_before_and_the_baseline_says_so(
    store, keep
) -> None:
    keep("c3")
    keep("c5", {"run.json": record("outage", OUTAGE)})
    found = store(commit=sha("c5")).find_nearest(NOW)
    assert taken(found) == "of-c3"
    assert isinstance(found, FoundBaseline)
    assert found.baseline.unscored_runs == (UnscoredRun(run_id="outage", sha=sha("c5"), scored=1, cases=3),)
    assert found.trail == "seen 2: 1 without enough scores"


@pytest.mark.slow
def test_nearest__an_outage_longer_than_is_looked_back__is_not_taken_for_no_baseline(store, keep) -> None:
    keep("c1")
    for _ in range(MAX_READ_RESULTS):
        keep("c5", {"run.json": record("outage", OUTAGE)})
    found = store(commit=sha("c5")).find_nearest(NOW)
    assert isinstance(found, NoBaseline)
    assert found.unavailable


def test_of_run__could_not_be_measured__is_refused(store, keep) -> None:
    artifact = keep("c5", {"run.json": record("outage", OUTAGE)})
    with pytest.raises(GateError, match="without enough scores"):
        store().find_in_run(artifact.run_id, NOW)


def test_nearest__temporary_files__are_gone_afterwards(store, keep, reject, tmp_path) -> None:
    keep("c4")
    reject({"data": b"PK\x03\x04"})
    store(commit=sha("c5")).find_nearest(NOW)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "wanted", "expected"),
    [
        (GATE, (), True),
        (GATE, (GATE,), True),
        (GATE, ("gate.yml",), True),
        (GATE, ("x.yml", "gate.yml"), True),
        (GATE, ("x.yml",), False),
        (GATE, ("ate.yml",), False),
        (GATE, ("workflows/gate.yml",), False),
        (".github/workflows/sub/gate.yml", (GATE,), False),
        ("", ("gate.yml",), False),
    ],
)
def test_is_workflow__path_or_file_name__is_whole(path, wanted, expected) -> None:
    assert is_wanted_workflow(path, wanted) is expected


# --- how old, how far behind


def test_found__age_and_distance__are_github_s(store, keep, state) -> None:
    artifact = keep("c3")
    artifact.created_at = iso(NOW - timedelta(days=2, hours=12))
    found = store(commit=sha("c3")).find_nearest(NOW)
    assert isinstance(found, FoundBaseline)
    assert (found.baseline.age_days, found.baseline.commits_behind) == (2.5, 2)
    assert found.baseline.source == f"artifact {artifact.id} of run {artifact.run_id}"


def test_found__clock_of_this_job_is_late__is_not_younger_than_new(store, keep) -> None:
    keep("c5").created_at = iso(NOW + timedelta(hours=1))
    found = store().find_nearest(NOW)
    assert isinstance(found, FoundBaseline)
    assert found.baseline.age_days == 0


def test_found__commit_is_gone_from_github__how_far_behind_is_unknown(store, keep, state) -> None:
    state.branches["main"] = sha("gone after a force push")
    keep("gone after a force push")
    state.branches["main"] = sha("c5")
    found = store().find_nearest(NOW)
    assert isinstance(found, FoundBaseline)
    assert found.baseline.commits_behind is None


def test_found__distance_cannot_be_asked__is_noted_and_the_baseline_is_there(github, store, keep) -> None:
    keep("c5")
    github.faults.add("GET", "/compare/", Fault.permission())
    one = store()
    found = one.find_nearest(NOW)
    assert isinstance(found, FoundBaseline)
    assert found.baseline.commits_behind is None
    assert ["cannot check how far the baseline is behind" in note for note in one.notes] == [True]


@pytest.mark.parametrize(
    ("branch", "change", "merge"),
    [
        ("main", "a commit that GitHub does not know", None),
        ("no such branch", "topic", None),
        ("main", None, "a commit that GitHub does not know"),
        ("main", None, "an orphan"),
    ],
)
def test_nearest__github_does_not_know_the_base__cannot_be_told(store, keep, state, branch, change, merge) -> None:
    state.add_commit("topic", sha("c2"))
    state.add_commit("an orphan")
    keep("c2")
    one = store(branch=branch, fork_point_of=change and sha(change), first_parent_of=merge and sha(merge))
    found = one.find_nearest(NOW)
    assert isinstance(found, NoBaseline)
    assert (found.unavailable, "the commit to compare with is unknown" in found.reason) == (True, True)


def test_nearest__to_where_a_change_left_the_branch(store, keep, state) -> None:
    state.add_commit("topic", sha("c2"))
    for commit in ("c5", "c3", "c2", "c1"):
        keep(commit)
    assert taken(store(fork_point_of=sha("topic")).find_nearest(NOW)) == "of-c2"


def test_nearest__of_several_names__all_is_asked_at_the_same_time_that_needs_no_answer(
    github, store, keep, state
) -> None:
    """Each waits at GitHub for the others: fork point, branch and both lists, then the archive and the distance."""
    state.add_commit("topic", sha("c2"))
    keep("c2")
    first, second = threading.Barrier(4, timeout=20), threading.Barrier(2, timeout=20)
    lists = (r"/actions/artifacts\?.*name=eval-gate-results(&|$)", r"name=another")
    for path in (r"/compare/main\.\.\.", "/git/ref/heads/main", *lists):
        github.faults.add("GET", path, Fault.meet(first))
    for path in (r"/actions/artifacts/\d+/zip", rf"/compare/{sha('c2')}\.\.\."):
        github.faults.add("GET", path, Fault.meet(second))
    one = store(names=("eval-gate-results", "another"), fork_point_of=sha("topic"))
    assert taken(one.find_nearest(NOW)) == "of-c2"


# --- merge groups


def queue(branch: str, name: str) -> dict[str, str]:
    return {"event": "merge_group", "head_branch": f"gh-readonly-queue/{branch}/pr-7-{sha(name)}"}


def test_nearest__of_a_merge_group_whose_head_is_the_branch_s_now__is_the_baseline(store, keep) -> None:
    keep("c4", **queue("main", "c3"))
    keep("c3")
    assert taken(store(commit=sha("c5")).find_nearest(NOW)) == "of-c4"
    assert taken(store(commit=sha("c4")).find_nearest(NOW)) == "of-c4"


@pytest.mark.parametrize(
    ("commit", "facts"),
    [
        ("never merged", queue("main", "c5")),
        ("theirs", queue("main", "c5")),
        ("c4", queue("release", "c3")),
        ("c4", queue("main", "c3") | {"head_repo": "mallory/bot"}),
        ("c4", queue("main", "c3") | {"event": "pull_request"}),
        ("c4", queue("main", "c3") | {"head_branch": "main"}),
    ],
)
@pytest.mark.parametrize("near", [None, "merge", "theirs"])
def test_nearest__of_a_merge_group_that_is_not_the_branch_s__is_none(store, keep, state, commit, facts, near) -> None:
    state.add_commit("never merged", sha("c5"))
    state.add_commit("theirs", sha("c4"))
    state.add_commit("merge", (sha("c5"), sha("theirs")), branch="main")
    keep(commit, **facts)
    assert isinstance(store(commit=near and sha(near)).find_nearest(NOW), NoBaseline)


# --- what hides it


@pytest.mark.parametrize(
    "facts",
    [
        {"data": {"run.json": record(partial=True)}},
        {"data": {"run.json": record(producer=ResultProducer(gate="sales", run_id=1))}},
        {"data": {"run.json": record(complete=False)}},
        {"event": "pull_request"},
        {"path": ".github/workflows/x.yml"},
    ],
    ids=["some cases", "another gate", "incomplete", "event", "workflow"],
)
def test_nearest__many_newer_ones_that_run_or_head_tell_apart__cost_no_try(store, keep, facts) -> None:
    keep("c5")
    for _ in range(MAX_READ_RESULTS + 2):
        keep("c5", **facts)
    assert taken(store(gate="support").find_nearest(NOW)) == "of-c5"


@pytest.mark.parametrize("unknown", [False, True])
def test_nearest__more_newer_ones_of_other_gates_than_are_fetched__is_not_taken_for_no_baseline(
    github, store, keep, unknown
) -> None:
    if unknown:
        keep("c1")
    for _ in range(MAX_FETCHED_ARTIFACTS):
        keep("c5", {"run.json": record(producer=ResultProducer(gate="sales", run_id=1))})
    found = store(gate="support").find_nearest(NOW)
    assert isinstance(found, NoBaseline)
    assert found.unavailable is unknown
    assert ("among the nearest; seen 26: 25 of another gate (sales); give each gate" in found.reason) is unknown
    assert len(github.requests("GET", ZIP)) == MAX_FETCHED_ARTIFACTS


def test_nearest__its_own_artifact_is_behind_a_full_list__the_commit_s_runs_are_asked(
    github, store, keep, state
) -> None:
    keep("c3")
    for _ in range(MAX_RUNS + 1):  # of the branch later on, all but one of which left nothing
        state.add_run(head_sha="c5")
    crowd = state.add_run(event="pull_request", head_branch="topic")
    for _ in range(MAX_LISTED_ARTIFACTS):
        state.add_artifact(crowd, b"PK")
    keep("c5")
    assert taken(store(commit=sha("c3")).find_nearest(NOW)) == "of-c3"
    assert len(github.requests("GET", r"/actions/runs\?")) == 1


def test_nearest__full_list_and_more_runs_than_are_asked__is_not_taken_for_no_baseline(store, state) -> None:
    crowd = state.add_run(event="pull_request", head_branch="topic")
    for _ in range(MAX_LISTED_ARTIFACTS):
        state.add_artifact(crowd, b"PK")
    assert not store().find_nearest(NOW).unavailable  # the branch has no run at all
    for _ in range(MAX_RUNS + 1):
        state.add_run(head_sha="c5")
    assert store().find_nearest(NOW).unavailable


# --- runs that overlapped


def chain(run_id: str, *before: str) -> dict[str, bytes]:
    """A result, with a ledger of itself and of these runs; run `c5` is of commit `c5`."""
    run = make_run({"a": "passed"}, run_id=run_id, git=None, timestamp=f"2026-11-20T10:00:0{run_id[-1]}Z")
    older = build_history(
        [
            make_run({"a": "failed"}, run_id=one, git=GitFacts(sha=sha(one)), timestamp=f"2026-11-20T10:00:0{one[-1]}Z")
            for one in before
        ]
    )
    ledger = older.with_run(replace(run, git=GitFacts(sha=sha(run_id))))
    return {"run.json": msgspec.json.encode(run), "history.json": encode_history(ledger)}


def names(found: FoundBaseline | NoBaseline) -> list[str]:
    assert isinstance(found, FoundBaseline)
    return [one.run_id for one in found.baseline.own_history.runs]


def test_nearest__runs_overlapped__their_histories_are_joined(github, store, keep) -> None:
    for at in (1, 2, 3, 4, 5):
        keep(f"c{at}", chain(f"c{at}", *[f"c{one}" for one in range(at - 2, 0, -2)]))
    found = store(commit=sha("c5")).find_nearest(NOW)
    assert names(found) == ["c5", "c4", "c3", "c2", "c1"]
    assert len(github.requests("GET", ZIP)) == 2  # what the second brings is all there is


def test_nearest__every_run_knows_the_ones_before__nothing_else_is_fetched(github, store, keep) -> None:
    for at in (3, 4, 5):
        keep(f"c{at}", chain(f"c{at}", *[f"c{one}" for one in range(at - 1, 2, -1)]))
    assert names(store(commit=sha("c4")).find_nearest(NOW)) == ["c4", "c3"]  # c5 is later
    assert len(github.requests("GET", ZIP)) == 1


def test_nearest__others_before_it_cannot_serve__two_are_fetched_in_vain(github, store, keep, state) -> None:
    keep("c1", chain("c1"))
    for at in (2, 3, 4):
        keep(f"c{at}", {"run.json": record(partial=True)})
    keep("c5", chain("c5"))
    assert names(store(commit=sha("c5")).find_nearest(NOW)) == ["c5"]
    assert len(github.requests("GET", ZIP)) == 1 + MAX_USELESS_HISTORIES


@pytest.mark.parametrize("facts", [{"event": "pull_request"}, {"head_repo": "mallory/bot"}, {"head_branch": "topic"}])
def test_nearest__run_beside_it_is_not_the_branch_s__its_history_does_not_count(store, keep, facts) -> None:
    keep("c4", chain("c4"), **facts)
    keep("c5", chain("c5"))
    assert names(store(commit=sha("c5")).find_nearest(NOW)) == ["c5"]


def test_nearest__history_beside_it_cannot_be_had__is_noted_and_the_baseline_is_there(github, store, keep) -> None:
    other = keep("c4", chain("c4"))
    keep("c5", chain("c5"))
    github.faults.add("GET", rf"/actions/artifacts/{other.id}/zip", Fault.permission())
    one = store(commit=sha("c5"))
    assert names(one.find_nearest(NOW)) == ["c5"]
    assert ["the histories of runs parallel to the baseline could not be read" in note for note in one.notes] == [True]


# --- whose ref it was


@pytest.mark.parametrize("event", ["push", "schedule", "workflow_dispatch"])
def test_nearest__run_of_a_tag_called_like_the_branch__is_not_the_branch_s(store, keep, state, event) -> None:
    state.add_commit("evil", sha("c5"))
    state.tags["main"] = sha("evil")
    keep("c4")
    keep("c1")
    keep("evil", event=event)
    found = store(fork_point_of=sha("evil")).find_nearest(NOW)
    assert taken(found) == "of-c4"
    assert found.baseline.commits_behind == 1  # of the branch, not of the tag
    state.tags["main"] = sha("c1")  # nor does it move the fork point
    assert taken(store(fork_point_of=sha("c5")).find_nearest(NOW)) == "of-c4"
    del state.tags["main"]  # who may push one may take it away again
    assert taken(store(commit=sha("c5")).find_nearest(NOW)) == "of-c4"


def test_nearest__run_of_a_tag_on_a_commit_that_was_merged__is_not_the_branch_s(store, keep, state) -> None:
    """It comes before the branch's tip, and the branch never pointed at it: nobody reviewed it by itself."""
    state.add_commit("theirs", sha("c4"))
    state.add_commit("merge", (sha("c5"), sha("theirs")), branch="main")
    keep("theirs")
    keep("c3")
    for near in ("merge", "theirs"):
        found = store(commit=sha(near)).find_nearest(NOW)
        assert taken(found) == "of-c3"
        assert found.trail in {"", "seen 2: 1 of a commit that is not a known commit of main"}


def test_nearest__branch_was_pushed_with_force__its_activity_knows_the_commit(store, keep, state) -> None:
    state.add_commit("taken back", sha("c5"), branch="main")
    keep("taken back")
    state.branches["main"] = sha("c5")
    assert taken(store(commit=sha("taken back")).find_nearest(NOW)) == "of-taken back"


def test_nearest__branch_was_merged_into_another_and_is_that_now__its_activity_knows_the_commit(
    store, keep, state
) -> None:
    """`git pull` on a topic, pushed to main: main's own line is the second parent."""
    state.add_commit("topic", sha("c2"))
    keep("c5")
    state.add_commit("turned", (sha("topic"), sha("c5")), branch="main")
    assert taken(store(commit=sha("turned")).find_nearest(NOW)) == "of-c5"


def test_nearest__branch_of_the_name_with_slashes__is_asked_by_its_whole_ref(store, keep, state) -> None:
    state.add_commit("r1", sha("c5"), branch="release/1.x")
    keep("r1", head_branch="release/1.x")
    assert taken(store(branch="release/1.x", commit=sha("r1")).find_nearest(NOW)) == "of-r1"


def test_nearest__activity_cannot_be_asked__only_first_parents_tell(github, store, keep, state) -> None:
    state.add_commit("taken back", sha("c5"), branch="main")
    keep("taken back")
    state.branches["main"] = sha("c5")
    github.faults.add("GET", "/activity", Fault("none", 404))
    found = store(commit=sha("c5")).find_nearest(NOW)
    assert isinstance(found, NoBaseline)
    assert "seen 1: 1 of a commit that is not a known commit of main" in found.reason


@pytest.mark.parametrize(("most", "unknown"), [(7, True), (8, False)])
def test_nearest__lies_further_back_than_is_listed__is_no_absence(
    github, store, keep, state, monkeypatch, most, unknown
) -> None:
    """A tag on a merged commit is certainly none of the branch's, as far as all commits since are listed."""
    state.add_commit("theirs", sha("c2"))
    state.add_commit("merge", (sha("c5"), sha("theirs")), branch="main")
    for number in range(3):
        state.add_commit(f"d{number}", branch="main")
    monkeypatch.setattr("eval_gate.github.commits.FIRST_LISTED_COMMITS", 2)
    monkeypatch.setattr("eval_gate.github.commits.MAX_LISTED_COMMITS", most)
    keep("theirs")
    found = store(commit=sha("d2")).find_nearest(NOW)
    assert isinstance(found, NoBaseline)
    assert found.unavailable is unknown, found
    assert ("run main again" in found.reason) is unknown


# --- when pull requests fill the list


def test_nearest__list_is_full_of_pull_requests__the_branch_s_own_runs_are_asked(github, store, keep, state) -> None:
    keep("c4", event="schedule")
    state.add_run(event="push")  # left nothing
    state.add_run(event="pull_request", head_repo="mallory/bot", head_branch="main")
    crowd = state.add_run(event="pull_request", head_branch="topic")
    for _ in range(MAX_LISTED_ARTIFACTS):
        state.add_artifact(crowd, b"PK")
    assert taken(store(commit=sha("c5")).find_nearest(NOW)) == "of-c4"
    assert len(github.requests("GET", LIST)) == MAX_LISTED_ARTIFACTS // 100
    # the fork's run called main is not asked for what it left
    assert len(github.requests("GET", r"/actions/runs/\d+/artifacts")) == 2


def test_nearest__list_ends_before_it_is_full__no_runs_are_asked(github, store, state) -> None:
    crowd = state.add_run(event="pull_request", head_branch="topic")
    for _ in range(MAX_LISTED_ARTIFACTS - 1):
        state.add_artifact(crowd, b"PK")
    assert isinstance(store().find_nearest(NOW), NoBaseline)
    assert github.requests("GET", r"/runs\?|/runs/\d+/") == []


@pytest.mark.slow
def test_nearest__list_is_full_and_all_of_it_is_refused__the_branch_s_own_runs_are_asked(store, keep, state) -> None:
    """A second workflow on the branch keeps results under the same name, the default."""
    keep("c4")
    crowd = state.add_run(event="pull_request", head_branch="topic")
    for _ in range(MAX_LISTED_ARTIFACTS - 1):
        state.add_artifact(crowd, b"PK")
    keep("c5", path=".github/workflows/nightly.yml", event="schedule")
    assert taken(store(commit=sha("c5")).find_nearest(NOW)) == "of-c4"


# --- a run that somebody named


def test_of_run__own_run_of_a_pull_request__is_what_was_asked_for(store, keep) -> None:
    artifact = keep("c2", event="pull_request", head_branch="topic", path=".github/workflows/x.yml")
    assert taken(store().find_in_run(artifact.run_id, NOW)) == "of-c2"


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"head_repo": "mallory/bot"}, "the run is from a fork"),
        ({"head_repo": None}, "the run is from a fork"),
        ({"expired": True}, "the artifact no longer exists"),
        ({"name": "another"}, "the artifact no longer exists"),
        ({"data": {"run.json": record(complete=False)}}, "seen 1: 1 of an incomplete run"),
        ({"data": b"no zip"}, "seen 1: 1 not usable (it is not a zip archive)"),
        ({"data": {"run.json": b"{}"}}, "seen 1: 1 corrupt"),
    ],
)
def test_of_run__cannot_be_used__is_an_error_that_says_why(store, keep, how, why) -> None:
    artifact = keep("c2", **how)
    with pytest.raises(GateError) as caught:
        store().find_in_run(artifact.run_id, NOW)
    assert (caught.value.code, caught.value.exit_code) == ("baseline-not-found", ExitCode.USAGE)
    assert caught.value.message == (f"run {artifact.run_id} has no usable artifact eval-gate-results: {why}")


def test_of_run__no_such_run__is_an_error_and_no_failure_of_github(store) -> None:
    """A number that somebody mistyped: what is named and cannot be found is no absence, and nothing to re-run."""
    with pytest.raises(GateError) as caught:
        store().find_in_run(123_456, NOW)
    assert caught.value.code == "baseline-not-found"


def test_of_run__github_does_not_answer__is_no_absence(github, store, keep) -> None:
    artifact = keep("c2")
    github.faults.add("GET", RUN, *[Fault.status(503)] * 5)
    with pytest.raises(GitHubError):
        store().find_in_run(artifact.run_id, NOW)
