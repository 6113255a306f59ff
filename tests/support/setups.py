"""Whole set-ups as data: files and variables, drawn with every kind of target, and what may become of them.

A set-up is written into a folder and prepared as a run prepares it. What a mutation says of itself (`concerns`,
`blocks`, …) is what its author knows without the program: nothing here is computed by what is tested.
"""

from __future__ import annotations

import asyncio
import copy
import json
import shutil
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest import mock

from hypothesis import strategies as st

from eval_gate.config.loader import load_config
from eval_gate.config.selection import Selection
from eval_gate.engine.journal import FinishedTrials, JournalLine, TrialRecord
from eval_gate.engine.preparation.plan_builder import build_run_plan
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.engine.result_builder import RunProgress, build_run_result
from eval_gate.engine.run_plan import RunPlan
from eval_gate.model.case import EvalCase
from eval_gate.model.execution import Status
from eval_gate.model.result import RunResult
from eval_gate.struct import replace
from eval_gate.targets.base import Request
from eval_gate.targets.model.chat import ModelTurn

Json = Any
Files = dict[str, Json]

LEAST: Final[Mapping[str, Mapping[str, Json]]] = {
    "http": {"provider": "http", "url": "http://agent.test/chat"},
    "cli": {"provider": "cli", "commandTemplate": "python3 agent.py {SESSION} {PROMPT}"},
    "lines": {"provider": "cli", "commandTemplate": "python3 agent.py", "conversation": "lines"},
    "mock": {"provider": "mock"},
    "model": {"provider": "openai", "model": "gpt-4o"},
    "azure": {"provider": "azure", "model": "gpt-4o", "endpoint": "desk"},
    "codex": {"provider": "codex"},
}
"""What a description of each kind needs at least."""
RESPONSE: Final[Mapping[str, tuple[Json, ...]]] = {
    "responseFormat": ("text", "ndjson"),
    "events": ({"text": "delta"}, {"text": "piece"}),
    "failure": (["error"], ["problem"]),
    "responsePath": ("extra", ["extra", "more"]),
    "toolCallsPath": ("started", "ended"),
    "noToolCallsPath": ("response", "extra"),
    "nameField": ("tool", "function"),
    "argsField": ("args", "hint"),
    "successField": ("ok", "done"),
    "errorField": ("error", "problem"),
    "durationField": ("took", "ms"),
    "resultField": ("gave", "output"),
    "idField": ("call", ["call", "key"]),
    "toolResults": ({"path": "results", "idField": "id"}, {"path": "results", "idField": "call"}),
}
"""Where a response of JSON has its parts, of every kind of target that returns one."""
VALUES: Final[Mapping[str, Mapping[str, tuple[Json, ...]]]] = {
    "http": {
        "url": ("http://agent.test/other", "http://elsewhere.test/chat"),  # a query there is the setting `query`
        "agentProtocol": ("openai-chat", "langserve"),
        "method": ("PUT", "PATCH"),
        "headers": ({"x-mode": "a"}, {"x-mode": "b"}, {"x-mode": "${{ MODE }}"}),
        "requestTemplate": ({"message": "{{message}}", "hint": "a"}, {"message": "{{message}}", "hint": "b"}),
        "form": ({"message": "{{message}}", "mode": "a"}, {"message": "{{message}}", "mode": "b"}),
        "requestFields": ({"mode": "a"}, {"mode": "b"}),
        "query": ({"mode": "a"}, {"mode": "b"}),
        "messageTemplate": ("{{role}}: {{content}}", "{{role}} said {{content}}"),
        "session": ("case",),
        "sessionPath": ("session", ["session", "thread"]),
        "sessionHeader": ("X-Session", "X-Thread"),
        "sessionCookie": ("sid", "chat"),
        "taskPath": ("task", {"where": "state=open", "path": "task"}),
        "toolCallsScope": ("conversation",),
        **RESPONSE,
        "poll": ({"idPath": "job"}, {"idPath": "id"}),
        "providerBatching": (True,),
    },
    "cli": {
        "commandTemplate": ("python3 agent.py --kind {SESSION} {PROMPT}", "python3 other.py {SESSION} {PROMPT}"),
        "resumeCommand": ("python3 agent.py --go-on {SESSION} {PROMPT}", "python3 other.py {SESSION} {PROMPT_FILE}"),
        "agentProtocol": ("claude-code", "gemini-cli"),
        **RESPONSE,
        "filesFormat": ("@{path}", "{basename}"),
        "cwd": ("programs", "."),
        "timeoutSeconds": (4, 5),
        "providerBatching": (True,),
        "batchSize": (2, 3),
        "passEnv": (["MODE"], ["MODE", "OTHER"]),
        "env": ({"KIND": "a"}, {"KIND": "b"}),
    },
    "lines": {
        "commandTemplate": ("python3 agent.py --kind", "python3 other.py"),
        "conversationTimeoutSeconds": (40, 50),
        "timeoutSeconds": (4, 5),
    },
    "mock": {
        "response": ("ok", "other"),
        "responses": ({"a1": "ok"}, {"a1": "other"}, {"a1": ["ok", "other"]}),
        "toolCalls": ([{"tool": "pay"}], [{"tool": "refund"}]),
        "outputMessages": ([{"role": "assistant", "content": "ok"}], [{"role": "assistant", "content": "other"}]),
        "trace": ([{"type": "tool_call", "name": "pay"}], []),
        "error": ("gone", "late"),
        "delayMs": (1, 2),
        "delayMinMs": (1, 2),
        "delayMaxMs": (3, 4),
        "providerBatching": (True,),
    },
    "model": {
        "model": ("gpt-4o-mini", "gpt-5"),
        "baseUrl": ("http://models.test/v1", "http://elsewhere.test/v1"),
        "apiKey": ("${{ MODELS_KEY }}", "${{ OTHER_KEY }}"),
        "temperature": (0.5, 1),
        "maxOutputTokens": (100, 200),
        "structuredOutput": (False,),
        "systemPromptPath": ("prompts/system.md", "prompts/other.md"),
        "providerBatching": (True,),
    },
    "azure": {
        "endpoint": ("https://desk.test", "https://other.test"),
        "apiVersion": ("2024-02-01", "2024-06-01"),
        "temperature": (0.5, 1),
    },
    "codex": {
        "executable": ("codex-next", "programs/codex"),
        "args": (["--fast"], ["--slow"]),
        "cwd": ("programs", "."),
        "timeoutSeconds": (4, 5),
        "systemPrompt": ("Be good.", "Be bad."),
        "providerBatching": (True,),
        "passEnv": (["MODE"], ["MODE", "OTHER"]),
        "env": ({"KIND": "a"}, {"KIND": "b"}),
    },
}
"""For each kind every setting that can change a result, with values other than its default."""
OF_THE_AGENT: Final = frozenset(
    {
        *(("http", "url"), ("cli", "commandTemplate"), ("cli", "resumeCommand"), ("lines", "commandTemplate")),
        *(("model", "model"), ("model", "temperature"), ("model", "maxOutputTokens"), ("model", "systemPromptPath")),
        *(("azure", "temperature"), ("codex", "executable"), ("codex", "args"), ("codex", "systemPrompt")),
    }
)
"""What describes the agent itself, or where it is: said, and no reason to block."""
MODELS: Final = frozenset({"model", "azure"})
AGENT_IDS: Final = frozenset({"sessionPath", "sessionHeader", "sessionCookie"})
"""Places of an id that the agent makes."""
EXCLUDES: Final[Mapping[str, frozenset[str]]] = {
    "requestTemplate": frozenset({"form"}),
    "form": frozenset({"requestTemplate", "requestFields", "agentProtocol"}),
    "requestFields": frozenset({"form"}),
    "agentProtocol": frozenset({"form", "providerBatching", *RESPONSE}),
    "session": AGENT_IDS,
    **{name: frozenset({"session", "responseFormat", *AGENT_IDS} - {name}) for name in AGENT_IDS},
    "providerBatching": frozenset({"agentProtocol", "responseFormat", "events", "resumeCommand"}),
    "resumeCommand": frozenset({"providerBatching"}),
    **{name: frozenset({"agentProtocol"}) for name in RESPONSE},
    "events": frozenset({"agentProtocol", "providerBatching"}),
    "responseFormat": frozenset({"agentProtocol", "providerBatching", "sessionPath"}),
}
"""Settings that cannot stand beside each other."""
WITHOUT_EFFECT: Final[Mapping[str, Mapping[str, Json]]] = {
    "http": {"workers": 3, "maxRetries": 1, "initialDelayMs": 5, "waitFor": 1, "maxResponseBytes": 5000}
    | {"backoffFactor": 3, "maxDelayMs": 9, "retryableStatusCodes": [500], "healthcheck": "http://agent.test/up"}
    | {"modelPath": "by", "tracePath": "trace", "traceHeader": "X-Trace", "traceparent": True},
    "cli": {"workers": 3, "maxRetries": 1, "verbose": True, "keepTempFiles": True, "modelPath": "by"}
    | {"tracePath": "trace"},
    "lines": {"workers": 3, "maxRetries": 1, "verbose": True, "keepTempFiles": True, "modelPath": "by"}
    | {"tracePath": "trace"},
    "mock": {"workers": 3},
    "model": {"workers": 3, "maxRetries": 1, "initialDelayMs": 5, "maxDelayMs": 9, "backoffFactor": 3}
    | {"retryableStatusCodes": [500]},
    "azure": {"workers": 3, "maxRetries": 1, "maxDelayMs": 9},
    "codex": {"workers": 3, "logFormat": "json", "logDir": "logs"},
}
SPELLED_OUT: Final[Mapping[str, Mapping[str, Json]]] = {
    "http": {"method": "post", "responsePath": ["response"], "headers": {}, "query": {}, "failure": [], "poll": None}
    | {"sessionPath": [], "sessionHeader": None, "taskPath": [], "toolCallsScope": "turn"}
    | {"session": "execution", "requestTemplate": None, "form": None, "idField": "id", "toolCallsPath": "toolCalls"},
    "cli": {"env": {}, "passEnv": [], "cwd": None, "filesFormat": "{path}", "batchSize": None, "resumeCommand": None},
    "lines": {"env": {}, "cwd": None, "conversationTimeoutSeconds": None, "responseFormat": "json"},
    "mock": {"responses": {}, "toolCalls": [], "delayMs": 0.0, "error": None, "delayMinMs": None},
    "model": {"baseUrl": None, "structuredOutput": True, "temperature": None, "systemPromptPath": None},
    "azure": {"temperature": None, "baseUrl": None, "maxOutputTokens": None},
    "codex": {"args": [], "env": {}, "executable": "codex", "systemPrompt": None},
}
"""Settings at their defaults, in other ways to write these."""
OF_THE_RUN: Final[Mapping[str, tuple[Json, ...]]] = {
    "timeoutMs": (5000, 6000),
    "passEnv": (["MODE"], ["OTHER"]),
    "toolRegistryPath": ("tools.json", "other-tools.json"),
    "strict": (True,),
    "rerunInterval": ("1s", "2s"),
    "rerunCommand": ("again {ids}", "anew {ids}"),
    "graderFiles": (["LICENSE"], ["NOTICE"]),
    "measures": (["agent.py"], {"evals/**": ["agent.py", "!LICENSE"]}),
}
"""The same of settings of the run that are compared by their own value."""
RUN_WITHOUT_EFFECT: Final[Mapping[str, Json]] = {
    "concurrency": 3,
    "waitFor": 1,
    "maxRetries": 1,
    "requestsPerMinute": 600,
    "maxCostUsd": 5,
    "rerunBudget": "5m",
    "warmUp": 10,
    "store": "baselines",
    "storeBranch": "trunk",
    "storeWrite": True,
    "reuse": True,
    "rubric": "always",
    "recording": "record",
    "redact": ["x{9}"],
    "outputDir": "out",
    "reports": ["junit=out/junit.xml"],
    "junitFailures": "all",
    "traceUrl": "https://traces.example/{{traceId}}",
    "exports": ["agentv=out/agentv.jsonl"],
    "resultsEncoding": "cp1252",
}
"""Settings of the run that cannot change a result."""
TEXTS: Final[Mapping[str, str]] = {
    "agent.py": "print('ok')\n",
    "other.py": "print('ok')\n",
    "judge.py": "import manner\nprint('{\"score\": 1}')\n",
    "manner.py": "STRICT = 1\n",
    "programs/codex": "#!/bin/sh\n",
    "prompts/system.md": "Be good.\nBe brief.\n",
    "prompts/other.md": "Be kind.\n",
    "evals/grade.py": "import rules\nprint('{\"score\": 1}')\n",
    "evals/rules.py": "WORDS = open('words.txt').read()\n",
    "evals/words.txt": "bad\nworse\n",
    "evals/rubric.md": "Grade {{ candidate_answer }}.\nBe fair.\n",
    "evals/both.py": "print('{\"score\": 1}')\n",
    "snapshot.json": '{"now": "ok"}',
    "seeds.json": '{"word": "ok"}',
}
GRADERS: Final[Mapping[str, tuple[Mapping[str, Json], tuple[str, ...]]]] = {
    "program": (
        {"name": "g", "type": "code_judge", "script": "cd . && python3 grade.py"},
        ("evals/words.txt", "evals/rules.py", "evals/grade.py"),
    ),
    "prompt": ({"name": "p", "type": "llm_judge", "judge_target": "j1", "prompt": "rubric.md"}, ("evals/rubric.md",)),
    "judge": ({"name": "l", "type": "llm_judge", "judge_target": "j2"}, ()),
    "composite": (
        {
            "name": "c",
            "type": "composite",
            "evaluators": [{"name": "m", "type": "llm_judge", "judge_target": "j1"}],
            "aggregator": {"type": "code_judge", "path": ["python3", "both.py"]},
        },
        ("evals/both.py",),
    ),
}
"""What grades a case, and the files in which that stands. `j1` and `j2` are judges of the list."""
JUDGES_OF: Final = {"program": (), "prompt": ("j1",), "judge": ("j2",), "composite": ("j1",)}
TOOLS: Final = [{"name": "pay", "description": "Pays.", "version": "1.0.0", "parameters": {"type": "object"}}]
AGENT: Final = {"name": "A", "model": "gpt-5-mini", "instructions": "be brief", "tools": ["readFile", "writeFile"]}
ENVIRONMENT: Final = {
    "MODE": "mode-one",
    "OTHER": "mode-two",
    "MODELS_KEY": "models-key-1",
    "OTHER_KEY": "other-key-1",
    "OPENAI_API_KEY": "openai-key-1",
    "AZURE_OPENAI_API_KEY": "azure-key-1",
} | {
    "OPENAI_API_KEY": "openai-key-1",
    "AZURE_OPENAI_API_KEY": "azure-key-1",
}


