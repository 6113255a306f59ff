"""A command line as a target, with real commands: what they get, what is read of them, how they fail."""

import asyncio
import json
import os
import shlex
import sys
import tempfile
import time
from pathlib import Path

import pytest

from eval_gate.evaluators.trace import summarize_trace
from eval_gate.model.case import CaseBrief
from eval_gate.model.conversation import Message, Response
from eval_gate.process import run as run_module
from eval_gate.targets.base import BatchTarget, Request, TargetError, TargetFault
from eval_gate.targets.command.settings import CliSettings
from eval_gate.targets.command.target import CliTarget
from eval_gate.text.redaction import Redactor
from tests.support.processes import eventually, gone

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch) -> Path:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    return place


def target(
    template: str, root: Path, *, environment=ENVIRONMENT, secrets=(), max_retries=None, **settings
) -> CliTarget:
    described = CliSettings.model_validate({"name": "desk", "commandTemplate": template, **settings})
    return CliTarget(described, root=root, environment=environment, redact=Redactor(secrets), max_retries=max_retries)


def request(question: str | None = "What?", *, case_id: str = "case-1", **brief) -> Request:
    said = CaseBrief(question=question, linked_question="", **brief) if question is not None else None
    return Request(case_id, (Message(role="user", content="the messages"),), brief=said)


def respond(template: str, root: Path, asked: Request | None = None, **settings) -> Response:
    async def ask() -> Response:
        desk = target(template, root, **settings)
        try:
            return await desk.respond(asked or request())
        finally:
            await desk.aclose()

    return asyncio.run(ask())


def refused(template: str, root: Path, asked: Request | None = None, **settings) -> TargetError:
    with pytest.raises(TargetError) as caught:
        respond(template, root, asked, **settings)
    return caught.value


def python(code: str) -> str:
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


def left(place: Path) -> list[str]:
    return sorted(file.name for file in place.iterdir())


# rendering and answers


@pytest.mark.contract("agentv.cli-template-execution.render-and-execute-template")
def test_respond__render_and_execute_template__every_placeholder_arrives(tmp_path, temporary) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text("import json, sys\njson.dump(sys.argv[1:-1], open(sys.argv[-1], 'w'))\nprint('noise')\n")
    asked = request("It's 5 o'clock.\nWhat now?", guidelines="Be brief.", input_files=("/data/a b.csv", "/data/c.md"))
    found = respond(
        shlex.quote(sys.executable) + " agent.py {PROMPT} {GUIDELINES} {EVAL_ID} {ATTEMPT} {FILES} {OUTPUT_FILE}",
        tmp_path,
        asked,
    )
    words = ["It's 5 o'clock.\nWhat now?", "Be brief.", "case-1", "0", "/data/a b.csv", "/data/c.md"]
    assert json.loads(found.text) == words
    assert left(temporary) == []
    assert found.duration_ms > 0
    assert (found.attempts, found.warnings) == (1, ())


@pytest.mark.contract("cli.answer")
def test_respond__template_without_output_file__what_is_printed_is_the_answer(tmp_path) -> None:
    found = respond("echo progress >&2; echo {PROMPT}", tmp_path)
    assert (found.text, found.tool_calls_known, found.messages) == ("What?", False, None)


@pytest.mark.contract("cli.answer")
def test_respond__empty_answer__is_an_answer(tmp_path) -> None:
    assert respond("true", tmp_path).text == ""
    assert respond(": > {OUTPUT_FILE}", tmp_path).text == ""


def test_respond__case_without_brief__gets_its_messages_as_text(tmp_path) -> None:
    assert respond("printf %s {PROMPT}{GUIDELINES}{FILES}", tmp_path, request(None)).text == "the messages"


@pytest.mark.slow
@pytest.mark.parametrize(
    "value", ["$(touch owned)", "`touch owned`", "a'b\"c", "x; touch owned", "\\n", "-n", "{EVAL_ID}", ""]
)
def test_respond__value_with_signs_of_the_shell__arrives_as_it_is(tmp_path, value) -> None:
    asked = request(value, case_id=value or "x", guidelines=value, input_files=(f"/{value}",))
    line = f"{python('import sys; print(repr(sys.argv[1:]))')} {{PROMPT}} {{EVAL_ID}} {{GUIDELINES}} {{FILES}}"
    assert respond(line, tmp_path, asked).text == repr([value, value or "x", value, f"/{value}"])
    assert not (tmp_path / "owned").exists()


