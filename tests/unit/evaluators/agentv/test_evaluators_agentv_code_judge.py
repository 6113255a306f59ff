"""A command as the judge: what it is told, what is read of it, and what never counts as a grade. Real programs."""

import json
import re
import shlex
import sys
import time
from pathlib import Path

import pytest

from eval_gate.evaluators.agentv import code_judge as module
from eval_gate.evaluators.base import EvaluatorError, EvaluatorScore
from eval_gate.model.conversation import OutputCall, OutputMessage, Response, ToolCall
from eval_gate.model.specs.evaluator import CodeJudge
from eval_gate.struct import replace
from eval_gate.text.redaction import Redactor
from tests.support.grading import judgement_of, make_brief, make_context, run_spec, with_messages, with_trace

PYTHON = shlex.quote(sys.executable)


def judged(folder: Path, program: str, response: Response | str = "In Rome.", brief=None, **fields) -> EvaluatorScore:
    """The grade by this Python program."""
    (folder / "check.py").write_text(program, encoding="utf-8")
    one = CodeJudge(**({"command": f"{PYTHON} check.py", "cwd": str(folder)} | fields))
    return run_spec(one, make_context(one, response=response, brief=brief))


def printing(text: str) -> str:
    return f"import sys\nsys.stdout.buffer.write({text.encode()!r})\n"


def told(folder: Path, response: Response | str = "In Rome.", brief=None) -> dict:
    """What the program read."""
    program = "import sys\nopen('told.json', 'w').write(sys.stdin.read())\nprint('{\"score\": 1}')\n"
    judged(folder, program, response, brief)
    return json.loads((folder / "told.json").read_text())


@pytest.mark.contract("agentv.behaviour.code-judge-reply")
def test_code_judge__full_reply__is_read(tmp_path) -> None:
    reply = {"score": 0.5, "hits": ["has a city", " "], "misses": ["no country", 7], "reasoning": " half \n"}
    evaluation = judged(tmp_path, printing(json.dumps(reply)), label="schema")
    assert (evaluation.score, evaluation.passed) == (0.5, False)
    assert (evaluation.hits, evaluation.misses) == (("has a city",), ("no country",))
    assert (evaluation.reasoning, evaluation.error) == ("half", "schema: score 0.50, no country")
    assert evaluation.provider_request == {"command": f"{PYTHON} check.py"}


@pytest.mark.contract("agentv.behaviour.code-judge-reply")
@pytest.mark.parametrize(
    ("text", "score"),
    [
        ('{"score": 1}', 1.0),
        ('\ufeff\n {"score": 1.0000001}\n', 1.0),
        ('{"score": -1e-9}', 0.0),
        ('{"score": 0.9999999999999999}', 1.0),
        ('{"score": 0.99}', 0.99),
        ('{"score": 0.25, "hits": "no list", "misses": null, "reasoning": 5}', 0.25),
    ],
)
def test_code_judge__score__is_read(tmp_path, text, score) -> None:
    evaluation = judged(tmp_path, printing(text))
    assert (evaluation.score, evaluation.hits, evaluation.misses, evaluation.reasoning) == (score, (), (), None)


@pytest.mark.contract("agentv.behaviour.code-judge-reply")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"score": 55}', "the score 55 is outside of the scale (0 to 1)"),
        ('{"score": -0.4}', "the score -0.4 is outside of the scale (0 to 1)"),
        ('{"score": 0, "score": 1}', "its output has `score` twice in one object"),
    ],
)
def test_code_judge__score_of_another_scale_or_two_of_them__is_no_verdict(tmp_path, text, said) -> None:
    with pytest.raises(EvaluatorError, match=re.escape(said)):
        judged(tmp_path, printing(text))