@dataclass(frozen=True, repr=False)
class SetUp:
    """Files by their paths (a text, or what is written as JSON), and variables."""

    files: Files
    environment: Mapping[str, str]
    kinds: Mapping[str, str]
    """Of every target and judge the kind, by name."""
    graders: Mapping[str, str | None]
    """Of every case of the AgentV file what grades it, by id."""

    def __repr__(self) -> str:
        return json.dumps({name: content for name, content in self.files.items() if content != TEXTS.get(name)})

    @property
    def targets(self) -> dict[str, dict[str, Json]]:
        """The descriptions of targets and judges, by name."""
        return {one["name"]: one for one in self.files["targets.yaml"]["targets"]}

    @property
    def asked(self) -> dict[str, str]:
        """The target of every case, by the case's id."""
        found = {one["id"]: one["execution"]["target"] for one in self.files["evals/a.eval.yaml"]["evalcases"]}
        found |= {one["id"]: "default" for one in self.files["evals/b.golden.json"]}
        return found | dict.fromkeys(self.of_suite, "openai:gpt-5-mini")

    @property
    def of_suite(self) -> list[str]:
        """The ids of the cases that work in one folder, in order."""
        return [one["id"] for one in self.files["evals/s.json"]["cases"]] if "evals/s.json" in self.files else []

    def judged_by(self, judge: str) -> frozenset[str]:
        """The ids of the cases that this judge grades."""
        return frozenset(case for case, how in self.graders.items() if judge in (JUDGES_OF[how] if how else ("j0",)))

    def asked_of(self, target: str) -> frozenset[str]:
        """The ids of the cases that this target is asked."""
        return frozenset(case for case, name in self.asked.items() if name == target)

    def with_target(self, drawn: tuple[str, dict[str, Json]]) -> SetUp:
        """The same with this target, of this kind, in the place of the one of its name."""
        kind, target = drawn
        listed = [target if one["name"] == target["name"] else one for one in self.files["targets.yaml"]["targets"]]
        files = self.files | {"targets.yaml": {"targets": listed}}
        return replace(self, files=files, kinds={**self.kinds, target["name"]: kind})

    def changed(self, change: Callable[[SetUp], object], **environment: str) -> SetUp:
        """Another one, in which `change` has changed the files."""
        other = replace(self, files=copy.deepcopy(self.files), environment={**self.environment, **environment})
        change(other)
        return other

    def write(self, folder: Path, dump: Callable[[Json], str] = json.dumps) -> None:
        """Put the files there, and no others."""
        shutil.rmtree(folder, ignore_errors=True)
        for name, content in self.files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes((content if isinstance(content, str) else dump(content)).encode())

    def prepare(self, folder: Path, dump: Callable[[Json], str] = json.dumps) -> RunPlan:
        """The run as it is prepared, in this folder, which then holds these files and no others."""
        self.write(folder, dump)
        config = load_config({}, self.environment, folder / "eval-gate.json")
        # nobody is asked, and to read all certificates for each model is most of the time
        bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        with mock.patch.object(ssl, "create_default_context", return_value=bare):
            return asyncio.run(build_run_plan(config, Selection(), RunContext(folder, self.environment)))


