"""Which targets of a pull request are given variables: those that the base branch describes alike."""

from __future__ import annotations

import json

import pytest

from tests.support.agents import agent
from tests.support.github.faults import Fault
from tests.support.jobs import push_event

KEY = "sk-canary-of-the-step"
EVIL = "http://127.0.0.1:9/collect"
CONFIG = "eval-gate.json"
WORKFLOW = {"agent-endpoint": "", "fail-on": "failures", "reruns": "0", "baseline": "none"}


def http_target(url: str, **more) -> dict[str, object]:
    return {"name": "a", "url": url, "headers": {"x-key": "${{ AGENT_KEY }}"}, "maxRetries": 0} | more


def on_base(github, text: str, name: str = CONFIG) -> None:
    github.state.files[github.state.branches["main"], name] = text.encode()


def configuration(*targets, **more) -> str:
    return json.dumps({"targets": targets, **more})


def pull_request(job, github, text: str, inputs=(), *, name: str = CONFIG, **variables):
    (job.workspace / name).parent.mkdir(exist_ok=True)
    (job.workspace / name).write_text(text)
    given = WORKFLOW | dict(inputs)
    return job.pull_request(github.state.add_pull(7), "", given, **({"AGENT_KEY": KEY} | variables))


def given_key(exchange) -> bool:
    return f"x-key: {KEY}" in exchange.head


def test_finding_5__target_of_the_base_branch__is_given_its_key(job, github) -> None:
    with agent() as running:
        on_base(github, configuration(http_target(running.url), failOn=["never"]))
        ended = pull_request(job, github, configuration(http_target(running.url)))
    assert ended.code == 0, ended.log
    assert all(given_key(one) for one in running.requests)
    assert "target a gets AGENT_KEY: main defines it in the same way" in ended.log


@pytest.mark.parametrize("base", ["another address", "no such target", "no file", "no valid file"])
def test_finding_5__pull_request_sends_a_key_elsewhere__is_refused_with_variable_and_url(job, github, base) -> None:
    with agent() as running:
        there = {
            "another address": configuration(http_target("http://127.0.0.1:9/ours")),
            "no such target": configuration({"name": "b", "url": running.url}),
            "no valid file": '{"targets": [{"name": "a"}, {"name": "a"}]}',
        }
        if base in there:
            on_base(github, there[base])
        ended = pull_request(job, github, configuration(http_target(running.url)))
    assert (ended.code, running.requests) == (2, []), ended.log
    assert f"target a at {running.url} would get AGENT_KEY, but main does not define it in this way" in ended.log
    assert "secrets-for: head" in ended.log
    assert KEY not in ended.log + ended.summary


def test_finding_5__workflow_says_that_it_is_fine__every_target_is_given_its_key(job, github) -> None:
    with agent() as running:
        ended = pull_request(job, github, configuration(http_target(running.url)), {"secrets-for": "head"})
    assert ended.code == 0, ended.log
    assert all(given_key(one) for one in running.requests)


def test_finding_5__nothing_secret_is_asked_for__needs_no_base_branch(job, github) -> None:
    """Also on a fork's pull request, whose run has no secrets: a variable that is not set goes nowhere."""
    with agent() as running:
        plain = {"name": "a", "url": running.url}
        assert pull_request(job, github, configuration(plain)).code == 0
        assert github.requests("GET", "/contents/") == []


def test_finding_5__outside_of_a_pull_request__nothing_changes(job, github) -> None:
    with agent() as running:
        (job.workspace / CONFIG).write_text(configuration(http_target(running.url)))
        ended = job.push("", WORKFLOW, AGENT_KEY=KEY)
    assert ended.code == 0, ended.log
    assert given_key(running.requests[0])


FILE = "evals/targets.yaml"


@pytest.mark.parametrize("same", [True, False])
def test_finding_5__targets_file_beside_the_evals__is_held_against_the_bases(job, github, same) -> None:
    with agent() as running:
        target = http_target(running.url)
        on_base(github, json.dumps({"targets": [target if same else target | {"url": EVIL}]}), FILE)
        ended = pull_request(job, github, json.dumps({"targets": [target]}), name=FILE)
    assert ended.code == (0 if same else 2), ended.log
    assert bool(running.requests) is same


def test_finding_5__github_does_not_answer__nothing_is_sent(job, github) -> None:
    github.faults.add("GET", r"/contents/evals/targets", Fault.permission())
    with agent() as running:
        ended = pull_request(job, github, json.dumps({"targets": [http_target(running.url)]}), name=FILE)
    assert (ended.code, running.requests) == (3, []), ended.log
    assert "cannot read from main which targets get variables" in ended.log