@pytest.mark.contract("agentv.behaviour.code-judge-material")
def test_code_judge__stdin__holds_case_and_answer(tmp_path) -> None:
    call = OutputCall(tool="search", input={"some_key": 1}, id="c1")
    message = OutputMessage(role="assistant", content="In Rome. Ä \ud800", tool_calls=(call,), metadata={"a_b": 1})
    response = Response(text="In Rome. Ä", messages=(message,), trace=with_trace("x").trace)
    brief = make_brief(
        reference_answer="Rome",
        input_messages=[{"role": "user", "content": "Where?"}],
        expected_messages=[{"role": "assistant", "content": "Rome"}],
        guideline_files=("/g/a.instructions.md",),
        input_files=("/g/b.csv",),
    )
    assert told(tmp_path, response, brief) == {
        "question": "Where is it?",
        "expected_outcome": "Names the city.",
        "expected_messages": [{"role": "assistant", "content": "Rome"}],
        "reference_answer": "Rome",
        "candidate_answer": "In Rome. Ä",
        "output_messages": [
            {
                "role": "assistant",
                "content": "In Rome. Ä \ud800",
                "toolCalls": [{"tool": "search", "input": {"some_key": 1}, "id": "c1"}],
                "metadata": {"a_b": 1},
            }
        ],
        "guideline_files": ["/g/a.instructions.md"],
        "input_files": ["/g/b.csv"],
        "input_messages": [{"role": "user", "content": "Where?"}],
        "candidate_trace": [{"type": "tool_call", "name": "x"}, {"type": "tool_result"}],
        "candidate_trace_summary": {
            "eventCount": 1,
            "toolNames": ["search"],
            "toolCallsByName": {"search": 1},
            "errorCount": 0,
        },
    }


@pytest.mark.contract("agentv.behaviour.code-judge-material")
def test_code_judge__bare_text__has_null_for_messages_trace_and_summary(tmp_path) -> None:
    material = told(tmp_path)
    for key in ("output_messages", "candidate_trace", "candidate_trace_summary", "reference_answer"):
        assert material[key] is None
    assert material["candidate_answer"] == "In Rome."


def test_code_judge__target_of_plain_calls__shows_them_as_a_message(tmp_path) -> None:
    material = told(tmp_path, Response(text="x", tool_calls=(ToolCall(name="search", params={"q": "Rome"}),)))
    assert material["output_messages"] == [
        {"role": "assistant", "content": "x", "toolCalls": [{"tool": "search", "input": {"q": "Rome"}}]}
    ]
    assert material["candidate_trace"] is None


OUTPUT_MESSAGES = """
{
  "output_messages": [{
    "role": "assistant",
    "tool_calls": [{
      "tool": "searchDocs",
      "input": {"query": "test"},
      "output": {"results": []},
      "id": "call_123",
      "timestamp": "2025-01-01T00:00:00Z"
    }]
  }]
}
"""
WITH_METADATA = """
{
  "output_messages": [{
    "role": "assistant",
    "content": "response",
    "timestamp": "2025-01-01T00:00:00Z",
    "metadata": {"latency_ms": 150}
  }]
}
"""


def from_wire(text: str) -> Response:
    """What a target makes of these messages: the same facts under the model's names."""
    messages = tuple(
        OutputMessage(
            **{key: value for key, value in message.items() if key != "tool_calls"},
            tool_calls=tuple(OutputCall(**call) for call in message.get("tool_calls", ())),
        )
        for message in json.loads(text)["output_messages"]
    )
    return Response(text="", messages=messages)


@pytest.mark.contract("agentv.output-message-format.toolcall-with-optional-trace-fields")
def test_code_judge__toolcall_with_optional_trace_fields__sees_them_in_camel_case(tmp_path) -> None:
    assert told(tmp_path, from_wire(OUTPUT_MESSAGES))["output_messages"] == [
        {
            "role": "assistant",
            "toolCalls": [
                {
                    "tool": "searchDocs",
                    "input": {"query": "test"},
                    "output": {"results": []},
                    "id": "call_123",
                    "timestamp": "2025-01-01T00:00:00Z",
                }
            ],
        }
    ]


