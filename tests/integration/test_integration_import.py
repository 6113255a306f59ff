"""`eval-gate import promptfoo` as a person uses it: what is written is run, and says what promptfoo said."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

from tests.support.agents import agent
from tests.support.program import gate
from tests.support.promptfoo import CONFIG, TRIED, asked, echo, recorded

LEFT = {
    "equals what is no text": "equals compares the response as JSON, which checks of an eval file cannot do",
    "icontains a final sigma": "upper and lower case of this text depend on neighboring letters",
    "regex that is none": "its regex is not a JavaScript pattern",
    "not-regex that is none but for its brackets": "its regex is not a JavaScript pattern",
    "a template with a filter": "the template {{ greeting | lower }} does more than name a variable",
    "a day as value": "the value of contains is a date without quotes, which promptfoo reads as a point in time",
    "a set of which half is enough": "it passes from a score of 0.5, but a case of an eval file needs all its checks",
    "nothing that counts": "its assertions have no effect",
    "a share": "it passes from a score of 0.5, but a case of an eval file needs all its checks",
    "whatever": "it passes from a score of 0, but a case of an eval file needs all its checks",
    "a program": "javascript is a program, and programs are not run to check a response",
    "is-json": "is-json is not among the checks of an eval file",
    "no assertion": "its assertions have no effect",
    "csv program": "javascript is a program, and programs are not run to check a response",
    "csv json": "is-json is not among the checks of an eval file",
}
"""What cannot be carried over of what was tried, and why."""


@pytest.fixture
def team(tmp_path) -> Path:
    """A folder with promptfoo's configuration of everything that was tried."""
    for file in (CONFIG, TRIED / "more.csv"):
        shutil.copy(file, tmp_path)
    return tmp_path


def write(folder: Path, **config: object) -> Path:
    """A configuration of promptfoo with one prompt, as far as nothing else is said."""
    whole = {"prompts": ["{{question}}"], "providers": ["echo"], **config}
    (folder / "promptfooconfig.yaml").write_text(yaml.safe_dump(whole, sort_keys=False))
    return folder


HOURS = {"description": "hours", "vars": {"question": "When?"}, "assert": [{"type": "contains", "value": "nine"}]}
PROGRAM = {"description": "long", "vars": {"question": "Why?"}, "assert": [{"type": "javascript", "value": "1"}]}
AGENT = {
    "id": "https",
    "label": "the bot",
    "config": {
        "url": "{{env.BOT}}/ask",
        "method": "POST",
        "headers": {"Content-Type": "application/json", "Authorization": "Bearer {{env.BOT_TOKEN}}"},
        "body": {"q": "{{prompt}}"},
        "transformResponse": "(json) => json.data[0].text",
    },
}


@pytest.mark.slow
def test_import__run_on_the_same_answers__says_of_each_case_what_promptfoo_said(team) -> None:
    brought = gate(team, "import", "promptfoo", CONFIG.name)
    assert brought.returncode == 1, brought.stderr
    with agent(echo) as there:
        gate(team, "run", "evals", "--agent-endpoint", there.url, "--concurrency", "8", "--output-dir", "results")
    newest = json.loads((team / "results" / "latest.json").read_text())["runId"]
    run = json.loads((team / "results" / newest / "run.json").read_text())
    names = asked(team / "evals")
    ours: dict[str, dict[str, str]] = defaultdict(dict)
    for case in (case for suite in run["suites"] for case in suite["cases"]):
        description, answer = names[case["id"]]
        ours[description][answer] = case["status"]
    theirs = recorded()
    assert ours == {name: verdicts for name, verdicts in theirs.items() if name not in LEFT}
    assert sum(map(len, ours.values())) > 850


def test_import__what_has_no_counterpart__is_listed_with_place_name_and_reason(team) -> None:
    brought = gate(team, "import", "promptfoo", CONFIG.name, "-v")
    written = CONFIG.read_text().splitlines()
    rows = (TRIED / "more.csv").read_text().splitlines()
    listed: dict[str, str] = {}
    reason = ""
    for line in brought.stdout.partition("cases not converted:\n")[2].partition("\n\n")[0].splitlines():
        if not line.startswith("    "):
            reason = line.strip().rpartition(" (")[0]
            continue
        place, _, name = line.strip().partition(": ")
        file, _, number = place.partition(":")
        own = (written if file == CONFIG.name else rows)[int(number) - 1]
        found = next(one for one in sorted(LEFT, key=len, reverse=True) if name.startswith(one))
        assert found in own
        listed[found] = reason
    assert listed == LEFT
    theirs = sum(map(len, recorded().values()))
    left = sum(len(verdicts) for name, verdicts in recorded().items() if name in LEFT)
    assert brought.stdout.startswith(f"promptfooconfig.yaml: {theirs - left:,} of {theirs:,} cases converted\n")


