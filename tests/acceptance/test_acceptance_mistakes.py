"""A new user's mistakes in files, settings, options and names of results: what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eval_gate.errors import PAGES
from tests.support.mistakes import (
    CONFIG_HINT,
    EVALS_HINT,
    GOOD,
    SUITE,
    TARGETS_HINT,
    Mistake,
    Place,
    case,
    check_told,
    make_mistake,
    replying,
    suite,
    to_step,
)

RUN = "run --agent-endpoint {url}"
NO_EVALS = "name files, folders or globs: "
RESULTS = f"{PAGES}/other-tools.md shows what each format needs"
REFERENCE = "give a run id of evals/results, a results file, a run folder, a folder of runs, a zip, or latest"


def evals(text: str | bytes, message: str, where: str, what_to_do: str = "") -> Mistake:
    """A mistake in the eval file itself, which keeps everything from running."""
    return Mistake(RUN, message, where, what_to_do, EVALS_HINT, files={SUITE: text})


def config(text: str, message: str, where: str, what_to_do: str = "") -> Mistake:
    """A mistake in the configuration file."""
    return Mistake(RUN, message, where, what_to_do, CONFIG_HINT, files=GOOD | {"eval-gate.yaml": text})


def target(line: str, message: str, where: str, next_step: str = TARGETS_HINT) -> Mistake:
    """A mistake in the description of a target, of which this is the last line."""
    described = f"targets:\n  - name: bot\n    provider: http\n    url: http://127.0.0.1:1/chat\n    {line}\n"
    return Mistake("run --target bot", message, where, next_step=next_step, files=GOOD | {"targets.yaml": described})


def results(text: str, message: str, where: str = "r.json", next_step: str = RESULTS, code: int = 2) -> Mistake:
    """A mistake in what another tool wrote."""
    return Mistake("check r.json", message, where, next_step=next_step, code=code, files={"r.json": text})


EVAL_FILES = {
    "comma too many": evals('[\n{"id": "a"},\n]', "trailing comma", f"{SUITE}:2", "remove it in line 2"),
    "key twice": evals('[\n{"id": "a", "id": "b"}\n]', 'the key "id" occurs twice in one object', f"{SUITE}:2"),
    "text in place of a list": evals(
        suite(case(expect={"responseContains": "ok"})),
        'expected a list, got text "ok"',
        f"{SUITE}:2: [0].expect.responseContains",
    ),
    "misspelt key of a case": evals(
        suite({"id": "gs-1", "inputs": {"message": "x"}, "expect": {}}),
        'is missing in the case "gs-1"',
        f"{SUITE}:2: [0].input",
        '"inputs" is not known here (did you mean "input"?)',
    ),
    "no id": evals(suite({"input": {"message": "x"}, "expect": {}}), "is missing", f"{SUITE}:2: [0].id"),
    "id twice": evals(
        suite(case(), case()), 'the case in line 2 already has the id "gs-1"', f"{SUITE}:3: [1].id", "line 2"
    ),
    "nothing is expected": evals(
        suite({"id": "gs-1", "input": {"message": "x"}}), "needs `expect` (or `rubric`)", f"{SUITE}:2", '"gs-1"'
    ),
    "two ways to check the tools": evals(
        suite(case(expect={"toolsCalled": ["a"], "toolsAcceptable": [["a"]]})),
        "toolsCalled and toolsAcceptable exclude each other",
        f"{SUITE}:2: [0].expect",
        "keep one",
    ),
    "empty file": evals("", "the file is empty", f"{SUITE}:1"),
    "saved as UTF-16": evals(suite(case()).encode("utf-16"), "not UTF-8", f"{SUITE}:1", "save the file as UTF-8"),
    "tab in YAML": Mistake(
        RUN,
        "found a tab character",
        "evals/a.golden.yaml:2",
        next_step=EVALS_HINT,
        files={"evals/a.golden.yaml": "- id: gs-1\n\tinput: {message: x}\n"},
    ),
    "role nobody has": Mistake(
        RUN,
        'got text "usr"',
        "evals/a.eval.yaml:5: evalcases[0].input_messages[0].role",
        '(did you mean "user"?)',
        EVALS_HINT,
        files={
            "evals/a.eval.yaml": "evalcases:\n  - id: a\n    expected_outcome: x\n    input_messages:\n"
            "      - {role: usr, content: hi}\n"
        },
    ),
    "folder without eval files": Mistake(
        RUN, 'no eval files in the folder "evals"', "evals", "eval-gate init", NO_EVALS, files={"evals/.keep": ""}
    ),
    "folder that does not exist": Mistake(f"{RUN} evls", 'there is no "evls"', "", 'mean "evals"?', NO_EVALS),
    "extension that nobody reads": Mistake(
        RUN,
        '"a.golden.txt" is not read',
        "evals",
        ".json, .jsonl, .yaml, .yml",
        NO_EVALS,
        files={"evals/a.golden.txt": "[]"},
    ),
    "promptfoo's configuration": Mistake(
        RUN,
        "is a promptfoo configuration",
        "evals/p.yaml:1",
        "run it with promptfoo (`promptfoo eval -c evals/p.yaml -o out.json`)",
        "name a file of JSON, YAML or JSON lines with a list `cases`",
        files={"evals/p.yaml": "prompts: [a]\nproviders: [openai:gpt-4o]\ntests: []\n"},
    ),
    "misspelt assertion under strict": Mistake(
        f"{RUN} --strict",
        'unknown assertion "toolCalled"',
        f"{SUITE}:2: [0].expect.toolCalled",
        '(did you mean "toolsCalled"?)',
        EVALS_HINT,
        files={SUITE: suite(case(expect={"responseContains": ["ok"], "toolCalled": ["x"]}))},
    ),
    "misspelt assertion beside a good one": Mistake(
        RUN,
        'unknown assertion "toolCalled"',
        f"{SUITE}: gs-1",
        '(did you mean "toolsCalled"?): it is not checked',
        code=0,
        files={SUITE: suite(case(expect={"responseContains": ["ok"], "toolCalled": ["x"]}))},
    ),
    "token of an unknown source": Mistake(
        RUN,
        "{{seeds:city}} has an unknown source and is used literally",
        f"{SUITE}: gs-1",
        "(sources: seed, snapshot)",
        "Fix the failing cases or their evals",
        code=1,
        files={SUITE: suite(case(expect={"responseContains": ["{{seeds:city}}"]}))},
    ),
    "seed value without a manifest": Mistake(
        RUN,
        "no seed manifest found",
        "evals/seed-manifest.json",
        "assertions with them are skipped",
        code=0,
        files={SUITE: suite(case(expect={"responseContains": ["{{seed:city}}"]}))},
    ),
    "seed manifest that does not exist": Mistake(
        f"{RUN} --seed-manifest seeds.json", "does not exist", "seeds.json", "", "create it, or remove --seed-manifest"
    ),
}
SETTINGS = {
    "misspelt key": config("\nconcurency: 3\n", "unknown key", "eval-gate.yaml:2: concurency", 'mean "concurrency"?'),
    "key of another spelling": config("timeout-ms: 1\n", "unknown key", "eval-gate.yaml:1: timeout-ms", '"timeoutMs"?'),
    "misspelt word in place of a list": config(
        "failOn: regresions\n", '"regresions" is not known', "eval-gate.yaml:1: failOn", 'mean "regressions"?'
    ),
    "text in place of a list": config(
        "evals: evals\n", "expected a list", "eval-gate.yaml:1: evals", 'write ["evals"]'
    ),
    "word in place of a number": config(
        "timeoutMs: fast\n", 'expected a whole number, got text "fast"', "eval-gate.yaml:1: timeoutMs"
    ),
    "percent in place of a share": config(
        "minPassRate: 95\n", "must be <= 1.0, got the number 95", "eval-gate.yaml:1: minPassRate"
    ),
    "list never closed": Mistake(
        RUN,
        "did not find expected ',' or ']'",
        "eval-gate.yaml:2",
        next_step="correct the file",
        files=GOOD | {"eval-gate.yaml": "evals: [evals\n"},
    ),
    "two configuration files": Mistake(
        RUN,
        "eval-gate.json is not read",
        "eval-gate.yaml is beside it",
        "keep one of them",
        code=0,
        files=GOOD | {"eval-gate.yaml": "trials: 1\n", "eval-gate.json": '{"trials": 2}'},
    ),
    "misspelt variable": Mistake(
        RUN,
        "unknown variable",
        "EVAL_GATE_TIMEOUTMS",
        'mean "EVAL_GATE_TIMEOUT_MS"?',
        CONFIG_HINT,
        environment={"EVAL_GATE_TIMEOUTMS": "1"},
    ),
    "configuration that does not exist": Mistake(
        f"{RUN} --config gate.yaml",
        "cannot be read: No such file",
        "gate.yaml",
        "",
        "name an existing file with --config",
    ),
    "no target": Mistake("run", "no target to evaluate", "", "the input `agent-endpoint`", "use --agent-endpoint http"),
    "endpoint without a scheme": Mistake(
        "run --agent-endpoint localhost:8000/chat",
        "does not begin with http:// or https://",
        "--agent-endpoint",
        next_step="write a URL such as http://localhost:8000/chat",
    ),
    "endpoint and target": Mistake(
        f"{RUN} --target bot",
        "--agent-endpoint and --target are both given",
        next_step="keep one of agentEndpoint, agentFunction, target and model",
    ),
    "misspelt target": Mistake(
        "run --target bt",
        'unknown target "bt"',
        "targets.yaml",
        '(did you mean "bot"?)',
        "use --target with one of bot",
        files=GOOD | {"targets.yaml": "targets:\n  - {name: bot, provider: mock, response: ok}\n"},
    ),
    "target without a list": Mistake(
        "run --target bot",
        'the target "bot" is not described',
        "no targets.yaml exists",
        "",
        "use --agent-endpoint http",
    ),
    "list of targets that does not exist": Mistake(
        "run --target bot --targets t.yaml", "cannot be read", "t.yaml", "", "name an existing file with --targets"
    ),
    "misspelt setting of a target": target("timout: 5", "unknown setting", "targets.yaml:5: targets[bot].timout"),
    "secret of a target that is not set": target(
        "headers: {Authorization: 'Bearer ${{ AGENT_TOKEN }}'}",
        "the variable AGENT_TOKEN is not set",
        "targets.yaml:5: targets[bot].headers.Authorization",
        "export each variable; in a workflow, set it below the step's `env:`, from a secret",
    ),
    "command that does not get the prompt": Mistake(
        "run --target bot",
        "the command has no {PROMPT} or {PROMPT_FILE}",
        "target bot",
        "it does not get the prompt of the case",
        code=0,
        files=GOOD | {"targets.yaml": "targets:\n  - {name: bot, provider: cli, command_template: echo ok}\n"},
    ),
    "misspelt provider": Mistake(
        "run --provider opnai --model gpt-4o", 'got text "opnai"', "--provider", 'mean "openai"?', "use --provider with"
    ),
    "model without a provider": Mistake(
        "run --model gpt-4o", "is not of the form provider:name", "--model", "groq:llama", "use --provider with --model"
    ),
    "model without a key": Mistake(
        "run --provider openai --model gpt-4o",
        "no key for openai: neither OPENAI_API_KEY nor the target's apiKey is set",
        next_step="set OPENAI_API_KEY from a secret",
    ),
    "judge that does not exist": Mistake(
        f"{RUN} --judge gpt",
        'unknown judge "gpt"',
        next_step="name a model as provider:model, or describe the target with --targets",
        files={
            "evals/plans.rubric.json": suite(
                case(expect={}, rubric=[{"dimension": "tone", "maxScore": 1, "criteria": "1: friendly"}])
            )
        },
    ),
    "snapshot without a source": Mistake(
        RUN,
        "no source of the snapshot is set",
        "snapshotEnabled",
        next_step="set snapshotPath (a file or URL) or snapshotCommand",
        files=GOOD | {"eval-gate.yaml": "snapshotEnabled: true\n"},
    ),
}
BASELINES = {
    "path that does not exist": Mistake(f"{RUN} --baseline old.json", "not found", '"old.json"', "", REFERENCE),
    "eval file in place of a result": Mistake(
        f"{RUN} --baseline {SUITE}", "is not a valid run result", SUITE, "", "give another result"
    ),
    "text in place of a result": Mistake(
        f"{RUN} --baseline README.md",
        "expecting value",
        "README.md:1",
        next_step="give another result",
        files=GOOD | {"README.md": "hello"},
    ),
    "folder without runs": Mistake(
        f"{RUN} --baseline old",
        "contains no run",
        "old",
        "",
        "a run folder contains run.json",
        files=GOOD | {"old/a": ""},
    ),
    "run that does not exist": Mistake(f"{RUN} --baseline 4711", "not found", '"4711"', "", REFERENCE, first=RUN),
    "run that is the baseline itself": Mistake(
        "compare run.json run.json",
        "cannot be its own baseline",
        next_step="name another run, a folder with other runs, or `latest`",
        first=f"{RUN} --report json=run.json",
    ),
    "no run yet": Mistake(
        "report latest --format md", "no run in evals/results yet", "", "", "start one with `eval-gate"
    ),
    "run to continue that does not exist": Mistake(
        f"{RUN} --resume 4711", "not found in evals/results", 'run "4711"', "", "`evals/results/latest.json` names"
    ),
}
RESULT_FILES = {
    "empty": results("", "is empty"),
    "of no known format": results(
        '{"a": 1}', 'it looks like a mapping in JSON with "a"', next_step="name the format with --results-format"
    ),
    "an eval file": results(GOOD[SUITE], '"id", "input", "expect"', next_step="name the format with --results-format"),
    "a web page": results("<html><body>x</body></html>", "is not JUnit: it begins with <html>"),
    "without cases": results("<testsuite></testsuite>", "has no cases"),
    "cut off": results(
        '<testsuite><testcase name="a"/>', "ends in the middle", "r.json:1", "run it again; missing cases", code=3
    ),
    "unknown status": results(
        '{"id": "a", "status": "ok"}', "expected 'passed', 'failed', 'error' or 'skipped'", "r.json:1: status"
    ),
    "score without a rule": results(
        '{"id": "a", "score": 0.7}', '"a" has scores but no verdict', "r.json:1", "--score 'sc"
    ),
    "not written": Mistake("check r.json", "does not exist", "r.json", next_step="run it again", code=3, files={}),
    "compared with itself": Mistake(
        "check r.json --baseline r.json",
        "is the result that is checked",
        "r.json",
        next_step="keep the result of the baseline in a file of its own",
        files={"r.json": '{"id": "a", "status": "passed"}'},
    ),
    "misspelt format": Mistake(
        "check r.json --results-format promptfo",
        'got text "promptfo"',
        "--results-format",
        'mean "promptfoo"?',
        CONFIG_HINT,
    ),
}
OPTIONS = {
    "misspelt command": Mistake("rnu", "No such command 'rnu'", "", "Did you mean 'run'?"),
    "misspelt option": Mistake("run --agent-endpont x", "No such option: --agent-endpont", "", "--agent-endpoint"),
    "option without a command": Mistake(
        "--agent-endpoint x", "--agent-endpoint belongs behind a command", "", "eval-gate run"
    ),
    "misspelt rule": Mistake(
        f"{RUN} --fail-on regresion", '"regresion" is not known', "--fail-on", 'mean "regressions"?', CONFIG_HINT
    ),
    "no executions": Mistake(f"{RUN} --trials 0", "must be >= 1, got the number 0", "--trials", "", CONFIG_HINT),
    "shard of too few": Mistake(f"{RUN} --shard 3/2", '"3/2" is not a part', "", "such as 2/4", "write --shard I/N"),
    "misspelt case": Mistake(
        f"{RUN} --case gs-01", "none of 3 matches gs-01", "", 'mean "gs-1"?', "list the cases with `eval-gate validate"
    ),
    "tag that no case has": Mistake(
        f"{RUN} --tag smoke", "none of 3 matches smoke", "", "", "list the cases with `eval-gate validate --verbose`"
    ),
    "misspelt tier": Mistake(
        f"{RUN} --tier goldn", '"goldn" is not known', "--tier", 'mean "golden"?', "allowed: golden"
    ),
    "report of no format": Mistake(
        f"{RUN} --report pdf", '"pdf" is not known', "--report", "one of md, html", CONFIG_HINT
    ),
    "nothing to run again": Mistake(
        f"{RUN} --failing", "no case failed", "evals/results", "", "run without", first=RUN
    ),
    "nothing to draft from": Mistake(
        "draft --agent-endpoint {url}", "nothing to draft from", "", "--from-log", "write one question a line"
    ),
    "drafts into a file that exists": Mistake(
        f"draft q.txt -o {SUITE} --agent-endpoint {{url}}",
        "exists already; nothing was written",
        SUITE,
        next_step="name a new file",
        files=GOOD | {"q.txt": "hi\n"},
    ),
    "folder to begin in that does not exist": Mistake(
        "init nowhere", "does not exist", "nowhere", "", "create the folder, or name another one"
    ),
    "misspelt schema": Mistake("schema confg", 'no schema "confg"', "", 'mean "config"?', "allowed: config"),
    "waiver until a day in the past": Mistake(
        "waive gs-1 --reason known --until 2020-12-10", "is in the past", "--until", "", "correct each place", first=RUN
    ),
    "waiver until no day": Mistake(
        "waive gs-1 --reason known --until tomorrow",
        '"tomorrow" is not a date',
        "--until",
        "a number of days like 14d",
        "correct each place",
        first=RUN,
    ),
    "action on one's own machine": Mistake(
        "action", "runs only in a GitHub workflow", "GITHUB_REPOSITORY", "", "in other CI systems, publish with `--to`"
    ),
}
TABLES = {
    "eval file": EVAL_FILES,
    "setting": SETTINGS,
    "baseline": BASELINES,
    "results": RESULT_FILES,
    "option": OPTIONS,
}
ROWS = {f"{table}: {name}": row for table, rows in TABLES.items() for name, row in rows.items()}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with replying(ROWS) as address:
        yield address


@pytest.mark.parametrize("name", ROWS)
def test_mistake__in_a_file_a_setting_or_an_option__is_told_with_its_place_and_what_to_do(
    tmp_path, server, name
) -> None:
    place = Place(tmp_path, {"url": f"{server}/{to_step(name)}"})
    check_told(ROWS[name], make_mistake(ROWS[name], place), place)