@dataclass(frozen=True)
class Mutation:
    """A set-up that became another one, in one source of the fingerprint."""

    before: SetUp
    name: str
    after: SetUp
    concerns: frozenset[str]
    """The ids of the cases that are measured with it, of those that both have."""
    blocks: bool = True
    said: tuple[str, str] | None = None
    """Whose setting has another value, and which: what the gate and `--resume` have to name."""
    asked_anew: frozenset[str] = field(default=frozenset())
    """Cases to which a model's recorded response must not be taken."""


def subset(kind: str, most: int = 4) -> st.SearchStrategy[dict[str, Json]]:
    """Some settings of a target of this kind that go together."""

    def joined(drawn: Iterable[tuple[str, Json]]) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for name, value in drawn:
            if not EXCLUDES.get(name, frozenset()) & found.keys():
                found[name] = value
        return found

    one = st.sampled_from([(name, value) for name, values in VALUES[kind].items() for value in values])
    return st.lists(one, max_size=most).map(joined)


def described(name: str, *kinds: str) -> st.SearchStrategy[tuple[str, dict[str, Json]]]:
    """A target of this name and one of these kinds: its kind, and its description."""
    return st.sampled_from(kinds).flatmap(
        lambda kind: subset(kind).map(lambda settings: (kind, {"name": name, **LEAST[kind], **settings}))
    )