def model(**more) -> dict[str, object]:
    return {"name": "m", "provider": "openai", "model": "gpt-5", "maxRetries": 0} | more


@pytest.mark.parametrize(
    ("entry", "settings"),
    [
        (model(baseUrl=EVIL), {}),
        (model(baseUrl=EVIL, apiKey="${{ OPENAI_API_KEY }}"), {}),
        (None, {"provider": "openai", "model": "gpt-5", "baseUrl": EVIL, "maxRetries": 0}),
        (model(provider="azure", endpoint=EVIL), {}),
    ],
    ids=["vendor's variable", "named variable", "without a list", "azure"],
)
def test_finding_5__key_of_a_vendor__does_not_follow_an_address_of_the_pull_request(
    job, github, entry, settings
) -> None:
    """No reference is written there: the vendors' own variables are taken wherever they are set."""
    text = json.dumps(settings | ({"targets": [entry]} if entry else {}))
    ended = pull_request(job, github, text, OPENAI_API_KEY=KEY, AZURE_OPENAI_API_KEY=KEY)
    assert ended.code == 2, ended.log
    assert f" at {EVIL} would get " in ended.log
    on_base(github, text)
    ended = pull_request(job, github, text, OPENAI_API_KEY=KEY, AZURE_OPENAI_API_KEY=KEY)
    assert "does not define it in this way" not in ended.log


@pytest.mark.slow
def test_finding_5__another_model_at_the_same_place__is_still_given_its_key(job, github) -> None:
    """That is what most pull requests change, and the key goes where it went before."""
    named = {"baseUrl": EVIL, "apiKey": "${{ AGENT_KEY }}"}
    on_base(github, configuration(model(**named)))
    ended = pull_request(job, github, configuration(model(**named, temperature=0) | {"model": "gpt-6"}))
    assert "target m gets AGENT_KEY: " in ended.log
    ended = pull_request(job, github, configuration(model(**named) | {"provider": "openai-compatible"}))
    assert "main does not define it in this way" in ended.log


def test_finding_5__configuration_passes_what_is_no_secret_or_is_not_set__needs_no_word_of_the_base(
    job, github
) -> None:
    with agent() as running:
        text = configuration({"name": "a", "url": running.url}, passEnv=["LANG", "NOT_SET_HERE", "EMPTY_HERE"])
        ended = pull_request(job, github, text, LANG="C.UTF-8", EMPTY_HERE=" ")
    assert ended.code == 0, ended.log


@pytest.mark.parametrize("way", ["env", "pass_env"])
def test_finding_5__command_of_the_pull_request__is_not_given_a_key(job, github, way) -> None:
    given = {"env": {"K": "${{ AGENT_KEY }}"}} if way == "env" else {"pass_env": ["AGENT_KEY"]}
    target = {"name": "c", "provider": "cli", "command_template": "touch ../started; echo ok", **given}
    on_base(github, configuration(target | {"command_template": "echo ok"}))
    ended = pull_request(job, github, configuration(target))
    assert ended.code == 2, ended.log
    assert "target c would get AGENT_KEY, but main does not define it in this way" in ended.log
    assert not (job.workspace / "started").exists()


def test_finding_5__configuration_passes_a_key_to_all_commands__is_refused_unless_the_base_does(job, github) -> None:
    with agent() as running:
        text = configuration({"name": "a", "url": running.url}, passEnv=["AGENT_KEY"])
        ended = pull_request(job, github, text)
        assert ended.code == 2
        assert "passEnv would give AGENT_KEY to commands, but the configuration of main does not" in ended.log
        on_base(github, text)
        assert pull_request(job, github, text).code == 0
        github.state.files.clear()
        text = configuration({"name": "a", "url": running.url})
        assert pull_request(job, github, text, {"pass-env": "AGENT_KEY"}).code == 0


def test_model_proxy__of_the_pull_request_alone__gets_no_calls_with_keys(job, github) -> None:
    """A command with the base branch's description would send its key there instead of to the model's provider."""
    mode = json.dumps({"mode": "record", "file": "x"}).encode()

    async def proxy(exchange) -> None:
        exchange.answer(mode if exchange.head.split(" ")[1].endswith("/runs") else b"{}")

    with agent() as running, agent(proxy) as proxied:
        target = {"name": "a", "url": running.url}
        text = configuration(target, modelProxy=f"http://127.0.0.1:{proxied.port}")
        on_base(github, configuration(target))
        ended = pull_request(job, github, text)
        assert (ended.code, proxied.requests) == (2, []), ended.log
        assert "modelProxy would give the keys of model calls to 127.0.0.1" in ended.log
        on_base(github, text)
        assert pull_request(job, github, text).code == 0
        assert proxied.requests


