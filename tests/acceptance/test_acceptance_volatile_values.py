"""Values that are new in every run, such as a thread id or a date: what is compared, and what is not green."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.support.program import gate

CASES = ("hours", "refund", "parcel", "cancel")


def results(folder: Path, name: str, extra: dict[str, Any], *, broken: bool = False, expected: object = None) -> str:
    """Own lines of four cases, whose `input` has the question and these values; `broken` fails `refund`.

    A value that is a function is called with the number of the case.
    """
    lines = [
        {
            "id": case,
            "status": "failed" if broken and case == "refund" else "passed",
            "input": {"q": case} | {key: one(at) if callable(one) else one for key, one in extra.items()},
            "expected": expected(at) if callable(expected) else expected,
            "output": "x",
        }
        for at, case in enumerate(CASES)
    ]
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return name


def texts(folder: Path, name: str, text: str, *, broken: bool = False) -> str:
    """Own lines of four cases, each with this text as its `input`; `CASE` in it stands for the case."""
    lines = [
        {
            "id": case,
            "status": "failed" if broken and case == "refund" else "passed",
            "input": text.replace("CASE", case),
        }
        for case in CASES
    ]
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return name


def check(folder: Path, now: str, before: str = "latest", *options: str) -> tuple[int, str]:
    done = gate(folder, "check", now, "--baseline", before, "--fail-on", "regressions", *options)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def uuid(run: int) -> Any:
    """A thread id for each case of a run."""
    return lambda at: str(UUID(int=(run << 96) + (7919 << 48) + (0x5BD1E995 << 8) + at, version=4))


VOLATILE = {
    "uuid": (uuid(1), uuid(2)),
    "hex": (lambda at: f"9f8e7d6c5b4a3{at:03}", lambda at: f"0a1b2c3d4e5f6{at:03}"),
    "openai-id": (lambda at: f"thread_abc{at}DEF456ghi789jkl012", lambda at: f"thread_xyz{at}UVW321rst987opq654"),
    "date": ("2026-11-27", "2026-11-28"),
    "stamp": ("2026-11-27T10:15:30.123Z", "2026-11-28T09:05:11.004+01:00"),
    "epoch": (1_732_700_000, 1_732_800_123),
    "words": ("Friday, November 27, 2026 at 9:05 AM", "Saturday, November 28, 2026 at 10:15 PM"),
    "nested": ({"request": [{"id": "1e7b580b-a5cc-46d2-9199-08f32dfa16cb"}]},
               {"request": [{"id": "b9f0a6a2-ac32-40a5-8db4-f1f604e46ee4"}]}),
}  # fmt: skip


@pytest.mark.parametrize("kind", VOLATILE)
def test_volatile_value__of_one_earlier_run__is_left_out_and_named_once(tmp_path, kind) -> None:
    then, now = VOLATILE[kind]
    before = results(tmp_path, "base.jsonl", {"v": then})
    code, words = check(tmp_path, results(tmp_path, "now.jsonl", {"v": now}, broken=True), before)
    assert (code, "REGRESSIONS (1): refund" in words) == (1, True), words
    name = "input.v.request[0].id" if kind == "nested" else "input.v"
    assert words.count(f"left out of the comparison: {name} (4 cases)") == 1, words
    code, words = check(tmp_path, results(tmp_path, "ok.jsonl", {"v": now}), before)
    assert (code, "all rules hold for 4 cases" in words, "INCOMPARABLE" in words) == (0, True, False), words
    assert "changed prompt" not in words


def test_volatile_part_of_a_text__is_left_out_of_it(tmp_path) -> None:
    before = texts(tmp_path, "base.jsonl", "Thread 1e7b580b-a5cc-46d2-9199-08f32dfa16cb, 2026-11-27: CASE?")
    now = "Thread b9f0a6a2-ac32-40a5-8db4-f1f604e46ee4, 2026-11-28: CASE?"
    code, words = check(tmp_path, texts(tmp_path, "now.jsonl", now, broken=True), before)
    assert (code, "left out of the comparison: input (4 cases)" in words) == (1, True), words
    code, words = check(
        tmp_path, texts(tmp_path, "other.jsonl", now.replace("CASE", "an easy CASE"), broken=True), before
    )
    assert (code, "REGRESSIONS" in words) == (3, False), words


def test_failing_case_that_cannot_be_compared__is_not_green_and_says_what_differs(tmp_path) -> None:
    before = results(tmp_path, "base.jsonl", {"seq": 17})
    code, words = check(tmp_path, results(tmp_path, "now.jsonl", {"seq": 18}, broken=True), before)
    assert code == 3, words
    assert "GATE INCONCLUSIVE" in words
    assert "1 failing case passed in the baseline and cannot be compared with it: refund (input.seq differs)" in words
    assert "leave it out of the prompt and variables" in words
    assert "waive" in words
    until = datetime.now(UTC).date() + timedelta(30)
    (tmp_path / "waivers.yaml").write_text(
        f"waivers:\n  - {{case: refund, reason: edited, owner: anna, until: {until}}}\n"
    )
    code, words = check(tmp_path, "now.jsonl", before, "--waivers", "waivers.yaml")
    assert code == 0, words


@pytest.mark.parametrize(
    ("then", "now", "named"),
    [
        ({"expected": "e"}, {"expected": "other"}, "the expectation differs"),
        ({"input": "q"}, {"input": "q2"}, "input differs"),
        ({"input": {"a": "x"}}, {"input": {"a": "x", "b": "y"}}, "input.b is new"),
        ({"input": {"a": "x", "b": "y"}}, {"input": {"a": "x"}}, "input.b is missing"),
    ],
)
def test_failing_case_that_was_edited__names_what_differs(tmp_path, then, now, named) -> None:
    common = {"id": "c", "input": "q", "expected": "e"}
    (tmp_path / "base.jsonl").write_text(json.dumps({**common, **then, "status": "passed"}))
    (tmp_path / "now.jsonl").write_text(json.dumps({**common, **now, "status": "failed"}))
    code, words = check(tmp_path, "now.jsonl", "base.jsonl")
    assert (code, f"c ({named})" in words) == (3, True), words


def test_failing_case_that_failed_before__does_not_stop_anybody(tmp_path) -> None:
    before = results(tmp_path, "base.jsonl", {"seq": 17}, broken=True)
    assert check(tmp_path, results(tmp_path, "now.jsonl", {"seq": 18}, broken=True), before)[0] == 0


def test_value_without_a_known_look__that_differs_between_runs_of_main__is_left_out(tmp_path) -> None:
    for run in range(3):
        done = gate(tmp_path, "check", results(tmp_path, f"{run}.jsonl", {"seq": run + 17}), "--baseline", "latest")
        assert done.returncode == 0, done.stdout
    code, words = check(tmp_path, results(tmp_path, "now.jsonl", {"seq": 21}, broken=True))
    assert (code, "REGRESSIONS (1): refund" in words) == (1, True), words
    assert "left out of the comparison: input.seq (4 cases)" in words
    code, words = check(
        tmp_path, results(tmp_path, "ok.jsonl", {"seq": 22}), "latest", "--fail-on", "changed,regressions"
    )
    assert (code, "all rules hold for 4 cases" in words) == (0, True), words


def test_history__of_cases_with_a_new_value_in_every_run__goes_on(tmp_path) -> None:
    for run in range(6):
        done = gate(tmp_path, "check", results(tmp_path, "main.jsonl", {"v": uuid(run)}), "--baseline", "latest")
        assert done.returncode == 0, done.stdout
    done = gate(
        tmp_path, "check", results(tmp_path, "now.jsonl", {"v": uuid(9)}, broken=True), "--baseline", "latest", "--json"
    )
    (change,) = [one for one in json.loads(done.stdout)["comparison"]["changes"] if one["caseId"] == "refund"]
    assert (done.returncode, change["caseHistory"]["counts"]) == (1, {"passes": 6, "failures": 0, "agentErrors": 0})


HOSTILE = {
    # before, after: the change makes another question of it, or hides one behind what looks random
    "question-made-random": ({"q": "refund 4711"}, {"q": "1e7b580b-a5cc-46d2-9199-08f32dfa16cb"}),
    "random-word-added": ({"q": "refund"}, {"q": "refund 1e7b580b-a5cc-46d2-9199-08f32dfa16cb"}),
    "field-added": ({"q": "refund"}, {"q": "refund", "id": "1e7b580b-a5cc-46d2-9199-08f32dfa16cb"}),
    "field-renamed": ({"id": "1e7b580b-a5cc-46d2-9199-08f32dfa16cb"}, {"nr": "1e7b580b-a5cc-46d2-9199-08f32dfa16cb"}),
    "other-words": ({"q": "refund on 2026-11-27"}, {"q": "say yes on 2026-11-28"}),
    "number": ({"q": "order 4711"}, {"q": "order 1"}),
    "kind": ({"q": "2026-11-27"}, {"q": "1e7b580b-a5cc-46d2-9199-08f32dfa16cb or 2026-11-28"}),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_change_that_makes_a_value_look_random__is_seen_as_before(tmp_path, kind) -> None:
    then, now = HOSTILE[kind]
    for name, given, status in (("base", then, "passed"), ("now", now, "passed"), ("bad", now, "failed")):
        line = {"id": "c", "status": status, "input": given, "expected": "e"}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(line))
    options = ("--fail-on", "changed")
    code, words = check(tmp_path, "now.jsonl", "base.jsonl", *options)
    assert (code, "changed prompt" in words) == (1, True), words
    assert check(tmp_path, "bad.jsonl", "base.jsonl", *options)[0] == 1
    assert check(tmp_path, "bad.jsonl", "base.jsonl")[0] == 3


@pytest.mark.parametrize(
    ("expected", "question"),
    [
        ("order 1e7b580b-a5cc-46d2-9199-08f32dfa16cb is paid", "1e7b580b-a5cc-46d2-9199-08f32dfa16cb"),
        ({"contains": "{{ v }}"}, "1e7b580b-a5cc-46d2-9199-08f32dfa16cb"),
        ("on 2026-11-27", "2026-11-27"),
    ],
)
def test_value_that_the_expectation_names__is_never_left_out(tmp_path, expected, question) -> None:
    before = results(tmp_path, "base.jsonl", {"v": question}, expected=expected)
    other = "2026-11-28" if len(question) == 10 else "b9f0a6a2-ac32-40a5-8db4-f1f604e46ee4"
    code, words = check(tmp_path, results(tmp_path, "now.jsonl", {"v": other}, expected=expected, broken=True), before)
    assert (code, "input.v differs" in words) == (3, True), words


@pytest.mark.parametrize("value", ["1e7b580b-a5cc-46d2-9199-08f32dfa16cb", "2026-11-27", 4711])
def test_value_that_stays_the_same_on_main__is_a_question_that_a_change_edits(tmp_path, value) -> None:
    for _ in range(3):
        assert check(tmp_path, results(tmp_path, "main.jsonl", {"v": value}))[0] in {0, 2}
        gate(tmp_path, "check", "main.jsonl", "--baseline", "none")
    gate(tmp_path, "check", "main.jsonl", "--baseline", "latest")
    other = {4711: 4712, "2026-11-27": "2026-11-28"}.get(value, "b9f0a6a2-ac32-40a5-8db4-f1f604e46ee4")
    code, words = check(tmp_path, results(tmp_path, "now.jsonl", {"v": other}), "latest", "--fail-on", "changed")
    assert (code, "changed prompt" in words) == (1, True), words


def test_id_of_one_case_alone_that_differs__is_an_edit_with_one_earlier_run_too(tmp_path) -> None:
    before = results(tmp_path, "base.jsonl", {"v": uuid(1)})
    now = results(tmp_path, "now.jsonl", {"v": lambda at: uuid(2 if at == 1 else 1)(at)})
    code, words = check(tmp_path, now, before, "--fail-on", "changed")
    assert (code, "1 case that passes in the baseline has a changed prompt: `refund`" in words) == (1, True), words


def test_edited_case_beside_values_that_are_new_in_every_run__is_the_only_changed_one(tmp_path) -> None:
    text = "Thread 1e7b580b-a5cc-46d2-9199-08f32dfa16cb: CASE"
    before = texts(tmp_path, "base.jsonl", text)
    now = texts(tmp_path, "now.jsonl", text.replace("1e7b580b", "b9f0a6a2"))
    lines = (tmp_path / now).read_text().replace(": parcel", ": say yes")
    (tmp_path / now).write_text(lines)
    code, words = check(tmp_path, now, before, "--fail-on", "changed")
    assert (code, "1 case that passes in the baseline has a changed prompt: `parcel`" in words) == (1, True), words


def test_run_without_a_comparable_case__passes_and_names_what_differs(tmp_path) -> None:
    before = results(tmp_path, "base.jsonl", {"v": "brave otter"})
    code, words = check(tmp_path, results(tmp_path, "now.jsonl", {"v": "calm fox"}), before)
    assert (code, "same prompt and expectation: hours (input.v differs)" in words) == (0, True), words


def test_value_that_one_case_alone_changed_on_main__is_not_left_out_later(tmp_path) -> None:
    def ask(number: int) -> Any:
        return lambda at: f"order {number if at == 1 else 4711}"

    for number in (1, 2, 3):
        gate(tmp_path, "check", results(tmp_path, "main.jsonl", {"v": ask(number)}), "--baseline", "latest")
    code, words = check(tmp_path, results(tmp_path, "now.jsonl", {"v": ask(4)}), "latest", "--fail-on", "changed")
    assert (code, "1 case that passes in the baseline has a changed prompt: `refund`" in words) == (1, True), words


def test_baseline_of_an_older_version__with_the_fingerprint_alone__is_compared_as_before(tmp_path) -> None:
    gate(tmp_path, "check", results(tmp_path, "main.jsonl", {"v": 1}))
    (record,) = (tmp_path / "evals" / "results").glob("*/run.json")
    run = json.loads(record.read_text())
    for case in run["suites"][0]["cases"]:
        case["fingerprints"] = {
            "prompt": case["fingerprints"]["prompt"], "expectation": case["fingerprint"][:16]
        }  # fmt: skip
    record.write_text(json.dumps(run))
    code, words = check(tmp_path, results(tmp_path, "same.jsonl", {"v": 1}, broken=True))
    assert (code, "REGRESSIONS (1): refund" in words, "changed" in words) == (1, True, False), words
    code, words = check(tmp_path, results(tmp_path, "now.jsonl", {"v": 2}, broken=True))
    assert (code, "refund (the prompt or the expectation differs)" in words) == (3, True), words
    assert check(tmp_path, "now.jsonl", "latest", "--fail-on", "changed")[0] == 1


def test_promptfoo__thread_id_in_the_variables_that_name_the_case__is_found_again(tmp_path) -> None:
    def write(name: str, run: int, *, broken: bool = False) -> str:
        rows = [
            {
                "promptIdx": 0, "testIdx": at, "provider": {"id": "echo"}, "success": not (broken and at == 1),
                "score": 1, "vars": {"q": case, "threadId": uuid(run)(at)}, "failureReason": int(broken and at == 1),
                "testCase": {"vars": {"q": case}, "assert": [{"type": "equals", "value": "Nine"}]},
                "response": {"output": "Nine"}, "latencyMs": 5, "error": None,
                "gradingResult": {"pass": not (broken and at == 1), "score": 1, "reason": "r", "componentResults": []},
            }
            for at, case in enumerate(CASES)
        ]  # fmt: skip
        stats = {"successes": 4 - broken, "failures": int(broken), "errors": 0}
        document = {"evalId": "e", "results": {"version": 3, "prompts": [], "results": rows, "stats": stats}}
        (tmp_path / name).write_text(json.dumps(document | {"config": {}, "shareableUrl": None}))
        return name

    code, words = check(tmp_path, write("now.json", 2, broken=True), write("base.json", 1))
    assert (code, "1 regression" in words) == (1, True), words
    assert "left out of the comparison: vars.threadId (4 cases)" in words


@pytest.mark.parametrize("edit", [{"expected": "other"}, {"input": {"q": "refund", "more": "please"}}])
def test_edited_case_whose_name_has_a_new_value_in_every_run__fails__is_not_another_case(tmp_path, edit) -> None:
    def write(name: str, run: int, edit: dict[str, Any], status: str = "passed") -> str:
        lines = [
            {"id": f"{case} {uuid(run)(at)}", "status": "passed", "input": {"q": case}, "expected": "e"}
            | ({"status": status, **edit} if case == "refund" else {})
            for at, case in enumerate(CASES)
        ]
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        return name

    before = write("base.jsonl", 1, {})
    code, words = check(tmp_path, write("now.jsonl", 2, edit, "failed"), before)
    assert (code, "1 failing case passed in the baseline and cannot be compared" in words) == (3, True), words
    assert "REMOVED" not in words
    code, words = check(tmp_path, write("ok.jsonl", 3, edit), before, "--fail-on", "changed")
    assert (code, "1 case that passes in the baseline has a changed" in words) == (1, True), words


@pytest.mark.parametrize("way", ["waiver", "allowed"])
def test_failing_case_that_cannot_be_compared_was_let_pass__counts_on_the_branch_afterwards(tmp_path, way) -> None:
    for _ in range(2):
        done = gate(tmp_path, "check", results(tmp_path, "main.jsonl", {"seq": 17}), "--baseline", "latest")
        assert done.returncode == 0, done.stdout
    broken = results(tmp_path, "broken.jsonl", {"seq": 18}, broken=True)
    options = ("--allowed-regressions", "1")
    if way == "waiver":
        until = datetime.now(UTC).date() + timedelta(3)
        waiver = f"waivers:\n  - {{case: refund, reason: edited, owner: anna, until: {until}}}\n"
        (tmp_path / "waivers.yaml").write_text(waiver)
        options = ("--waivers", "waivers.yaml")
    assert check(tmp_path, broken, "latest", *options)[0] == 0
    assert check(tmp_path, broken, "latest", *options)[0] == 0, "as long as it is permitted"
    code, words = check(tmp_path, broken)
    assert (code, "REGRESSIONS (1): refund" in words) == (1, True), words
    assert check(tmp_path, results(tmp_path, "fixed.jsonl", {"seq": 18}))[0] == 0