@st.composite
def setups(draw: st.DrawFn) -> SetUp:
    """A whole set-up: four targets and three judges, an AgentV file, a golden one, perhaps an Agent Evals suite."""
    drawn = {name: draw(described(name, *VALUES)) for name in ("default", "t1", "t2")}
    drawn["t3"] = draw(described("t3", "model"))
    drawn |= {name: draw(described(name, "mock", "cli", "http", "model", "codex")) for name in ("j0", "j1", "j2")}
    graders = {f"a{number}": draw(st.sampled_from([*GRADERS, None])) for number in range(draw(st.integers(2, 4)))}
    cases = []
    for place, (case, how) in enumerate(graders.items()):
        target = "t3" if place == 0 else draw(st.sampled_from(["default", "t1", "t2", "t3"]))
        execution: dict[str, Json] = {"target": target}
        if how:
            execution["evaluators"] = [copy.deepcopy(GRADERS[how][0])]
        message = {"role": "user", "content": f"hi {case}"}
        cases.append({"id": case, "expected_outcome": "ok", "input_messages": [message], "execution": execution})
    golden = [
        {"id": "g0", "input": {"message": "hi"}, "expect": {"responseContains": ["ok"], "maxLatencyMs": 5000}},
        {"id": "g1", "input": {"message": "seeds"}, "expect": {"responseContains": ["{{seed:word}}"]}},
        {"id": "g2", "input": {"message": "now"}, "expect": {"responseContains": ["{{snapshot:now}}"]}},
    ]
    config: dict[str, Json] = {"evals": ["evals"], "judge": "j0", "seedManifestPath": "seeds.json"}
    config |= {"snapshotPath": "snapshot.json", "rubric": "never"}
    config |= dict(draw(st.lists(st.sampled_from(run_settings()), max_size=3)))
    if draw(st.booleans()):
        config["recording"] = draw(st.sampled_from(["off", "auto", "replay"]))
    files: Files = {
        **TEXTS,
        "tools.json": TOOLS,
        "other-tools.json": [TOOLS[0] | {"description": "Pays back."}],
        "targets.yaml": {"targets": [one for _, one in drawn.values()]},
        "evals/a.eval.yaml": {"evalcases": cases},
        "evals/b.golden.json": golden,
        "eval-gate.json": config,
    }
    if draw(st.booleans()):
        files["evals/s.json"] = {"name": "s", "agent": dict(AGENT), "cases": [suite_case(f"s{n}") for n in range(3)]}
    return SetUp(files, ENVIRONMENT, {name: kind for name, (kind, _) in drawn.items()}, graders)


