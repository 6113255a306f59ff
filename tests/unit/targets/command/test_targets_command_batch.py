"""Many cases in one call of a command: what it is told, in which order it may answer, and what breaks it."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from eval_gate.model.case import CaseBrief
from eval_gate.model.conversation import Message, Response
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.targets.command import target as cli
from eval_gate.targets.command.settings import CliSettings
from eval_gate.targets.command.target import CliTarget
from eval_gate.text.redaction import Redactor

RULE = "agentv.provider-level-batching-flag.enabled-for-batching-capable-provider"


def target(template: str, root: Path, *, secrets=(), **settings) -> CliTarget:
    described = {"name": "desk", "commandTemplate": template, "providerBatching": True, **settings}
    return CliTarget(
        CliSettings.model_validate(described),
        root=root,
        environment={"PATH": os.environ["PATH"]},
        redact=Redactor(secrets),
    )


def requests(*ids: str, **brief) -> list[Request]:
    return [
        Request(
            case_id,
            (Message(role="user", content="m"),),
            brief=CaseBrief(question=f"Question {case_id}?", linked_question="", **brief),
        )
        for case_id in ids
    ]


def batch(desk: CliTarget, asked: list[Request]) -> dict[str, Response]:
    async def run() -> dict[str, Response]:
        try:
            return dict(await desk.respond_batch(asked))
        finally:
            await desk.aclose()

    return asyncio.run(run())


def answered(root: Path, *records: object, ids: str = "abc", where: str = " > {OUTPUT_FILE}", **settings):
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    (root / "answers.jsonl").write_text("\n".join(lines))
    desk = target(f"echo call >> calls; cat answers.jsonl{where}", root, **settings)
    return batch(desk, requests(*ids))


def broken(root: Path, *records: object, **settings) -> str:
    with pytest.raises(TargetError) as caught:
        answered(root, *records, **settings)
    assert caught.value.fault is TargetFault.MALFORMED
    return caught.value.message.removeprefix("the output of the batch cannot be used: ")


A, B, C = ({"id": name, "text": f"answer {name}"} for name in "abc")


@pytest.mark.contract(RULE, "cli.batch-output")
@pytest.mark.parametrize("where", [" > {OUTPUT_FILE}", ""])
def test_respond_batch__enabled_for_batching_capable_provider__one_call_mapped_by_id(tmp_path, where) -> None:
    messages = [{"role": "assistant", "content": "HOLD", "tool_calls": [{"tool": "watchlist"}]}]
    found = answered(
        tmp_path, C, {"id": "a", "output_messages": messages}, "", {"id": "b", "text": {"x": 1}}, where=where
    )
    assert {case_id: response.text for case_id, response in found.items()} == {
        "a": "HOLD",
        "b": '{"x":1}',
        "c": "answer c",
    }
    assert [call.name for call in found["a"].tool_calls] == ["watchlist"]
    assert (found["a"].tool_calls_known, found["c"].tool_calls_known) == (True, False)
    assert (tmp_path / "calls").read_text() == "call\n"
    assert len({response.duration_ms for response in found.values()}) == 1
    assert 0 < found["a"].duration_ms < 10_000


@pytest.mark.contract("cli.batch-output")
def test_respond_batch__ids_that_nobody_asked_for__are_ignored(tmp_path) -> None:
    found = answered(tmp_path, A, B, C, {"id": "z", "text": "?"}, "")
    assert list(found) == ["a", "b", "c"]


@pytest.mark.contract("cli.batch-output")
def test_respond_batch__record_without_words__is_an_empty_answer(tmp_path) -> None:
    assert answered(tmp_path, A, B, {"id": "c"})["c"].text == ""


@pytest.mark.slow
@pytest.mark.contract("cli.batch-output")
@pytest.mark.parametrize(
    ("records", "problem"),
    [
        ([A, "{oops", C], "line 2 is not a JSON object: it begins «{oops»"),
        ([A, "[1]", C], "line 2 is not a JSON object: it begins «[1]»"),
        ([A, B, C, C], "line 4 repeats the id «c»"),
        ([A, B, C, {"id": "z"}, {"id": "z"}], "line 5 repeats the id «z»"),
        ([A, C], "no response for «b»"),
        ([""], "no response for «a», «b», «c»"),
        ([A, B, C, {"text": "x"}], "line 4 has no id"),
        ([A, B, C, {"id": ""}], "line 4 has no id"),
        ([A, B, C, {"id": 7}], "line 4 has no id"),
        ([json.dumps([A, B, C])], "line 1 is not a JSON object: it begins «[{"),
        (["hunter22 oops"], "line 1 is not a JSON object: it begins «*** oops»"),
    ],
)
def test_respond_batch__broken_output__breaks_the_whole_batch(tmp_path, records, problem) -> None:
    assert broken(tmp_path, *records, secrets=["hunter22"]).startswith(problem)


def test_respond_batch__many_missing__names_a_few(tmp_path) -> None:
    assert broken(tmp_path, A, ids="abcdefgh") == "no response for «b», «c», «d» and 4 more"


def test_respond_batch__many_lines_of_nul__is_a_short_message(tmp_path) -> None:
    assert len(broken(tmp_path, "\0" * 1_000_000)) < 300


@pytest.mark.contract("cli.batch-output")
@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("echo bad luck >&2; exit 3", "CLI exited with code 3: bad luck"),
        ("echo done; : {OUTPUT_FILE}", "the command exited with code 0 but wrote no {OUTPUT_FILE}: done"),
    ],
)
def test_respond_batch__command_that_fails__breaks_the_whole_batch(tmp_path, template, message) -> None:
    with pytest.raises(TargetError) as caught:
        batch(target(template, tmp_path), requests("a", "b"))
    assert caught.value.message == message


@pytest.mark.slow
def test_respond_batch__takes_too_long__breaks_the_whole_batch(tmp_path) -> None:
    with pytest.raises(TargetError, match="CLI provider timed out after"):
        batch(target("sleep 60", tmp_path, timeoutSeconds=0.3), requests("a"))


def test_respond_batch__output_beyond_the_bound__is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(cli, "MAX_BATCH_OUTPUT", 20)
    with pytest.raises(TargetError, match=r"\(limit 20\)"):
        answered(tmp_path, A, B, C)


@pytest.mark.contract("cli.batch-input")
def test_respond_batch__what_the_command_is_told(tmp_path) -> None:
    agent = tmp_path / "agent.sh"
    agent.write_text('cp "$AGENT_BATCH_INPUT" told; printf "%s|" "$@" > words; cp answers "$4"\n')
    (tmp_path / "answers").write_text('{"id": "a"}\n{"id": "é b"}\n')
    asked = requests("a", "é b", guidelines="Be brief.", guideline_files=("/g.md",), input_files=("/x y.csv",))
    batch(target("sh agent.sh {EVAL_ID} {PROMPT} {ATTEMPT} {OUTPUT_FILE} {FILES}", tmp_path), asked)
    eval_id, prompt, attempt, output, rest = (tmp_path / "words").read_text().split("|")
    assert (eval_id, prompt, attempt, rest) == ("batch", "", "0", "")
    assert Path(output).name == "batch.jsonl"
    assert not Path(output).parent.exists()
    shared = {"guidelines": "Be brief.", "files": ["/x y.csv", "/g.md"]}
    assert [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()] == [
        {"id": "a", "prompt": "Question a?", **shared},
        {"id": "é b", "prompt": "Question é b?", **shared},
    ]


ECHO = """\
echo call >> calls
while read -r line; do
  case "$line" in *'"id": "'"$BAD"'"'*) echo broken ;; *) echo "$line" ;; esac
