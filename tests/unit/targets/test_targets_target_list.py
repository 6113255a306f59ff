"""Where targets of AgentV files are found, and how their settings may be written."""

from functools import partial

import pytest

from eval_gate.config.settings import TargetChoice
from eval_gate.errors import GateError
from eval_gate.targets.build_context import BuildContext
from eval_gate.targets.catalog import JUDGE, SIMULATED_USER, TargetCatalog
from eval_gate.targets.target_list import read_targets
from eval_gate.text.secret import SecretAddress

MOCK = "targets:\n- {{name: {0}, provider: mock}}\n"


def book(root, choice=None, environment=None) -> TargetCatalog:
    return TargetCatalog(choice or TargetChoice(), BuildContext(environment or {}, root))


def put(file, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def choose(tmp_path, text: str, name: str | None = None, **environment: str):
    put(tmp_path / "targets.yaml", text)
    return read_targets("targets.yaml", tmp_path).resolve_target(name, environment)


def refused(tmp_path, text: str, name: str | None = None, **environment: str) -> list[str]:
    with pytest.raises(GateError) as caught:
        choose(tmp_path, text, name, **environment)
    return [str(problem) for problem in caught.value.problems] or [caught.value.message]


@pytest.mark.contract("agentv.targets.lookup")
@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["repo/evals/ferry/targets.yaml", "repo/evals/targets.yaml"], "repo/evals/ferry/targets.yaml"),
        (["repo/evals/ferry/.agentv/targets.yml", "repo/targets.yaml"], "repo/evals/ferry/.agentv/targets.yml"),
        (["repo/evals/.agentv/targets.yaml", "repo/evals/targets.yml"], "repo/evals/targets.yml"),
        (["repo/targets.yaml", "targets.yaml"], "repo/targets.yaml"),
        (["repo/work/.agentv/targets.yaml", "targets.yaml"], "repo/work/.agentv/targets.yaml"),
    ],
    ids=["nearest", "hidden folder", "plain name first", "not above the repository", "working directory last"],
)
def test_lookup__files_on_the_way__the_first_one_counts(tmp_path, files, found) -> None:
    put(tmp_path / "repo" / ".git" / "HEAD", "ref: refs/heads/main\n")
    put(tmp_path / "repo" / "evals" / "ferry" / "a.yaml", "")
    for file in files:
        put(tmp_path / file, MOCK.format(file.replace("/", "_").replace(".", "_")))
    target = book(tmp_path / "repo" / "work").get_target("../evals/ferry/a.yaml")
    assert target.identity.name == found.replace("/", "_").replace(".", "_")


@pytest.mark.contract("agentv.targets.choice")
def test_choice__several_described__named_then_default_then_only_one(tmp_path) -> None:
    put(tmp_path / "targets.yaml", "targets:\n- {name: a, provider: mock}\n- {name: default, provider: mock}\n")
    assert book(tmp_path).get_target("x.yaml").identity.name == "default"
    assert book(tmp_path).get_target("x.yaml", "a").identity.name == "a"
    assert book(tmp_path, TargetChoice(name="a")).get_target("x.yaml", "default").identity.name == "a"
    choice = TargetChoice(endpoint=SecretAddress("http://x/"))
    assert book(tmp_path, choice).get_target("x.yaml", "a").identity.provider == "http"


def test_choice__same_name_twice__is_built_once(tmp_path) -> None:
    put(tmp_path / "targets.yaml", MOCK.format("a"))
    found = book(tmp_path)
    assert found.get_target("x.yaml", "a") is found.get_target("y/z.yaml", "a")


def test_choice__name_that_is_nowhere__says_so(tmp_path) -> None:
    with pytest.raises(GateError, match="not described") as caught:
        book(tmp_path).get_target("x.yaml", "desk")
    assert caught.value.code == "missing-target"


def test_targets__folder__is_searched_for_the_file(tmp_path) -> None:
    put(tmp_path / "config" / ".agentv" / "targets.yaml", MOCK.format("a"))
    assert book(tmp_path, TargetChoice(targets="config")).get_target().identity.name == "a"
    (tmp_path / "empty").mkdir()
    with pytest.raises(GateError, match=r"no targets\.yaml in the folder empty"):
        book(tmp_path, TargetChoice(targets="empty")).get_target()