def test_import__written_files__are_valid_without_a_warning(team) -> None:
    gate(team, "import", "promptfoo", CONFIG.name)
    checked = gate(team, "validate", "evals", "--strict")
    assert (checked.returncode, "0 problems, 0 warnings" in checked.stdout) == (0, True), (
        checked.stdout + checked.stderr
    )


def test_import__everything_has_a_counterpart__exits_0_and_the_agent_is_asked_as_before(tmp_path) -> None:
    write(tmp_path, providers=[AGENT], tests=[HOURS])
    brought = gate(tmp_path, "import", "promptfoo", "promptfooconfig.yaml", "-o", "gate")
    assert (brought.returncode, brought.stderr) == (0, "")
    assert brought.stdout == (
        "promptfooconfig.yaml: 1 of 1 cases converted\n"
        "  wrote gate/promptfoo.golden.json: 1 case\n"
        "  wrote gate/targets.yaml: the-bot\n"
        "\n"
        "Next step: eval-gate run gate\n"
    )

    async def answers(exchange) -> None:
        exchange.answer({"data": [{"text": "At nine."}]})

    with agent(answers) as there:
        base = there.url.removesuffix("/chat")
        ran = gate(tmp_path, "run", "gate", BOT=base, BOT_TOKEN="token-4711")
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert [one.json for one in there.requests] == [{"q": "When?"}]
        assert there.requests[0].header("Authorization") == "Bearer token-4711"
    assert "token-4711" not in (tmp_path / "gate" / "targets.yaml").read_text()


def test_import__a_file_is_there__writes_nothing_until_it_is_forced(tmp_path) -> None:
    write(tmp_path, tests=[HOURS])
    (tmp_path / "evals").mkdir()
    mine = tmp_path / "evals" / "promptfoo.golden.json"
    mine.write_text("mine")
    refused = gate(tmp_path, "import", "promptfoo", "promptfooconfig.yaml")
    assert refused.returncode == 2
    assert "error[import-target-exists]" in refused.stderr
    assert "evals/promptfoo.golden.json: this file exists" in refused.stderr
    assert mine.read_text() == "mine"
    assert gate(tmp_path, "import", "promptfoo", "promptfooconfig.yaml", "--force").returncode == 1
    assert json.loads(mine.read_text())["cases"][0]["id"] == "hours"


def test_import__dry__shows_every_text_and_writes_nothing(tmp_path) -> None:
    write(tmp_path, tests=[HOURS])
    shown = gate(tmp_path, "import", "promptfoo", "promptfooconfig.yaml", "--dry-run")
    assert "would write evals/promptfoo.golden.json: 1 case" in shown.stdout
    assert '"responseContains": [' in shown.stdout
    assert not (tmp_path / "evals").exists()


def test_import__quiet__says_how_much_in_one_line(tmp_path) -> None:
    write(tmp_path, tests=[HOURS, PROGRAM])
    said = gate(tmp_path, "import", "promptfoo", "promptfooconfig.yaml", "-q")
    assert (said.returncode, said.stdout) == (1, "promptfooconfig.yaml: 1 of 2 cases converted\n")


def test_import__nothing_can_be_carried_over__writes_nothing_and_says_why(tmp_path) -> None:
    write(tmp_path, tests=[PROGRAM])
    said = gate(tmp_path, "import", "promptfoo", "promptfooconfig.yaml")
    assert said.returncode == 2
    assert "0 of 1 cases converted\nnothing was written\n" in said.stdout
    assert "promptfooconfig.yaml:6: long" in said.stdout
    assert not (tmp_path / "evals").exists()


def test_import__names_and_reasons_with_signs_for_a_terminal__show_them_as_marks(tmp_path) -> None:
    hidden = "\x1b[2K\u202egreen"
    tests = [{**PROGRAM, "description": f"{hidden} one"}, {**PROGRAM, "assert": [{"type": hidden}]}]
    write(tmp_path, tests=[HOURS, *tests])
    for words in ((), ("--dry-run", "-o", "elsewhere")):
        said = gate(tmp_path, "import", "promptfoo", "promptfooconfig.yaml", *words)
        assert "1 of 3 cases converted" in said.stdout
        assert not {"\x1b", "\u202e"} & set(said.stdout)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prompts: [", "promptfooconfig.yaml:2"),
        ("evalcases: []", "is not a promptfoo configuration"),
        ("[1, 2]", "is not a promptfoo configuration"),
        ("", "is not a promptfoo configuration"),
        ("prompts: [x]\nprompts: [y]", "is already in line 1"),
        ("prompts: &a [*a]", "promptfooconfig.yaml"),
    ],
)
def test_import__what_is_no_configuration__is_a_sentence_and_exit_2(tmp_path, text, words) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(text)
    refused = gate(tmp_path, "import", "promptfoo", "promptfooconfig.yaml")
    assert refused.returncode == 2
    assert words in refused.stderr
    assert "Traceback" not in refused.stderr