@pytest.mark.parametrize("setting", ["method", "judge_target"])
def test_finding_5__pull_request_has_a_key_said_by_an_error__says_its_name_only(job, github, setting) -> None:
    """Whoever may open a pull request must not read the key where a description of theirs is refused for it."""
    on_base(github, configuration(http_target(EVIL)))
    (job.workspace / "evals/y.eval.yaml").write_text(
        "evalcases:\n- id: j1\n  expected_outcome: fine\n  input_messages:\n  - {role: user, content: hi}\n"
        "  execution:\n    evaluators:\n    - {name: g, type: llm_judge}\n"
    )
    changed = {"name": "a", "url": EVIL, setting: "${{ AGENT_KEY }}"}
    ended = pull_request(job, github, configuration(changed))
    assert ended.code == 2, ended.log
    assert "AGENT_KEY" in ended.log
    assert KEY not in (ended.log + ended.summary).lower()


# --- the branch it is merged into


def into(job, github, branch: str, text: str, *, inputs=(), **variables):
    """A pull request into another branch than main, by whoever may push."""
    (job.workspace / CONFIG).write_text(text)
    pull = github.state.add_pull(8, base_ref=branch)
    return job.pull_request(pull, "", WORKFLOW | dict(inputs), **({"AGENT_KEY": KEY} | variables))


def branch_of(github, name: str, text: str, *, protected: bool = False) -> None:
    state = github.state
    state.add_commit(name, state.branches["main"], branch=name)
    state.files[state.branches[name], CONFIG] = text.encode()
    if protected:
        state.protected.add(name)


@pytest.mark.parametrize("way", ["target", "passEnv"])
def test_pull_request_into_a_branch_of_ones_own__is_given_no_key_by_its_word(job, github, way) -> None:
    with agent() as running:
        evil = configuration(http_target(running.url))
        if way == "passEnv":
            evil = configuration({"name": "a", "url": running.url}, passEnv=["AGENT_KEY"])
        branch_of(github, "mine", evil)
        on_base(github, configuration(http_target("http://127.0.0.1:9/ours")))
        ended = into(job, github, "mine", evil)
        assert (ended.code, running.requests) == (2, []), ended.log
        assert "main (mine, its base branch, is not protected)" in ended.log
        github.state.protected.add("mine")
        assert into(job, github, "mine", evil).code == 0


@pytest.mark.parametrize("why", ["protected", "baseline branch", "protected baseline branch", "what main says"])
def test_pull_request_into_a_branch_that_counts__is_given_keys(job, github, why) -> None:
    with agent() as running:
        text = configuration(http_target(running.url))
        branch_of(github, "release/1", text, protected="protected" in why)
        if why == "what main says":
            on_base(github, text)
        inputs = {"baseline-branch": "release/1"} if "baseline branch" in why else {}
        ended = into(job, github, "release/1", text, inputs=inputs)
    assert ended.code == 0, ended.log
    assert given_key(running.requests[0])
    assert ("release/1 decides which targets get secrets" in ended.log) is (why == "baseline branch")


@pytest.mark.parametrize("how", ["gone", "no answer"])
def test_pull_request_into_a_branch_that_cannot_be_told__gives_no_key_and_does_not_decide(job, github, how) -> None:
    with agent() as running:
        text = configuration(http_target(running.url))
        branch_of(github, "below", text)
        if how == "gone":
            github.state.add_pull(8, base_ref="below")
            del github.state.branches["below"]
            pull = github.state.pulls[8]
            (job.workspace / CONFIG).write_text(text)
            ended = job.pull_request(pull, "", WORKFLOW, AGENT_KEY=KEY)
        else:
            github.faults.add("GET", r"/branches/below", Fault.permission())
            ended = into(job, github, "below", text)
    assert (ended.code, running.requests) == (3, []), ended.log


@pytest.mark.parametrize("known", [True, False])
def test_dispatch__nothing_says_whose_files_they_are__keys_go_by_what_the_commit_describes(job, github, known) -> None:
    with agent() as running:
        text = configuration(http_target(running.url))
        (job.workspace / CONFIG).write_text(text)
        if known:
            on_base(github, text)
        job.begin_run(event="workflow_dispatch")
        ended = job.step("workflow_dispatch", push_event(github), WORKFLOW, AGENT_KEY=KEY)
    assert (ended.code, bool(running.requests)) == ((0, True) if known else (2, False)), ended.log