done < "$AGENT_BATCH_INPUT" > {OUTPUT_FILE}
"""


def test_respond_batch__batch_size__several_calls(tmp_path) -> None:
    found = batch(target(ECHO, tmp_path, batchSize=2, env={"BAD": "-"}), requests(*"abcde"))
    assert list(found) == [*"abcde"]
    assert (tmp_path / "calls").read_text() == "call\n" * 3


def test_respond_batch__one_of_several_calls_breaks__its_cases_have_no_answer_and_it_says_so(tmp_path) -> None:
    desk = target(ECHO, tmp_path, batchSize=2, env={"BAD": "c"})
    assert list(batch(desk, requests(*"abcde"))) == [*"abe"]
    [notice] = desk.notices
    assert notice.startswith("a batch of up to 2 cases broke, so each of its cases was sent separately: the output")


def test_respond_batch__all_of_several_calls_break__is_an_error(tmp_path) -> None:
    with pytest.raises(TargetError, match="exited with code 9"):
        batch(target("exit 9", tmp_path, batchSize=1), requests(*"ab"))


def test_respond_batch__one_case__is_still_a_batch(tmp_path) -> None:
    assert answered(tmp_path, A, ids="a")["a"].text == "answer a"


def test_respond_batch__no_case__calls_nobody(tmp_path) -> None:
    assert answered(tmp_path, ids="") == {}
    assert not (tmp_path / "calls").exists()


@pytest.mark.contract("agentv.cli-template-execution.optional-health-check")
def test_respond_batch__optional_health_check__that_fails_calls_nobody(tmp_path) -> None:
    check = {"type": "command", "commandTemplate": "exit 1"}
    with pytest.raises(TargetError, match="CLI healthcheck failed for 'desk'"):
        answered(tmp_path, A, B, C, healthcheck=check)
    assert not (tmp_path / "calls").exists()


def test_respond_batch__verbose__every_answer_says_what_was_run(tmp_path) -> None:
    [warning] = answered(tmp_path, A, ids="a", verbose=True)["a"].warnings
    assert warning.startswith("ran: echo call >> calls; cat answers.jsonl > /")
