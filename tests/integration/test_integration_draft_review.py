"""Drafts from the command line: they never gate, a person reviews them, and cases are updated as a diff."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from html import unescape
from pathlib import Path

import pytest

from eval_gate import GateError, evaluate
from tests.integration.test_integration_run import fails_on, record, write_suite
from tests.support.agents import Exchange, agent
from tests.support.program import CLEAN, PROGRAM, gate

AGENTV = """\
# ours
tests:
  - id: gs-000
    draft: true   # not yet
    input: ask 0
    assertions:
      - {type: contains, value: ok}   # why

  - id: gs-001
    draft: true
    input: ask 1
    assertions: [{type: contains, value: ok}]
# end
"""


def mark(file: Path, *numbers: int) -> None:
    cases = json.loads(file.read_text())
    file.write_text(json.dumps([case | {"draft": place in numbers} for place, case in enumerate(cases)], indent=2))


def test_run__some_cases_are_drafts__are_not_asked_and_named_everywhere(tmp_path) -> None:
    mark(write_suite(tmp_path), 1, 4)
    with agent(fails_on(1, 4)) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url)
    said = (
        "evals/weather.golden.json: 2 drafts were not run: gs-001, gs-004. "
        "Review them with `eval-gate draft --review evals/weather.golden.json`"
    )
    assert (done.returncode, "4 of 4 pass" in done.stdout) == (0, True), done.stdout + done.stderr
    assert said in done.stdout
    found = record(tmp_path)
    assert said in found["warnings"]
    assert sorted(exchange.json["message"] for exchange in running.requests) == ["ask 0", "ask 2", "ask 3", "ask 5"]
    for form in ("md", "html", "json"):
        shown = gate(tmp_path, "report", "--format", form, found["runId"]).stdout
        assert "2 drafts were not run: gs-001, gs-004" in unescape(shown).replace("\u200b", ""), form


@pytest.mark.parametrize("words", [[], ["--case", "gs-001"]], ids=["all", "by name"])
def test_run__nothing_but_drafts_is_selected__is_an_error_that_names_them(tmp_path, words) -> None:
    mark(write_suite(tmp_path, 3), *([0, 1, 2] if not words else [1]))
    with agent() as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, *words)
    assert done.returncode == 2
    assert "error[only-drafts]: no case was run: everything that is selected is a draft" in done.stderr
    assert ("gs-000, gs-001, gs-002" if not words else "1 draft was not run: gs-001.") in done.stderr
    assert running.requests == []


@pytest.mark.slow
def test_run__several_targets__names_the_drafts_once(tmp_path) -> None:
    mark(write_suite(tmp_path, 3), 1)
    with agent() as running:
        targets = [{"name": name, "provider": "http", "url": running.url} for name in ("one", "two")]
        (tmp_path / "targets.yaml").write_text(json.dumps({"targets": targets}))
        done = gate(tmp_path, "run", "--target", "one", "--target", "two")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("1 draft was not run: gs-001.") == 1
    assert len(running.requests) == 4


def test_evaluate__drafts__are_left_out_in_python_too(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = write_suite(tmp_path, 3)
    mark(file, 1)
    found = evaluate(target=lambda request: {"response": "ok", "toolCalls": []})
    assert [key.case_id for key, _ in found.run.iter_cases()] == ["gs-000", "gs-002"]
    assert any("1 draft was not run: gs-001." in warning for warning in found.run.warnings)
    mark(file, 0, 1, 2)
    with pytest.raises(GateError, match="everything that is selected is a draft"):
        evaluate(target=lambda request: {"response": "ok", "toolCalls": []})


def test_validate__drafts_alone__are_checked_and_named(tmp_path) -> None:
    file = write_suite(tmp_path, 2, responseMatches=["("])
    mark(file, 0, 1)
    done = gate(tmp_path, "validate")
    assert (done.returncode, "2 drafts are not run: gs-000, gs-001." in done.stderr) == (2, True), done.stderr
    mark(write_suite(tmp_path, 2), 0, 1)
    done = gate(tmp_path, "validate", "--strict")
    assert (done.returncode, "warning: evals/weather.golden.json: 2 drafts are not run: " in done.stderr) == (0, True)


def test_run__failing_case_becomes_a_draft__is_treated_as_one_that_is_deleted(tmp_path) -> None:
    """Whoever switches a case off by the mark gets what deleting it gets: it is said, and `removed` blocks it."""
    file = write_suite(tmp_path, 4)
    failing: set[int] = set()

    async def handler(exchange: Exchange) -> None:
        await fails_on(*failing)(exchange)

    with agent(handler) as running:
        flags = ("run", "--agent-endpoint", running.url, "--fail-on", "regressions,removed", "--must-pass", "gs-001")
        assert gate(tmp_path, *flags).returncode == 0
        base = str(Path("evals", "results", record(tmp_path)["runId"]))
        cases = json.loads(file.read_text())
        failing.add(1)
        results = {}
        for name, left in {
            "marked": [case | {"draft": True} if case["id"] == "gs-001" else case for case in cases],
            "deleted": [case for case in cases if case["id"] != "gs-001"],
        }.items():
            file.write_text(json.dumps(left))
            done = gate(tmp_path, *flags, "--baseline", base)
            found = record(tmp_path)
            assert "1 case that passed in the baseline was removed (limit 0)" in done.stdout
            assert done.returncode == 1
            assert "was removed: `gs-001`" in done.stdout or "gs-001" in done.stdout.partition("REMOVED")[2]
            assert ("1 draft was not run: gs-001." in done.stdout) == (name == "marked")
            results[name] = (done.returncode, found["verdict"], found["comparison"]["setupChanges"])
    assert results["marked"] == results["deleted"]


@pytest.fixture
def drafted(tmp_path) -> Path:
    file = tmp_path / "evals" / "desk.eval.yaml"
    file.parent.mkdir()
    file.write_bytes(AGENTV.replace("\n", "\r\n").encode())
    return tmp_path


def text_of(folder: Path) -> str:
    return (folder / "evals" / "desk.eval.yaml").read_bytes().decode().replace("\r\n", "\n")


def test_review__without_a_terminal__lists_what_each_draft_expects(drafted) -> None:
    done = gate(drafted, "draft", "--review", "evals/desk.eval.yaml")
    assert done.returncode == 0
    assert done.stdout.splitlines()[:3] == [
        "gs-000  (evals/desk.eval.yaml:3)",
        "  user: ask 0",
        '  → response contains "ok" (contains-ok)',
    ]
    assert "2 drafts. Accept with --accept CASE or --accept all" in done.stdout
    assert text_of(drafted) == AGENTV


def test_accept_and_drop__by_options__change_the_marks_only(drafted) -> None:
    done = gate(drafted, "draft", "--accept", "gs-000", "--drop", "gs-001", "evals")
    assert (done.returncode, done.stdout) == (0, "evals/desk.eval.yaml: 1 draft accepted, 1 dropped, 0 left\n")
    kept = AGENTV.replace("    draft: true   # not yet\n", "").partition("  - id: gs-001")[0]
    assert text_of(drafted) == kept + "# end\n"
    assert gate(drafted, "draft", "--review", "evals").stdout == "no drafts in evals/desk.eval.yaml\n"
    done = gate(drafted, "draft", "--accept", "all", "evals")
    assert (done.returncode, "all: there is no such draft" in done.stderr) == (2, True)


def test_accept__one_of_the_names_is_wrong__nothing_is_written(drafted) -> None:
    done = gate(drafted, "draft", "--accept", "gs-000,gs-9", "evals")
    assert (done.returncode, "gs-9: there is no such draft" in done.stderr) == (2, True)
    done = gate(drafted, "draft", "--drop", "all", "evals")
    assert (done.returncode, "error[no-cases-left]" in done.stderr) == (2, True)
    assert text_of(drafted) == AGENTV


def on_terminal(folder: Path, answers: str, *words: str, code: int = 0, **environment: str) -> str:
    """Run the program on a terminal on which these lines are typed, one at each question; return what is shown."""
    terminal, theirs = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *words],
        cwd=folder,
        env=CLEAN | {"TERM": "xterm-256color"} | environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown, left = b"", answers.splitlines(keepends=True)
    with suppress(OSError):  # nobody writes to it any more
        while chunk := os.read(terminal, 65_536):
            shown += chunk
            if shown.endswith(b"? ") and left:
                os.write(terminal, left.pop(0).encode())
    os.close(terminal)
    assert process.wait(60) == code
    assert left == []
    return shown.decode().replace("\r\n", "\n")


def review(folder: Path, answers: str, **environment: str) -> str:
    return on_terminal(folder, answers, "draft", "--review", "evals", **environment)


def test_review__on_a_terminal__writes_each_decision_at_once(drafted) -> None:
    shown = review(drafted, "what\na\ns\n")
    assert shown.count("[a]ccept, [e]dit, [d]rop, [s]kip, [q]uit? ") == 3
    assert shown.endswith("evals/desk.eval.yaml: 1 draft accepted, 0 dropped, 1 left\n")
    assert text_of(drafted) == AGENTV.replace("    draft: true   # not yet\n", "")
    shown = review(drafted, "d\n")
    assert shown.endswith("evals/desk.eval.yaml: 0 drafts accepted, 1 dropped, 0 left\n")
    assert "gs-001" not in text_of(drafted)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["q\n", "\x04"], ids=["quit", "end of input"])
def test_review__ended_early__keeps_what_was_decided(drafted, end) -> None:
    shown = review(drafted, f"accept\n{end}")
    assert "1 draft accepted, 0 dropped, 1 left" in shown
    assert text_of(drafted) == AGENTV.replace("    draft: true   # not yet\n", "")


def editor(folder: Path, *edits: tuple[str, str], name: str = "case.yaml") -> str:
    """A command that replaces a text in the file it is given: each time it is started the next one."""
    program = folder / "editor.py"
    program.write_text(
        "import pathlib, sys\n"
        f"count = pathlib.Path({str(folder / 'count')!r})\n"
        "number = int(count.read_text()) if count.exists() else 0\n"
        "count.write_text(str(number + 1))\n"
        "file = pathlib.Path(sys.argv[-1])\n"
        f"old, new = {list(edits)!r}[number]\n"
        "text = file.read_bytes().decode()\n"
        f"assert file.name == {name!r} and old in text, text\n"
        "file.write_bytes(text.replace(old, new).encode())\n"
    )
    return f"{sys.executable} '{program}' --wait"


def test_review__edit__a_problem_is_shown_and_can_be_corrected(drafted) -> None:
    command = editor(drafted, ("type: contains", "type: contians"), ("type: contians", "type: icontains"))
    shown = review(drafted, "e\ne\na\nq\n", EDITOR=command)
    assert 'did you mean "contains"?' in shown
    assert '→ response contains "ok", in upper or lower case' in shown
    accepted = AGENTV.replace("    draft: true   # not yet\n", "").replace("type: contains", "type: icontains", 1)
    assert text_of(drafted) == accepted


@pytest.mark.slow
def test_review__edit_that_is_undone_or_fails__leaves_the_file(drafted) -> None:
    shown = review(drafted, "e\nu\nq\n", VISUAL=editor(drafted, ("type: contains", "type: contians")), EDITOR="false")
    assert "error[" in shown
    shown = review(drafted, "e\nq\n", EDITOR="no-such-editor -w")
    assert "error[editor-failed]: the editor no-such-editor cannot be started" in shown
    assert text_of(drafted) == AGENTV


QUESTIONS = "Where is order 7?\nWhat is the capital of Portugal?\n"
FIRST, SECOND = "gs-find-order-001", "gs-no-tool-001"


def answers() -> Callable[[Exchange], Awaitable[None]]:
    """An agent whose second response to the first question is another one."""
    count = [0]

    async def handler(exchange: Exchange) -> None:
        if "capital" in exchange.json["message"]:
            exchange.answer({"response": "It is Lisbon.", "toolCalls": []})
            return
        count[0] += 1
        found = {"name": "find_order", "success": True, "params": {"id": 7}, "result": {"city": "Lisbon"}}
        text = "Order 7 of Kim Li is in Lisbon.\nKey hunter2hunter2." + (" Anything else?" if count[0] == 2 else "")
        exchange.answer({"response": text, "toolCalls": [found]})

    return handler


@pytest.fixture
def answered(tmp_path) -> Path:
    """A repository with two drafts that were just made."""
    (tmp_path / "questions.txt").write_text(QUESTIONS)
    (tmp_path / "eval-gate.json").write_text(json.dumps({"redact": ["Kim \\w+"], "passEnv": ["MY_TOKEN"]}))
    with agent(answers()) as running:
        flags = ("draft", "questions.txt", "-o", "evals/a.golden.json", "--agent-endpoint", running.url)
        done = gate(tmp_path, *flags, MY_TOKEN="hunter2hunter2")
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_review__drafts_just_made__shows_each_response_once_beside_what_is_expected(answered) -> None:
    done = gate(answered, "draft", "--review", "evals")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    begin = lines.index("  user: Where is order 7?")
    assert lines[begin + 1 : begin + 9] == [
        "  response, 2 of 3 executions:",
        '    calls find_order {"id":7}',
        "    Order 7 of *** is in Lisbon.",
        "    Key ***.",
        "  response, 1 of 3 executions:",
        '    calls find_order {"id":7}',
        "    Order 7 of *** is in Lisbon.",
        "    Key ***. Anything else?",
    ]
    assert lines[begin + 9].startswith("  → calls only find_order")
    assert "  response, 3 of 3 executions:\n    It is Lisbon.\n  → calls no tool\n" in done.stdout
    assert "not stored" not in done.stdout
    written = "".join(file.read_text() for file in answered.rglob("*") if file.is_file() and file.suffix != ".txt")
    assert "hunter2" not in written
    assert "Kim Li" not in written
    assert "It is Lisbon." not in (answered / "evals/a.golden.json").read_text(), "an eval file is committed"


def test_review__eval_file_is_elsewhere_or_results_are_deleted__says_how_to_see_responses(answered) -> None:
    (answered / "evals/a.golden.json").rename(answered / "evals/b.golden.json")
    assert "response, 3 of 3 executions" in gate(answered, "draft", "--review", "evals").stdout, (
        "found by id and question"
    )
    shutil.rmtree(answered / "evals/results")
    done = gate(answered, "draft", "--review", "evals")
    assert (done.returncode, "response, " in done.stdout) == (0, False)
    said = (
        "The responses of 2 drafts are not stored in evals/results. To see what the agent responds, draft again: "
        "eval-gate draft QUESTIONS -o NEW-FILE"
    )
    assert said in done.stdout
    shown = on_terminal(answered, "q\n", "draft", "--review", "evals")
    assert "Its responses are not stored in evals/results. To see what" in shown


def test_review__on_a_terminal__a_draft_with_short_responses_fits_on_a_screen(answered) -> None:
    shown = on_terminal(answered, "s\nq\n", "draft", "--review", "evals")
    for screen in shown.split("[q]uit? ")[:2]:
        assert len(screen.splitlines()) < 24, screen
        assert max(map(len, screen.splitlines())) <= 80, screen


def test_accept_and_drop__responses__are_kept_for_the_drafts_that_are_left_only(answered) -> None:
    stored = answered / "evals/results/draft-responses.jsonl"
    assert gate(answered, "draft", "evals", "--accept", SECOND).returncode == 0
    assert [json.loads(line)["caseId"] for line in stored.read_text().splitlines()] == [FIRST]
    on_terminal(answered, "a\n", "draft", "--review", "evals")
    assert not stored.exists()


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (("What is the capital", "Name the capital"), "The question is another one now"),
        (('"Lisbon"', '"It is"'), "After the edit, 3 of 3 stored responses pass."),
        (
            ('"Lisbon"', '"Porto"'),
            "After the edit, 0 of 3 stored responses pass: responseContains: expected 'Porto' in",
        ),
        ((SECOND, "capital"), "After the edit, 3 of 3 stored responses pass."),
    ],
)
def test_review__edit__says_whether_the_stored_responses_pass(answered, edit, said) -> None:
    command = editor(answered, edit, name="case.json")
    shown = on_terminal(answered, "s\ne\nq\n", "draft", "--review", "evals", EDITOR=command)
    assert said in shown
    after = shown.partition(said)[2]
    assert ("response, 3 of 3 executions" in after) is ("question" not in said), "also under another id"


def test_review__drafts_from_a_log__shows_its_responses(tmp_path) -> None:
    rows = [{"question": "Where?", "response": f"In Oslo, {word}.", "toolCalls": []} for word in ("yes", "no", "yes")]
    (tmp_path / "agent.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ("draft", "--from-log", "agent.jsonl", "--field", "question=question", "-o", "evals/a.golden.json")
    done = gate(tmp_path, *flags)
    assert done.returncode == 0, done.stderr
    shown = gate(tmp_path, "draft", "--review", "evals").stdout
    assert "  response, 2 of 3 executions:\n    In Oslo, yes.\n" in shown
    assert "  response, 1 of 3 executions:\n    In Oslo, no.\n" in shown


def test_review__stored_responses_are_damaged__says_which_file(answered) -> None:
    (answered / "evals/results/draft-responses.jsonl").write_text("{")
    done = gate(answered, "draft", "--review", "evals")
    assert (done.returncode, "error[invalid-recording]" in done.stderr) == (2, True)
    assert "evals/results/draft-responses.jsonl" in done.stderr


def test_update__description_that_draft_wrote__is_renewed_and_a_persons_stays_and_is_named(answered) -> None:
    file = answered / "evals/a.golden.json"
    first, second = json.loads(file.read_text())
    file.write_text(json.dumps([first | {"description": "Orders of Kim"}, second], indent=2))

    async def changed(exchange: Exchange) -> None:
        exchange.answer({"response": "It is Porto now.", "toolCalls": []})

    with agent(changed) as running:
        flags = ("draft", "evals", "--update", "gs-*", "--yes", "--agent-endpoint", running.url)
        done = gate(answered, *flags)
    assert done.returncode == 0, done.stderr
    kept, renewed = (one["description"] for one in json.loads(file.read_text()))
    assert (kept, "Lisbon" in second["description"]) == ("Orders of Kim", True)
    assert ("Porto" in renewed, "Lisbon" in renewed) == (True, False)
    assert f'-    "description": "{second["description"]}"' in done.stdout
    remark = "its description stays, because a person wrote or changed it: check that it still holds"
    assert f"{FIRST}: {remark}" in done.stderr
    assert f"{SECOND}: {remark}" not in done.stderr
    review = gate(answered, "draft", "--review", "evals").stdout
    assert "It is Porto now." in review, "the responses are those of the new expectations"
    assert "Order 7" not in review


UPDATED = """\
# ours
tests:
  - id: gs-000   # first
    input: ask 0
    assertions:
      - {type: contains, value: old}   # why
      - Says no.
  - id: gs-001
    input: ask 1
    assertions: [{type: contains, value: old}]