@pytest.mark.contract("agentv.targets.variables")
def test_variables__partial_reference__is_a_literal_outside_of_http(tmp_path) -> None:
    text = 'targets:\n- {name: a, provider: mock, response: "by ${{ WHO }}!"}\n'
    assert choose(tmp_path, text, WHO="me").settings.response == "by ${{ WHO }}!"


@pytest.mark.contract("agentv.targets.variables")
@pytest.mark.parametrize("value", ["", "  "], ids=["empty", "blank"])
def test_variables__unset_and_required__names_variable_and_field(tmp_path, value) -> None:
    text = "targets:\n- name: a\n  provider: http\n  url: ${{ PLACE }}\n"
    assert refused(tmp_path, text, LOCATION=value) == ["targets.yaml:4: targets[a].url: the variable PLACE is not set"]


@pytest.mark.contract("agentv.targets.variables")
def test_variables__unset_and_optional__is_left_out_and_said(tmp_path) -> None:
    text = "targets:\n- {name: a, provider: openai, model: m, temperature: '${{ HEAT }}', api_key: '${{ KEY }}'}\n"
    chosen = choose(tmp_path, text, KEY="sk-abcdef")
    assert chosen.settings.temperature is None
    assert chosen.notices == ("target a: HEAT is not set, so temperature is left out",)
    assert refused(tmp_path, text, HEAT="1") == ["targets.yaml:2: targets[a].api_key: the variable KEY is not set"]


@pytest.mark.contract("agentv.targets.variables")
def test_variables__unset_and_optional_under_another_name__is_left_out_by_that_name(tmp_path) -> None:
    text = "targets:\n- {name: a, provider: openai, model: m, max_tokens: '${{ MOST }}'}\n"
    assert choose(tmp_path, text).notices == ("target a: MOST is not set, so max_tokens is left out",)


@pytest.mark.contract("agentv.targets.spellings")
def test_spellings__two_names_of_one_setting_that_differ__are_told_with_the_line(tmp_path) -> None:
    text = "targets:\n- name: a\n  provider: codex\n  binary: b\n  command: c\n"
    assert refused(tmp_path, text) == [
        "targets.yaml:5: targets[a].command: executable is set twice, under different names and with different values"
    ]


@pytest.mark.contract("agentv.targets.variables")
def test_variables__any_that_was_used__is_masked(tmp_path) -> None:
    text = "targets:\n- {name: a, provider: mock, response: '${{ WORD }}'}\n"
    assert choose(tmp_path, text, WORD="open sesame").redact("say open sesame!") == "say ***!"


@pytest.mark.contract("agentv.targets.spellings")
@pytest.mark.parametrize(
    "settings",
    [
        "delay_ms: 5, delayMs: 7",
        "delayMs: 7, delay_ms: 5",
        "settings: {delay_ms: 5}",
        "provider: MOCK, delayMs: 5",
        "provider: ' Mock ', delay_ms: 5",
    ],
)
def test_spellings__whatever_they_are__are_one_setting(tmp_path, settings) -> None:
    provider = "" if "provider" in settings else "provider: mock, "
    assert choose(tmp_path, f"targets:\n- {{name: a, {provider}{settings}}}\n").settings.delay_ms == 5


@pytest.mark.contract("agentv.targets.spellings")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "targets:\n- name: a\n  provider: mock\n  settings:\n    delay: 5\n",
            ['targets.yaml:5: targets[a].delay: unknown setting (did you mean "delayMs"?)'],
        ),
        (
            "targets:\n- {name: a, provider: mock}\n- {name: b, provider: mock}\n- {name: a, provider: mock}\n",
            ["targets.yaml:4: targets[a].name: another target has this name"],
        ),
        (
            "targets:\n- name: a\n  provider: mock\n  delay_ms: soon\n",
            ['targets.yaml:4: targets[a].delay_ms: must be a number, got text "soon"'],
        ),
        (
            "targets:\n- name: a\n  provider: vscod\n",
            ['targets.yaml:3: targets[a].provider: the provider "vscod" is not known (did you mean "vscode"?)'],
        ),
    ],
    ids=["unknown", "two of one name", "wrong type", "provider"],
)
def test_spellings__what_is_wrong__names_line_and_field(tmp_path, text, said) -> None:
    found = refused(tmp_path, text)
    assert [problem.split(": ")[:2] for problem in found] == [problem.split(": ")[:2] for problem in said]
    if "must be" not in said[0]:
        assert found == said