@pytest.mark.contract("cli.files")
@pytest.mark.parametrize(
    ("template", "files_format", "shown"),
    [
        ("echo {FILES}", "{path}", "/data/a b.csv /data/style.md"),
        ("echo {FILES} {GUIDELINES}", "{path}", "/data/a b.csv Be brief."),
        ("echo {FILES}", "--file {path}", "--file /data/a b.csv --file /data/style.md"),
        ("printf '%s|' {FILES}", "{basename}={path}", "a b.csv=/data/a b.csv|style.md=/data/style.md|"),
    ],
)
def test_respond__files__come_in_their_format(tmp_path, template, files_format, shown) -> None:
    asked = request(guidelines="Be brief.", guideline_files=("/data/style.md",), input_files=("/data/a b.csv",))
    assert respond(template, tmp_path, asked, filesFormat=files_format).text == shown


def test_respond__file_that_is_in_both_lists__comes_once(tmp_path) -> None:
    asked = request(guideline_files=("/a",), input_files=("/a", "/b"))
    assert respond("echo {FILES}", tmp_path, asked).text == "/a /b"


@pytest.mark.contract("cli.prompt-file")
def test_respond__prompt_file__holds_any_prompt(tmp_path, temporary) -> None:
    prompt = "é\0" + "x" * 300_000
    found = respond(
        f"{python('import sys; print(len(open(sys.argv[1], chr(114) + chr(98)).read()))')} {{PROMPT_FILE}}",
        tmp_path,
        request(prompt),
    )
    assert found.text == "300003"
    assert left(temporary) == []


@pytest.mark.slow
@pytest.mark.contract("cli.attempt")
def test_respond__attempt__is_the_trial_and_grows_with_retries(tmp_path) -> None:
    asked = Request("a", (Message(role="user", content="x"),), trial=2)
    assert respond("echo {ATTEMPT}", tmp_path, asked).text == "2"
    line = "echo {ATTEMPT} >> tries; [ {ATTEMPT} = 3 ] || sleep 60; echo done"
    found = respond(line, tmp_path, asked, timeoutSeconds=0.5, maxRetries=1)
    assert (found.text, found.attempts) == ("done", 2)
    assert (tmp_path / "tries").read_text() == "2\n3\n"


@pytest.mark.contract("agentv.test-case-execution.provider-returns-a-trace", "cli.answer")
@pytest.mark.parametrize("where", ["> {OUTPUT_FILE}", ""])
def test_respond__provider_returns_a_trace__is_kept_and_summarised(tmp_path, where) -> None:
    events = [{"type": "tool_call", "name": "b"}, {"type": "tool_call", "name": "a"}, {"type": "error"}]
    (tmp_path / "answer.json").write_text(json.dumps({"text": "done", "trace": events}))
    found = respond(f"cat answer.json {where}", tmp_path)
    assert [event.type for event in found.trace] == ["tool_call", "tool_call", "error"]
    summary = summarize_trace(found)
    assert (summary.event_count, summary.tool_names, summary.error_count) == (3, ("a", "b"), 1)
    assert summary.tool_calls_by_name == {"a": 1, "b": 1}


@pytest.mark.contract("agentv.test-case-execution.provider-does-not-support-traces")
def test_respond__provider_does_not_support_traces__there_is_no_summary(tmp_path) -> None:
    found = respond("echo done", tmp_path)
    assert (found.text, found.trace, summarize_trace(found)) == ("done", None, None)


def test_respond__messages__are_read_with_calls_usage_and_cost(tmp_path) -> None:
    document = {
        "output_messages": [{"role": "assistant", "content": "Held.", "tool_calls": [{"tool": "watchlist"}]}],
        "usage": {"input_tokens": 10, "output_tokens": 2},
        "cost_usd": 0.01,
    }
    (tmp_path / "answer.json").write_text(json.dumps(document))
    found = respond("cp answer.json {OUTPUT_FILE}; echo noise", tmp_path)
    assert (found.text, [call.name for call in found.tool_calls], found.tool_calls_known) == (
        "Held.",
        ["watchlist"],
        True,
    )
    assert (found.usage.input_tokens, found.cost_usd) == (10, 0.01)


# folders


