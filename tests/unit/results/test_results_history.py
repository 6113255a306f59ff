"""The ledger: what runs say about their cases, carried from run to run, in a file that may be anybody's."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.errors import GateError
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import ErrorKind, Status, Trial
from eval_gate.model.result import CaseFingerprints, GitFacts
from eval_gate.results.history import (
    EMPTY_HISTORY,
    HISTORY_NAME,
    MANY_FINGERPRINTS,
    MAX_RUNS,
    HistoryEntry,
    HistoryExecution,
    build_history,
    compute_result_fingerprint,
    encode_history,
    match_fingerprints,
    parse_history,
    split_executions,
)
from eval_gate.results.run_history import find_history, read_history_file
from eval_gate.struct import replace
from tests.support.graded import make_graded
from tests.support.results import FILE, make_baseline_run, make_result, make_suite_result

A = CaseKey(FILE, "a")


def run(number: int, cases, **fields):
    """A run of the branch; higher numbers are newer."""
    values = {"run_id": f"r{number}", "timestamp": f"2026-10-01T{number // 60:02}:{number % 60:02}:00Z"}
    return make_baseline_run(make_suite_result(cases), **(values | fields))


def branch(*words: str):
    """A ledger of case `a` over runs that ended so, the oldest first."""
    return build_history([run(at, {"a": word}) for at, word in reversed(list(enumerate(words)))])


def letters(ledger, key=A) -> str:
    return " ".join(
        "-" if entry is None else "".join(one.letter for one in (*entry.first, *entry.reruns))
        for entry in ledger.get_case(key).decode_entries()
    )


@pytest.mark.contract("verdict.ledger")
def test_history__runs_of_a_branch__keeps_every_case_newest_first() -> None:
    ledger = branch("passed", "failed", "error", "passed")
    assert letters(ledger) == "P O F P"
    assert [one.run_id for one in ledger.runs] == ["r3", "r2", "r1", "r0"]
    assert [(one.cases, one.scored, one.is_usable) for one in ledger.runs[:2]] == [(1, 1, True), (1, 0, False)]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (
            make_result("a", trials="PPF"),
            HistoryEntry(0, (HistoryExecution("P"), HistoryExecution("P"), HistoryExecution("F"))),
        ),
        (
            make_result("a", "failed", trials="FPF", reruns=2),
            HistoryEntry(0, (HistoryExecution("F"),), (HistoryExecution("P"), HistoryExecution("F"))),
        ),
        (make_result("a", "error", error_kind=ErrorKind.AGENT_ERROR), HistoryEntry(0, (HistoryExecution("C"),))),
        (make_result("a", "error", error_kind=ErrorKind.AGENT_UNREACHABLE), HistoryEntry(0, (HistoryExecution("U"),))),
        (make_graded("a", 0.85), HistoryEntry(0, (HistoryExecution("F", 0.85),))),
    ],
    ids=["trials", "reruns", "crashed", "unreachable", "graded"],
)
def test_history__one_case__is_its_executions(case, expected) -> None:
    ledger = EMPTY_HISTORY.with_run(run(0, [case]))
    read = parse_history(encode_history(ledger), "x")
    assert list(read.get_case(A).decode_entries()) == [expected]


def test_history__timed_out_and_vetoed__are_told_apart() -> None:
    late = Trial(status=Status.ERROR, score=0, duration_ms=9, error_kind=ErrorKind.AGENT_ERROR, timed_out=True)
    vetoed = Trial(status=Status.FAILED, score=0.9, duration_ms=9, vetoed=True)
    case = replace(make_graded("a", 0.9), trials=(late, vetoed))
    entry = EMPTY_HISTORY.with_run(run(0, [case])).get_case(A).decode_entries()[0]
    assert entry.first == (HistoryExecution("T"), HistoryExecution("F"))


@pytest.mark.parametrize("status", ["skipped", "not_run"])
def test_history__case_that_did_not_run__leaves_a_gap(status) -> None:
    assert letters(branch("passed", status)) == "- P"


def test_history__many_runs__keeps_the_newest_fifty_and_stays_small() -> None:
    ledger = branch(*["passed"] * 80)
    assert (len(ledger.runs), ledger.runs[0].run_id) == (MAX_RUNS, "r79")
    assert ledger.get_case(A).runs == f"0P*{MAX_RUNS}"


def test_history__case_that_is_gone__is_forgotten_with_the_last_run_that_had_it() -> None:
    ledger = EMPTY_HISTORY.with_run(run(0, {"a": "passed", "b": "passed"}))
    for number in range(1, MAX_RUNS):
        ledger = ledger.with_run(run(number, {"b": "passed"}))
    assert letters(ledger).split()[-1] == "P"
    assert A not in set(ledger.with_run(run(99, {"b": "passed"})).iter_keys())


def test_history__renamed_case__keeps_its_past_under_the_new_name() -> None:
    ledger = branch("passed", "failed")
    new = CaseKey(FILE, "b")
    after = ledger.with_run(run(9, [make_result("b", fingerprint="fingerprint of a")]), {new: A})
    assert letters(after, new) == "P F P"
    assert A not in set(after.iter_keys())


def test_history__same_run_twice__is_there_once() -> None:
    ledger = branch("passed", "failed")
    assert ledger.with_run(run(0, {"a": "failed"})) is ledger


def test_up_to__run_in_the_middle__forgets_what_came_after() -> None:
    ledger = branch("passed", "failed", "passed")
    assert letters(ledger.trim_to(run(1, {"a": "failed"}))) == "F P"
    assert ledger.trim_to(run(2, {"a": "passed"})) is ledger


def test_up_to__run_that_is_not_there__goes_where_its_time_is() -> None:
    ledger = branch("passed", "failed", "passed")
    between = run(1, {"a": "passed"}, run_id="other", timestamp="2026-10-01T00:01:30Z")
    assert letters(ledger.trim_to(between)) == "P F P"


def test_up_to__run_that_is_not_there_of_the_same_second__comes_after_those_that_are() -> None:
    ledger = build_history([run(1, {"a": "failed"}), run(0, {"a": "passed"})])
    same = replace(run(1, {"a": "passed"}), run_id="another")
    assert letters(ledger.trim_to(same)) == "P F P"


def test_alike__graders_and_judge__are_apart_from_the_question() -> None:
    def case(**parts):
        return make_result("a", fingerprints=CaseFingerprints(**parts))

    plain, judged = case(), case(judge="openai:m")
    assert (
        match_fingerprints(compute_result_fingerprint(plain), compute_result_fingerprint(judged)).same_case,
        match_fingerprints(compute_result_fingerprint(plain), compute_result_fingerprint(judged)).same_setup,
    ) == (True, False)
    assert match_fingerprints(
        compute_result_fingerprint(judged), compute_result_fingerprint(case(judge="openai:m"))
    ).same_setup
    other = make_result("a", fingerprint="another question")
    assert not match_fingerprints(compute_result_fingerprint(plain), compute_result_fingerprint(other)).same_case
    assert match_fingerprints("", compute_result_fingerprint(plain)).same_case


def test_history__another_fingerprint_every_time__keeps_those_that_are_used() -> None:
    ledger = EMPTY_HISTORY
    for number in range(MAX_RUNS + MANY_FINGERPRINTS * 2):
        ledger = ledger.with_run(run(number, [make_result("a", fingerprint=f"{number:016}")]))
    case = ledger.get_case(A)
    assert len(case.fingerprints) == len({entry.fingerprint_index for entry in case.decode_entries()}) == MAX_RUNS
    assert (
        case.fingerprints[case.decode_entries()[0].fingerprint_index] == f"{MAX_RUNS + MANY_FINGERPRINTS * 2 - 1:016}"
    )


@given(st.lists(st.sampled_from(["passed", "failed", "error", "skipped"]), max_size=12))
def test_history__written_and_read__says_the_same(words) -> None:
    ledger = branch(*words)
    assert parse_history(encode_history(ledger), "x") == ledger


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"schemaVersion": 2}',
        '{"runs": [{"runId": 7}]}',
        json.dumps({"runs": [{"runId": "r", "timestamp": "t"}] * 101}),
        '{"suites": {"a": {"b": {"runs": 1}}}}',
    ],
    ids=["empty", "a list", "cut", "newer", "wrong", "too many runs", "no words"],
)
def test_read_history__what_is_none__is_refused(text) -> None:
    with pytest.raises(GateError) as caught:
        parse_history(text.encode(), "the history of run 7")
    assert caught.value.code == "invalid-history"
    assert "the history of run 7" in caught.value.message


@pytest.mark.parametrize(
    "words", ["0X", "P", "0P*", "1P", "0P:0.5,0.5", "0P:1.5", "0P:....", "0P|", "9999P", "0" + "P" * 300]
)
def test_read_history__words_that_say_nothing__are_refused(words) -> None:
    data = {"runs": [{"runId": "r", "timestamp": "t"}], "suites": {FILE: {"a": {"fingerprints": ["y"], "runs": words}}}}
    with pytest.raises(GateError, match=rf"^x is not a valid history: suites\.{FILE}\.a\.runs: "):
        parse_history(json.dumps(data).encode(), "x")


def test_entries__a_word_for_a_million_runs__is_no_more_than_there_can_be() -> None:
    data = {"suites": {FILE: {"a": {"fingerprints": ["y"], "runs": " ".join(["0P*99"] * 10_000)}}}}
    assert len(parse_history(json.dumps(data).encode(), "x").get_case(A).decode_entries()) <= MAX_RUNS


def test_history_beside__folder_and_archive__is_found(tmp_path) -> None:
    import zipfile

    ledger = branch("passed", "failed")
    (tmp_path / "run.json").write_text("{}")
    assert find_history(tmp_path / "run.json") == EMPTY_HISTORY
    (tmp_path / HISTORY_NAME).write_bytes(encode_history(ledger))
    assert find_history(tmp_path / "run.json") == ledger
    with zipfile.ZipFile(tmp_path / "result.zip", "w") as packed:
        packed.write(tmp_path / "run.json", "run.json")
        packed.write(tmp_path / HISTORY_NAME, HISTORY_NAME)
    assert find_history(tmp_path / "result.zip") == ledger


def test_history_file__missing__says_so(tmp_path) -> None:
    with pytest.raises(GateError, match="cannot be read"):
        read_history_file(tmp_path / "no.json")


def test_history__run__is_known_by_its_commit_where_that_is_known() -> None:
    runs = [run(0, {"a": "passed"}, git=GitFacts(sha="a" * 40)), run(1, {"a": "passed"}, git=None)]
    assert [EMPTY_HISTORY.with_run(one).runs[0].sha for one in runs] == ["a" * 40, None]


def test_history__run_whose_re_runs_waited__says_how_long_and_nothing_where_none_did() -> None:
    runs = [run(0, {"a": "passed"}, rerun_wait=120), run(1, {"a": "passed"})]
    stored = encode_history(build_history(runs))
    assert [one.rerun_wait for one in parse_history(stored, "it").runs] == [120, 0]
    assert stored.count(b"rerunWait") == 1


@pytest.mark.parametrize("reruns", [2, 5])
def test_executions_of__as_many_reruns_as_executions_or_more__leaves_no_first_one(reruns) -> None:
    first, again = split_executions(make_result("a", "failed", trials="FP", reruns=reruns))
    assert (first, again) == ((), (HistoryExecution("F"), HistoryExecution("P")))


def test_read_history__fingerprints_of_one_case__are_at_most_a_thousand() -> None:
    def with_yardsticks(number: int) -> bytes:
        return json.dumps({"suites": {FILE: {"a": {"fingerprints": ["y"] * number}}}}).encode()

    assert len(parse_history(with_yardsticks(1_000), "x").get_case(A).fingerprints) == 1_000
    with pytest.raises(GateError, match="is not a valid history"):
        parse_history(with_yardsticks(1_001), "x")


def test_history_file__as_large_as_may_be__is_read_and_one_byte_more_is_refused_for_that(tmp_path, monkeypatch) -> None:
    file = tmp_path / HISTORY_NAME
    data = encode_history(branch("passed"))
    for name in ("eval_gate.results.run_history", "eval_gate.results.history"):
        monkeypatch.setattr(f"{name}.MAX_HISTORY_BYTES", len(data))
    file.write_bytes(data)
    assert letters(read_history_file(file)) == "P"
    file.write_bytes(data + b" ")
    with pytest.raises(GateError, match="larger than"):
        read_history_file(file)


def test_with_warm_up__rounds_of_a_run__are_below_it_and_name_it() -> None:
    newest = run(5, {"a": "passed"})
    rounds = [run(6 + at, {"a": word}, run_id=f"r5-warm-up-{at}") for at, word in enumerate(("passed", "failed"))]
    ledger = branch("failed", "passed").with_run(newest)
    warm = ledger.with_warm_up(newest, rounds)
    assert letters(warm) == "P F P P F"
    assert [one.warm_up_of for one in warm.runs] == [None, "r5", "r5", None, None]
    assert {one.timestamp for one in warm.runs[:3]} == {newest.timestamp}
    assert parse_history(encode_history(warm), "here") == warm
    assert b"warm_up_of" not in encode_history(ledger)


def test_with_warm_up__renamed_case__keeps_its_history() -> None:
    newest = run(5, {"b": "passed"})
    ledger = branch("failed", "passed").with_run(newest, {CaseKey(FILE, "b"): A})
    warm = ledger.with_warm_up(newest, [run(6, {"b": "failed"})])
    assert letters(warm, CaseKey(FILE, "b")) == "P F P F"