@pytest.mark.contract("agentv.output-message-format.outputmessage-with-optional-metadata")
def test_code_judge__outputmessage_with_optional_metadata__sees_timestamp_and_metadata(tmp_path) -> None:
    assert told(tmp_path, from_wire(WITH_METADATA))["output_messages"] == json.loads(WITH_METADATA)["output_messages"]


@pytest.mark.contract("agentv.evaluator-outputmessages-context.outputmessages-available-in-evaluator-context")
def test_code_judge__outputmessages_available_in_evaluator_context__tool_calls_can_be_read(tmp_path) -> None:
    program = """
import json, sys
told = json.load(sys.stdin)
names = [call["tool"] for message in told["output_messages"] for call in message["toolCalls"]]
print(json.dumps({"score": names == ["search", "verify"] and 1 or 0, "hits": names}))
"""
    evaluation = judged(tmp_path, program, with_messages("search", "verify"))
    assert (evaluation.score, evaluation.hits) == (1.0, ("search", "verify"))


@pytest.mark.contract("agentv.evaluator-outputmessages-context.fallback-to-trace-when-outputmessages-absent")
def test_code_judge__fallback_to_trace_when_outputmessages_absent__has_the_events_alone(tmp_path) -> None:
    material = told(tmp_path, with_trace("search"))
    assert material["output_messages"] is None
    assert material["candidate_trace"] == [{"type": "tool_call", "name": "search"}, {"type": "tool_result"}]


@pytest.mark.contract("agentv.behaviour.code-judge-broken")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("all good, I think", "its output is not JSON: all good, I think"),
        ("", r"its output is not JSON: \(nothing\)"),
        ('{"score": NaN}', 'its output is not JSON: {"score": NaN}'),
        ('{"score": 1} {"score": 0}', "its output is not JSON: "),
        ("[1]", r"its output is not a JSON object: \[1\]"),
        ('{"hits": []}', '`score` is missing or not a number: {"hits": '),
        ('{"score": true}', "`score` is missing or not a number: "),
        ('{"score": "1"}', "`score` is missing or not a number: "),
        ('{"score": 1e999}', "its output contains the number 1e999, which is out of range: "),
        ("[" * 100_000, r"its output is nested deeper than 200 levels: \[\["),
        ("9" * 5_000, "its output contains a number of 5,000 digits: 999"),
    ],
    ids=lambda value: value[:20],
)
def test_code_judge__no_verdict__is_an_error_that_quotes_its_beginning(tmp_path, text, why) -> None:
    with pytest.raises(EvaluatorError, match=rf"^schema: {why}") as caught:
        judged(tmp_path, printing(text), label="schema")
    assert len(str(caught.value)) < 300


@pytest.mark.contract("agentv.behaviour.code-judge-broken")
def test_code_judge__not_utf8__is_an_error(tmp_path) -> None:
    with pytest.raises(EvaluatorError, match="its output is not JSON: "):
        judged(tmp_path, 'import sys\nsys.stdout.buffer.write(b\'{"score": 1, "reasoning": "\\xff"}\')')


@pytest.mark.contract("agentv.behaviour.code-judge-broken")
@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("import sys\nprint('{\"score\": 1}')\nsys.exit('no such\\n file')", "exited with code 1: no such file$"),
        ("import sys\nsys.exit(3)", "exited with code 3$"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "was ended by signal 9$"),
        ("import sys\nsys.exit('x' * 9000)", "exited with code 1: …x{199}$"),
    ],
    ids=["words", "silent", "signal", "very many words"],
)
def test_code_judge__script_that_breaks__is_an_error_and_no_score_of_zero(tmp_path, program, why) -> None:
    with pytest.raises(EvaluatorError, match=rf"^code_judge: Code evaluator failed: {why}"):
        judged(tmp_path, program, command=(sys.executable, "check.py"))