def test_respond__folder__is_that_of_the_eval_file(tmp_path) -> None:
    (tmp_path / "evals/desk/agent").mkdir(parents=True)
    asked = Request("a", (Message(role="user", content="x"),), eval_file="evals/desk/one.yaml")
    assert respond("pwd", tmp_path, asked).text == str(tmp_path / "evals/desk")
    assert respond("pwd", tmp_path, asked, cwd="agent").text == str(tmp_path / "evals/desk/agent")
    assert respond("pwd", tmp_path, asked, cwd=str(tmp_path)).text == str(tmp_path)
    assert respond("pwd", tmp_path).text == str(tmp_path)


def test_respond__folder_that_is_not_there__is_an_error_that_names_it(tmp_path, temporary) -> None:
    error = refused("pwd", tmp_path, cwd="gone")
    assert error.fault is TargetFault.REFUSED
    assert f"the working directory {tmp_path / 'gone'} cannot be used: No such file" in error.message
    assert left(temporary) == []


@pytest.mark.parametrize("case_id", ["a/b", "../../x", "..", "", "x" * 500, "ü 🙂", "a\nb", "$(id)"])
def test_respond__any_case_id__makes_a_file_name(tmp_path, temporary, case_id) -> None:
    found = respond("echo {OUTPUT_FILE} > {OUTPUT_FILE}", tmp_path, request(case_id=case_id))
    path = Path(found.text)
    assert path.parent.parent == temporary
    assert path.suffix == ".json"
    assert len(path.name) < 100
    assert left(temporary) == []


def test_respond__keep_temp_files__are_kept_and_it_says_where(tmp_path, temporary) -> None:
    desk = target("cat {PROMPT_FILE} > {OUTPUT_FILE}", tmp_path, keepTempFiles=True)
    asyncio.run(desk.respond(request()))
    [folder] = temporary.iterdir()
    assert left(folder) == ["case-1.json", "prompt.txt"]
    assert (folder / "case-1.json").read_text() == "What?"
    assert desk.notices == (f"the files of the target desk are kept (keepTempFiles): {temporary}/eval-gate-cli-*",)


def test_respond__verbose__says_what_was_run_without_secrets(tmp_path) -> None:
    [line] = respond("echo {PROMPT} hunter22", tmp_path, secrets=["hunter22"], verbose=True).warnings
    assert line == "ran: echo 'What?' ***"


# errors


@pytest.mark.contract("agentv.cli-template-execution.render-and-execute-template")
@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("echo no luck >&2; echo out; exit 7", "CLI exited with code 7: no luck"),
        ("echo out; exit 7", "CLI exited with code 7: out"),
        ("exit 7 > {OUTPUT_FILE}", "CLI exited with code 7"),
        ("echo hunter22 >&2; exit 1", "CLI exited with code 1: ***"),
        ("kill -9 $$", "CLI was ended by signal 9"),
        ("printf 'a\\n\\033[31mb\\0c\\n' >&2; exit 1", "CLI exited with code 1: a ⏎ b c"),
    ],
)
def test_respond__render_and_execute_template__errors_have_exit_code_and_stderr(
    tmp_path, temporary, template, message
) -> None:
    error = refused(template, tmp_path, secrets=["hunter22"])
    assert (error.message, error.fault, error.retryable) == (message, TargetFault.REFUSED, False)
    assert left(temporary) == []


def test_respond__error_that_says_much__is_quoted_at_its_end_and_bounded(tmp_path) -> None:
    code = "import sys; sys.stderr.write('noise ' * 1_000_000 + 'secretsecret the reason'); sys.exit(2)"
    message = refused(python(code), tmp_path, secrets=["secretsecret"]).message
    assert message.startswith("CLI exited with code 2: …")
    assert message.endswith("noise *** the reason")
    assert len(message) < 400


@pytest.mark.contract("cli.flood")
def test_respond__twelve_megabytes_of_nul_and_an_error__is_a_short_message(tmp_path) -> None:
    assert refused("head -c 12000000 /dev/zero; exit 1", tmp_path).message == "CLI exited with code 1"


def test_respond__program_that_is_not_there__is_said_in_the_hint(tmp_path) -> None:
    error = refused("no-such-agent {PROMPT}", tmp_path)
    assert error.message.startswith("CLI exited with code 127: ")
    assert "not found" in error.message
    assert error.hint == f"the shell did not find the program: it searches names on PATH and paths in {tmp_path}"
    assert "is not executable" in refused("/etc/passwd", tmp_path).hint