def test_import__files_elsewhere__are_not_read(tmp_path) -> None:
    (tmp_path / "secret.txt").write_text("nine")
    team = tmp_path / "team"
    team.mkdir()
    (team / "link.txt").symlink_to(tmp_path / "secret.txt")
    one = [
        {**HOURS, "description": name, "vars": {"question": f"file://{name}"}} for name in ("../secret.txt", "link.txt")
    ]
    two = {**HOURS, "assert": [{"type": "contains", "value": f"file://{tmp_path}/secret.txt"}]}
    write(team, tests=[*one, two, "file:///etc/*.csv"])
    said = gate(team, "import", "promptfoo", "promptfooconfig.yaml")
    assert "0 of 4 cases converted" in said.stdout
    assert said.stdout.count("is outside of the configuration's folder") == 4


def test_import__from_another_folder__finds_files_beside_the_configuration(tmp_path) -> None:
    team = tmp_path / "team"
    (team / "more").mkdir(parents=True)
    (team / "prompt.txt").write_text("Short: {{question}}\n---\nLong: {{question}}\n")
    (team / "more" / "a.jsonl").write_text(json.dumps(HOURS) + "\n\n" + json.dumps(PROGRAM) + "\n")
    write(team, prompts=["file://prompt.txt"], tests="file://more/*.jsonl")
    said = gate(tmp_path, "import", "promptfoo", "team/promptfooconfig.yaml")
    assert "team/promptfooconfig.yaml: 2 of 4 cases converted" in said.stdout
    assert "team/more/a.jsonl:3: long (prompt 1)" in said.stdout
    messages = [
        json.loads((tmp_path / "evals" / f"promptfoo-{number}.golden.json").read_text())["cases"][0]["input"]["message"]
        for number in (1, 2)
    ]
    assert messages == ["Short: When?", "Long: When?"]


def test_import__a_system_message__is_the_targets(tmp_path) -> None:
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "{{question}}"}]
    write(tmp_path, prompts=[json.dumps(chat) + "\n"], providers=["openai:gpt-4o-mini", AGENT], tests=[HOURS])
    said = gate(tmp_path, "import", "promptfoo", "promptfooconfig.yaml", "-o", "evals/bot")
    assert said.returncode == 1
    assert "provider the-bot: it gets the messages of the prompt as one text" in said.stdout
    (target,) = yaml.safe_load((tmp_path / "evals" / "bot" / "targets.yaml").read_text())["targets"]
    assert (tmp_path / target["system_prompt_path"]).read_text() == "Be brief."
    assert target["model"] == "gpt-4o-mini"


@pytest.mark.parametrize(
    ("tool", "file", "said"),
    [
        ("promptfo", "x.yaml", ['cannot import evals of "promptfo" (did you mean "promptfoo"?)', "allowed: promptfoo"]),
        ("deepeval", "x.json", ['cannot import evals of "deepeval"; allowed: promptfoo', "`eval-gate check --help`"]),
        ("promptfoo", "x.yaml", ["x.yaml: cannot be read: No such file", "hint: name an existing file"]),
        ("promptfoo", "nothere", ["nothere: cannot be read: No such file", "hint: name an existing file"]),
        ("promptfoo", "nothere.js", ["nothere.js: cannot be read: No such file", "hint: name an existing file"]),
        ("promptfoo", "a" * 300, ["contains a file name of 300 bytes (limit 255)"]),
        (
            "promptfoo",
            "there.js",
            ["there.js is a program, or not a configuration", "hint: name a promptfooconfig.yaml"],
        ),
    ],
)
def test_import__what_cannot_be_imported__says_what_to_do(tmp_path, tool, file, said) -> None:
    (tmp_path / "there.js").write_text("module.exports = {}")
    done = gate(tmp_path, "import", tool, file)
    assert (done.returncode, done.stdout) == (2, "")
    assert [words for words in said if words not in done.stderr] == []