@pytest.mark.slow
@pytest.mark.contract("agentv.behaviour.code-judge-broken")
def test_code_judge__too_slow__is_ended_and_an_error(tmp_path) -> None:
    started = time.monotonic()
    with pytest.raises(EvaluatorError, match=r"^code_judge: Code evaluator failed: no result within 0.5 s"):
        judged(tmp_path, "import time\ntime.sleep(600)", timeout_seconds=0.5)
    assert time.monotonic() - started < 60


@pytest.mark.contract("agentv.behaviour.code-judge-broken")
def test_code_judge__flood__is_an_error_and_is_not_kept(tmp_path) -> None:
    flood = "import sys\nwhile True:\n    sys.stdout.write('{' * 65536)"
    with pytest.raises(EvaluatorError, match=r"failed: it printed more than 1,000,000 bytes$"):
        judged(tmp_path, flood, timeout_seconds=60)
    assert module.MAX_OUTPUT == 1_000_000


@pytest.mark.contract("agentv.behaviour.code-judge-broken")
@pytest.mark.parametrize(
    "fields", [{"command": ("no-such-program-here",)}, {"cwd": "/no/such/folder"}], ids=["program", "folder"]
)
def test_code_judge__cannot_be_started__is_an_error(tmp_path, fields) -> None:
    with pytest.raises(EvaluatorError, match=r"^code_judge: the code evaluator could not be run: .*cannot be "):
        judged(tmp_path, printing('{"score": 1}'), **fields)


def test_code_judge__environment__is_what_the_context_gives(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    program = "import json, os\nprint(json.dumps({'score': 1, 'hits': sorted(os.environ)}))"
    hits = judged(tmp_path, program, command=(sys.executable, "check.py")).hits
    assert "PATH" in hits
    assert "SOME_API_KEY" not in hits


def test_code_judge__reads_no_stdin__still_counts(tmp_path) -> None:
    response = Response(text="x" * 3_000_000, tool_calls_known=False)
    assert judged(tmp_path, printing('{"score": 1}'), response).passed


def test_code_judge__very_many_hits__are_bounded(tmp_path) -> None:
    reply = json.dumps({"score": 1, "hits": ["h" * 1_000] * 100, "reasoning": "r" * 10_000})
    evaluation = judged(tmp_path, printing(reply))
    assert (len(evaluation.hits), evaluation.hits[-1]) == (50, "… and more")
    assert evaluation.reasoning is not None
    assert max(map(len, (*evaluation.hits, evaluation.reasoning))) <= 2_000


@pytest.mark.slow
def test_code_judge__several_in_a_case__take_turns(tmp_path) -> None:
    program = """
import os, sys, time
try:
    os.mkdir("busy")
except FileExistsError:
    sys.exit("another one is at work")
time.sleep(0.1)
os.rmdir("busy")
print('{"score": 1}')
"""
    (tmp_path / "check.py").write_text(program, encoding="utf-8")
    specs = [CodeJudge(label=name, command=(sys.executable, "check.py"), cwd=str(tmp_path)) for name in ("a", "b", "c")]
    assert judgement_of(*specs).passed


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_code_judge__prints_a_secret__is_masked_before_anything_is_made_of_it(tmp_path, stream) -> None:
    program = f"""import json, sys
print(json.dumps({{"score": 0.5, "misses": ["key is s3cret-value-1"]}}), file=sys.{stream})
sys.exit({int(stream == "stderr")})
"""
    (tmp_path / "check.py").write_text(program)
    one = CodeJudge(command=f"{PYTHON} check.py", cwd=str(tmp_path))
    context = replace(make_context(one), mask=Redactor(["s3cret-value-1"]).mask_bytes)
    if stream == "stdout":
        assert run_spec(one, context).misses == ("key is ***",)
        return
    with pytest.raises(EvaluatorError, match=r"key is \*\*\*") as caught:
        run_spec(one, context)
    assert "s3cret" not in str(caught.value)