@pytest.mark.contract("agentv.provider-level-batching-flag.fallback-when-provider-cannot-batch")
def test_batching__fallback_when_provider_cannot_batch__is_noticed_and_accepted(tmp_path) -> None:
    put(tmp_path / "targets.yaml", "targets:\n- {name: a, url: 'http://x/', provider_batching: true}\n")
    found = book(tmp_path)
    found.get_target("x.yaml")
    assert found.notices == (
        "target a: http does not support batches (provider_batching): each case is sent separately",
    )


def test_user__is_the_named_model_and_never_the_judge_or_the_target(tmp_path) -> None:
    put(
        tmp_path / "targets.yaml",
        "targets:\n"
        "- {name: a, provider: mock, judge_target: grader, user_target: customer}\n"
        "- {name: m, provider: openai, model: gpt-4o, judge_target: grader}\n"
        "- {name: wrong, provider: mock, user_target: a}\n"
        "- {name: customer, provider: openai, model: gpt-4o-mini}\n"
        "- {name: grader, provider: openai, model: gpt-4o}\n",
    )
    found = book(tmp_path, environment={"OPENAI_API_KEY": "key-of-nobody"})
    find_user = partial(found.find_grader, SIMULATED_USER)
    assert find_user("x.yaml", "a", None) == (
        "customer",
        found.get_grader("x.yaml", "customer")[1],
    )
    assert find_user("x.yaml", "a", "grader") == (
        "grader",
        found.get_grader("x.yaml", "grader")[1],
    )
    assert find_user("x.yaml", "m", "openai:gpt-4o")[0] == "openai:gpt-4o"
    assert find_user("x.yaml", "m", None) is None
    with pytest.raises(GateError, match='the simulated user "a" is no model: its provider is mock') as caught:
        find_user("x.yaml", "wrong", None)
    assert caught.value.code == "unsupported-simulated-user"
    assert [(problem.file, problem.line) for problem in caught.value.problems] == [("targets.yaml", 4)]
    with pytest.raises(GateError, match=r'unknown target "custmer".*customer'):
        find_user("x.yaml", "a", "custmer")
    with pytest.raises(GateError, match="openai-compatible:m does not describe a model") as caught:
        find_user("x.yaml", "a", "openai-compatible:m")
    assert caught.value.hint == "describe this model as a target in targets.yaml, and give the name of that target here"


def test_target__that_another_one_names_as_its_user__is_not_the_one_that_is_meant(tmp_path) -> None:
    put(
        tmp_path / "targets.yaml",
        "targets:\n- {name: a, url: 'http://x/', user_target: b}\n- {name: b, provider: openai, model: m}\n",
    )
    assert book(tmp_path).get_target("x.yaml").identity.name == "a"


@pytest.mark.contract("agentv.targets.judge")
def test_judge__in_the_order_of_who_was_named(tmp_path) -> None:
    put(
        tmp_path / "targets.yaml",
        "targets:\n"
        "- {name: a, provider: mock, judge_target: b}\n"
        "- {name: b, provider: mock}\n"
        "- {name: c, provider: mock}\n",
    )
    found = book(tmp_path)
    assert found.find_grader(JUDGE, "x.yaml", "a", None) == ("b", found.get_grader("x.yaml", "b")[1])
    assert found.find_grader(JUDGE, "x.yaml", "a", "c") == ("c", found.get_grader("x.yaml", "c")[1])
    assert found.find_grader(JUDGE, "x.yaml", "c", None) is None
    with pytest.raises(GateError, match='unknown target "d"'):
        found.get_grader("x.yaml", "d")