@pytest.mark.contract("cli.answer")
@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("echo done; : {OUTPUT_FILE}", "the command exited with code 0 but wrote no {OUTPUT_FILE}: done"),
        ("mkdir {OUTPUT_FILE}", "is not a regular file"),
        ("mkfifo {OUTPUT_FILE}", "is not a regular file"),
        ("ln -s /etc/hostname {OUTPUT_FILE}", "is a link"),
        ("rm -rf $(dirname {OUTPUT_FILE})", "wrote no {OUTPUT_FILE}"),
    ],
)
def test_respond__output_file_that_cannot_be_read__is_an_error(tmp_path, temporary, template, words) -> None:
    assert words in refused(template, tmp_path).message
    assert left(temporary) == []


def test_respond__output_file_that_is_no_utf8__is_read_all_the_same(tmp_path) -> None:
    assert respond("printf 'a\\377b' > {OUTPUT_FILE}", tmp_path).text == "a\ufffdb"


def test_respond__output_file_of_half_an_envelope__is_a_text(tmp_path) -> None:
    found = respond('printf \'{"text": "a\' > {OUTPUT_FILE}', tmp_path)
    assert (found.text, found.tool_calls_known) == ('{"text": "a', False)


@pytest.mark.slow
@pytest.mark.contract("cli.flood")
@pytest.mark.parametrize("where", ["", " > {OUTPUT_FILE}"])
def test_respond__twelve_megabytes__are_cut_and_it_says_so(tmp_path, where) -> None:
    code = "import sys; sys.stdout.write('HEAD' + 'x' * 12_000_000 + 'TAIL')"
    found = respond(python(code) + where, tmp_path)
    assert len(found.text) < 8_000_100
    assert found.text.startswith("HEADxxx")
    assert found.text.endswith("xxxTAIL")
    assert "\n[… cut: 12,000,008 bytes in all …]\n" in found.text
    assert found.warnings == (
        "the response was truncated: of 12,000,008 bytes 8,000,000 of them are kept, from its beginning and end",
    )


@pytest.mark.slow
@pytest.mark.contract("cli.flood")
def test_respond__json_beyond_the_bound__is_an_error_and_no_text(tmp_path) -> None:
    code = "import json; print(json.dumps({'text': 'x' * 9_000_000}))"
    error = refused(python(code), tmp_path)
    assert error.fault is TargetFault.MALFORMED
    assert error.message == "the response has 9,000,013 bytes (limit 8,000,000)"


def test_respond__nul_in_the_prompt__is_an_error_that_names_the_way_out(tmp_path) -> None:
    error = refused("echo {PROMPT}", tmp_path, request("a\0b"))
    what = "CLI error: the value of {PROMPT} contains a NUL character, which no command accepts"
    assert error.message == f"{what}; use {{PROMPT_FILE}} instead"
    assert "{GUIDELINES} contains a NUL" in refused("echo {GUIDELINES}", tmp_path, request(guidelines="\0")).message
    assert respond("echo {EVAL_ID}", tmp_path, request("a\0b")).text == "case-1"


@pytest.mark.contract("cli.prompt-file")
def test_respond__prompt_too_long_for_an_argument__says_to_use_a_file(tmp_path) -> None:
    message = refused("echo {PROMPT}", tmp_path, request("x" * 200_000)).message
    assert message.startswith("CLI error: the command has 200,007 characters with its values, more than the system")
    assert message.endswith("the longest is {PROMPT}: use {PROMPT_FILE} instead")
    message = refused("echo {GUIDELINES}", tmp_path, request(guidelines="x" * 200_000)).message
    assert message.endswith("the longest is {GUIDELINES}: let the command read this from files")


# time and processes


@pytest.mark.slow
@pytest.mark.contract("cli.process-group")
def test_respond__time_is_over__the_tree_is_gone_and_it_may_be_repeated(tmp_path, temporary) -> None:
    line = "echo slow >&2; sh -c 'echo $$ > child; sleep 60; true' & echo $$ > leader; sleep 60; : {OUTPUT_FILE}"
    error = refused(line, tmp_path, timeoutSeconds=1)
    assert error.message.startswith("CLI provider timed out after 1s: slow")
    assert error.retryable
    assert gone(tmp_path / "leader")
    assert gone(tmp_path / "child")
    assert left(temporary) == []