def suite_case(case: str) -> dict[str, Json]:
    """A case of an Agent Evals suite."""
    return {"id": case, "name": "n", "prompt": f"do {case}", "assertions": [{"type": "contains", "value": "ok"}]}


def run_settings() -> list[tuple[str, Json]]:
    """Every setting of the run that is compared by its own value, with each of its values."""
    return [(name, value) for name, values in OF_THE_RUN.items() for value in values]


def record_of(plan: RunPlan) -> RunResult:
    """The record of this run where every case has passed."""
    trials = FinishedTrials()
    for case in plan.list_runnable_cases():
        done = TrialRecord(eval_file=case.suite, case_id=case.id, trial=0, fingerprint="", status=Status.PASSED)
        trials.add(replace(done, score=1.0, assertions_run=1), JournalLine(0, 0, 0))
    return build_run_result(
        plan, RunProgress(trials, None, (None, None), (), held_back=False, rerun_ends={}, base_agent_trials={}), 1.0
    )


def recorded_by(plan: RunPlan) -> Mapping[str, tuple[str, ...]]:
    """By what responses of models are recorded: of every case of a model the keys of its requests, by its id."""
    found: dict[str, tuple[str, ...]] = {}
    keys: list[str] = []

    def find(key: str) -> ModelTurn:
        keys.append(key)
        return ModelTurn(text="ok")

    assert plan.recording is not None
    plan.recording.find = find  # type: ignore[method-assign]
    for case in plan.list_runnable_cases():
        target = plan.get_target(case)
        if target.takes_stubs:
            keys.clear()
            asyncio.run(target.respond(_request(case)))
            found[case.id] = tuple(keys)
    return found


def _request(case: EvalCase) -> Request:
    return Request(case.id, case.messages, eval_file=case.suite, brief=case.brief, agent=case.agent)