"""


async def moved(exchange: Exchange) -> None:
    exchange.answer({"response": "It is in Oslo. {{seed:x}} \x1b[m", "toolCalls": []})


@pytest.fixture
def meant(tmp_path) -> Path:
    """A suite that expects what the agent did before."""
    file = tmp_path / "evals" / "desk.eval.yaml"
    file.parent.mkdir()
    file.write_text(UPDATED)
    return tmp_path


CHANGED = UPDATED.replace(
    "      - {type: contains, value: old}   # why\n", "      - {type: contains, value: Oslo}   # why\n"
)


def test_update__without_a_terminal__shows_the_diff_and_writes_it_with_yes_only(meant) -> None:
    with agent(moved) as running:
        flags = ("draft", "--update", "gs-000", "--agent-endpoint", running.url, "evals")
        done = gate(meant, *flags)
        assert (done.returncode, len(running.requests)) == (0, 3)
        assert "nothing was written: repeat the command with --yes" in done.stderr
        assert "-      - {type: contains, value: old}   # why\n+      - {type: contains, value: Oslo}" in done.stdout
        assert "gs-000: rubrics: left as it is, because responses do not show it" in done.stderr
        assert text_of(meant) == UPDATED
        written = gate(meant, *flags, "--yes")
        assert (written.returncode, text_of(meant)) == (0, CHANGED)
        assert written.stdout.startswith(done.stdout)
        again = gate(meant, *flags, "--yes")
        assert (again.returncode, again.stdout) == (0, "no expectation changes\n")
        assert gate(meant, "validate", "--strict").returncode == 0
    assert not list((meant / "evals").glob("results/**/*.json"))


@pytest.mark.parametrize(("answer", "text"), [("y\n", CHANGED), ("n\n", UPDATED), ("\x04", UPDATED)])
def test_update__on_a_terminal__writes_what_the_person_confirms(meant, answer, text) -> None:
    with agent(moved) as running:
        shown = on_terminal(meant, answer, "draft", "--update", "gs-000", "--agent-endpoint", running.url, "evals")
    assert "Write 1 file? [y]es, [n]o? " in shown
    assert text_of(meant) == text


def test_update__agent_gives_no_response__changes_nothing_and_says_so(meant) -> None:
    async def broken(exchange: Exchange) -> None:
        exchange.answer({"error": "down"}, 400)

    with agent(broken) as running:
        done = gate(meant, "draft", "--update", "gs-*", "--yes", "--agent-endpoint", running.url, "evals")
    assert done.returncode == 3
    assert "gs-000: 0 of 3 executions have a response: " in done.stderr
    assert text_of(meant) == UPDATED


def test_update__names_that_cannot_be_updated__are_all_said_before_anything_is_asked(meant) -> None:
    suite = {
        "name": "s",
        "agent": {"name": "A", "model": "gpt-5-mini", "instructions": "x"},
        "cases": [{"id": "other", "name": "n", "prompt": "p", "assertions": []}],
    }
    (meant / "evals" / "suite.json").write_text(json.dumps(suite))
    with agent() as running:
        flags = ("--agent-endpoint", running.url, "evals")
        done = gate(meant, "draft", "--update", "gs-00,other", *flags)
        assert running.requests == []
    assert done.returncode == 2
    assert "gs-00: there is no such case" in done.stderr
    assert "cases of the format agent-evals cannot be updated" in done.stderr


def test_update__secret_in_the_response__is_never_written(meant) -> None:
    async def leaking(exchange: Exchange) -> None:
        exchange.answer({"response": "It is Oslo with the key hunter2hunter2 and Kim Li.", "toolCalls": []})

    (meant / "eval-gate.json").write_text(json.dumps({"redact": ["Kim \\w+"], "passEnv": ["MY_TOKEN"]}))
    with agent(leaking) as running:
        flags = ("--agent-endpoint", running.url, "evals")
        done = gate(meant, "draft", "--update", "gs-000", "--yes", *flags, MY_TOKEN="hunter2hunter2")
    assert done.returncode == 0, done.stderr
    everything = done.stdout + done.stderr + text_of(meant)
    assert "Oslo" in text_of(meant)
    assert not any(word in everything for word in ("hunter2", "Kim", "Li."))