@pytest.mark.slow
@pytest.mark.contract("cli.process-group")
def test_respond__command_that_ignores_the_request_to_end__is_ended_by_force(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(run_module, "GRACE_S", 0.3)
    line = "trap '' TERM; echo $$ > leader; while true; do sleep 0.05; done"
    assert refused(line, tmp_path, timeoutSeconds=0.5).message.startswith("CLI provider timed out after 0.5s")
    assert gone(tmp_path / "leader")


@pytest.mark.slow
def test_respond__answer_after_the_request_to_end__is_no_answer(tmp_path) -> None:
    line = "trap 'echo late > {OUTPUT_FILE}; exit 0' TERM; while true; do sleep 0.02; done"
    assert refused(line, tmp_path, timeoutSeconds=0.5).message.startswith("CLI provider timed out after 0.5s")


def test_respond__child_in_the_background_holds_stdout__is_not_waited_for(tmp_path) -> None:
    began = time.monotonic()
    line = "sh -c 'echo $$ > child; sleep 60; true' & while ! [ -s child ]; do sleep 0.01; done; echo done"
    assert respond(line, tmp_path).text == "done"
    assert time.monotonic() - began < 30
    assert gone(tmp_path / "child")


@pytest.mark.contract("cli.process-group")
def test_respond__cancelled__leaves_neither_process_nor_file(tmp_path, temporary) -> None:
    async def cancel() -> None:
        desk = target("echo $$ > leader; sleep 60; : {OUTPUT_FILE}", tmp_path)
        task = asyncio.create_task(desk.respond(request()))
        assert await asyncio.to_thread(eventually, (tmp_path / "leader").exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await desk.aclose()

    asyncio.run(cancel())
    assert gone(tmp_path / "leader")
    assert left(temporary) == []


def test_respond__command_that_reads_stdin__gets_nothing(tmp_path) -> None:
    assert respond("cat; echo done", tmp_path).text == "done"


@pytest.mark.slow
def test_respond__retries_of_the_command_line__win(tmp_path) -> None:
    with pytest.raises(TargetError):
        respond("echo x >> tries; sleep 60", tmp_path, timeoutSeconds=0.3, maxRetries=3, max_retries=0)
    assert (tmp_path / "tries").read_text() == "x\n"


def test_respond__exit_code__is_never_repeated(tmp_path) -> None:
    refused("echo x >> tries; exit 1", tmp_path, maxRetries=3)
    assert (tmp_path / "tries").read_text() == "x\n"


# surroundings


@pytest.mark.contract("cli.environment")
def test_respond__environment__holds_no_token_and_no_key_but_what_is_named(tmp_path) -> None:
    ours = ENVIRONMENT | {
        "GITHUB_TOKEN": "t",
        "ACTIONS_RUNTIME_TOKEN": "t",
        "INPUT_GITHUB-TOKEN": "t",
        "OPENAI_API_KEY": "k",
        "LC_ALL": "C.UTF-8",
    }
    found = respond("env", tmp_path, environment=ours, env={"AGENT_KEY": "mine"}).text.splitlines()
    names = {line.partition("=")[0] for line in found} - {"PWD", "OLDPWD", "SHLVL", "_"}
    assert names == {"PATH", "HOME", "LC_ALL", "AGENT_KEY"}


def test_identity__is_name_and_command_without_secrets(tmp_path) -> None:
    one, same, other = (target(line, tmp_path).identity for line in ("agent k {PROMPT}", "agent k {PROMPT}", "agent l"))
    assert one == same
    assert one != other
    assert (one.name, one.provider, one.model) == ("desk", "cli", None)
    assert one.identity.startswith("cli:desk#")
    assert len(one.identity) == len("cli:desk#") + 8


def test_target__what_its_description_says__is_what_the_engine_sees(tmp_path) -> None:
    desk = target("x", tmp_path, workers=3, timeoutSeconds=2.5, providerBatching=True)
    assert isinstance(desk, BatchTarget)
    assert (desk.workers, desk.timeout_ms, desk.batches, desk.takes_stubs, desk.notices) == (3, 2500, True, False, ())
    bare = target("x", tmp_path)
    assert (bare.workers, bare.timeout_ms, bare.batches) == (None, None, False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_respond__root_in_a_folder_of_somebody__files_are_theirs_and_read(monkeypatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # the folders of tests are closed to others
        monkeypatch.setattr("tempfile.tempdir", name)
        root = Path(name)
        root.chmod(0o755)
        (root / "theirs").mkdir()
        os.chown(root / "theirs", 1234, 1234)
        found = respond("(id -u; cat {PROMPT_FILE}) > {OUTPUT_FILE}", root, cwd="theirs")
        assert (found.text, left(root)) == ("1234\nWhat?", ["theirs"])
