"""Commands and requests before and after suites and cases, from the eval file to the agent and the exit code."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest

from tests.integration.test_integration_run import record, started, wait_until
from tests.support.agents import Agent, Exchange, agent, ok
from tests.support.program import gate

CASE_HOOKS = {
    "before": [{"request": "PUT /test/accounts/{{test_id}}?plan=a", "body": {"of": "{{test_id}}", "credit": 3}}],
    "after": {"request": "DELETE /test/accounts/{{test_id}}"},
}
SUITE_HOOKS = {
    "before": {"request": "POST /test/seed", "headers": {"X-Run": "{{eval_run_id}}"}},
    "after": {"request": "POST /test/end"},
}


def write_suite(folder: Path, *names: str, own=CASE_HOOKS, name: str = "shop", **hooks) -> None:
    expected = {"expect": {"responseContains": ["ok"]}, **own}
    cases = [{"id": one, "input": {"message": one}, **expected} for one in names or ("a", "b")]
    (folder / "evals").mkdir(exist_ok=True)
    (folder / "evals" / f"{name}.golden.json").write_text(json.dumps({**hooks, "cases": cases}))


def list_lines(running: Agent) -> list[str]:
    """What the agent got: the line of a hook's request, or the message of a case."""
    return [one.json["message"] if " /chat " in one.head else one.head.split(" HTTP")[0] for one in running.requests]


def surround(name: str) -> list[str]:
    return [f"PUT /test/accounts/{name}?plan=a", name, f"DELETE /test/accounts/{name}"]


class Shop:
    """Agent with accounts, which answers `ok` to a message that is the only account; hooks need its key."""

    def __init__(self, *wrong: str, refuses: str = "nothing") -> None:
        self.accounts: list[str] = []
        self.wrong, self.refuses = wrong, refuses

    async def __call__(self, exchange: Exchange) -> None:
        method, path, *_ = exchange.head.split()
        if exchange.header("X-Key") != "s3cret-of-shop":
            exchange.answer({"error": "no key"}, "401 Unauthorized")
        elif f"{method} {path}".startswith(self.refuses):
            exchange.answer({"error": f"no, {exchange.header('X-Key')}"}, "500 Internal Server Error")
        elif method == "POST" and path == "/chat":
            message = exchange.json["message"]
            await asyncio.sleep(0)
            only = self.accounts == [message] and message not in self.wrong
            exchange.answer({"response": "ok" if only else f"{self.accounts}"})
        else:
            if method == "PUT":
                self.accounts.append(exchange.json["of"])
            elif method == "DELETE":
                self.accounts.remove(path.rpartition("/")[2])
            exchange.answer(b"", "204 No Content")


def run(folder: Path, running: Agent, *options: str):
    target = {"name": "shop", "provider": "http", "url": running.url, "headers": {"X-Key": "${{ SHOP_KEY }}"}}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [target]}))
    return gate(folder, "run", "--target", "shop", "--concurrency", "4", *options, SHOP_KEY="s3cret-of-shop")


def test_hooks__suites_and_cases_at_once__each_case_has_the_agent_for_itself(tmp_path) -> None:
    write_suite(tmp_path, "a", "b", **SUITE_HOOKS)
    write_suite(tmp_path, "c", name="stock")
    with agent(Shop(refuses="POST /test/end")) as running:
        done = run(tmp_path, running, "--trials", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "evals/shop.golden.json: the hook `after` of the suite (POST /test/end) failed: HTTP 500" in done.stdout
    lines = list_lines(running)
    assert (lines.count("POST /test/seed"), lines[-1]) == (1, "POST /test/end")
    assert lines.index("POST /test/seed") < lines.index("a")
    hook_lines = [line for line in lines if "POST" not in line]
    assert hook_lines == [line for at in range(0, len(hook_lines), 3) for line in surround(hook_lines[at + 1])]
    assert sorted(hook_lines[1::3]) == ["a", "a", "b", "b", "c", "c"]
    seed = next(one for one in running.requests if "/test/seed" in one.head)
    assert seed.header("X-Run") == record(tmp_path)["runId"]
    assert (seed.header("Content-Type"), seed.header("Content-Length")) == (None, "0")
    [created] = {one.body for one in running.requests if "accounts/a?" in one.head}
    assert json.loads(created) == {"of": "a", "credit": 3}


def test_hooks__changed_request_and_a_case_that_now_fails__is_a_setup_change_and_each_rerun_has_them(tmp_path) -> None:
    write_suite(tmp_path, **SUITE_HOOKS)
    with agent(Shop()) as running:
        assert run(tmp_path, running, "--output-dir", "before").returncode == 0
    other = {**CASE_HOOKS, "before": {"request": "PUT /test/accounts/{{test_id}}", "body": {"of": "{{test_id}}"}}}
    write_suite(tmp_path, own=other, **SUITE_HOOKS)
    with agent(Shop("b")) as running:
        done = run(tmp_path, running, "--baseline", "before", "--output-dir", "now")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "hook or health check of 2 cases changed" in done.stdout
    lines = list_lines(running)
    assert (lines.count("POST /test/seed"), lines[-1], lines.count("POST /test/end")) == (1, "POST /test/end", 1)
    assert lines.count("b") == lines.count("PUT /test/accounts/b") == lines.count("DELETE /test/accounts/b") > 2


@pytest.mark.parametrize(
    ("refuses", "error", "asked"),
    [
        ("POST /test/seed", "the hook `before` of the suite (POST /test/seed) failed: HTTP 500", ()),
        ("PUT", "the hook `before[0]` (PUT /test/accounts/{{test_id}}) failed: HTTP 500", ()),
        ("DELETE", "the hook `after` (DELETE /test/accounts/{{test_id}}) failed: HTTP 500", ("a",)),
    ],
)
def test_hooks__request_that_fails__is_an_evaluation_error_that_names_the_hook(tmp_path, refuses, error, asked) -> None:
    write_suite(tmp_path, "a", **SUITE_HOOKS)
    with agent(Shop(refuses=refuses)) as running:
        done = run(tmp_path, running)
    [case] = record(tmp_path)["suites"][0]["cases"]
    errors = done.returncode, case["errorKind"], case["errorCause"]
    assert errors == (3, "evaluation_error", "hook_failed"), done.stdout
    assert "a command or request before or after the cases failed, which says nothing of the agent" in done.stdout
    assert "If it ends the same way, correct the command or request, or what it needs." in done.stdout
    assert "judge" not in done.stdout
    assert case["error"].startswith(error)
    assert error in done.stdout
    assert "s3cret" not in done.stdout + done.stderr + json.dumps(case)
    assert tuple(line for line in list_lines(running) if line == "a") == asked
    assert list_lines(running)[-1] == "POST /test/end"


def test_hooks__agent_that_is_gone__ends_the_run_as_without_hooks(tmp_path) -> None:
    """The port of a server that never answers a hook: five cases are tried, and the others are not run."""
    own = {"before": {"request": "POST /test/reset", "timeoutSeconds": 0.05}}
    write_suite(tmp_path, *"abcdefgh", own=own)

    async def hang(exchange: Exchange) -> None:
        await asyncio.sleep(0)

    with agent(hang) as running:
        done = run(tmp_path, running, "--concurrency", "1")
    statuses = [case["status"] for case in record(tmp_path)["suites"][0]["cases"]]
    assert (done.returncode, statuses) == (3, ["error"] * 5 + ["not_run"] * 3), done.stdout


def test_hooks__stopped_by_a_signal__cleans_up_after_the_case_and_the_suite(tmp_path) -> None:
    write_suite(tmp_path, own={one: {"request": f"POST /test/{one}"} for one in ("before", "after")}, **SUITE_HOOKS)

    async def hang(exchange: Exchange) -> None:
        if " /chat " not in exchange.head:
            await ok(exchange)

    with agent(hang) as running:
        process = started(tmp_path, "--agent-endpoint", running.url, "--concurrency", "2")
        wait_until(lambda: "a" in list_lines(running))
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 143, errors
    assert list_lines(running) == ["POST /test/seed", "POST /test/before", "a", "POST /test/after", "POST /test/end"]


def test_hooks__base_agent__is_prepared_at_its_own_host(tmp_path) -> None:
    """`b` fails with both agents, so that the base agent runs it."""
    own = {one: {"request": f"POST /test/{one}"} for one in ("before", "after")}
    write_suite(tmp_path, *"abcdef", own=own, **SUITE_HOOKS)

    async def answer(exchange: Exchange) -> None:
        is_wrong = " /chat " in exchange.head and exchange.json["message"] == "b"
        exchange.answer({"response": "wrong" if is_wrong else "ok"})

    with agent() as good:
        assert gate(tmp_path, "run", "--agent-endpoint", good.url, "--output-dir", "before").returncode == 0
    with agent(answer) as running, agent(answer) as base:
        agents = f"--agent-endpoint {running.url} --base-agent-endpoint {base.url}"
        done = gate(tmp_path, *f"run {agents} --baseline before --fail-on regressions --output-dir now".split())
    assert done.returncode == 0, done.stdout + done.stderr
    lines = list_lines(base)
    assert (lines[0], lines[-1], lines.count("b") >= 2) == ("POST /test/seed", "POST /test/end", True)
    assert set(zip(lines[1:-1:3], lines[3:-1:3], strict=True)) == {("POST /test/before", "POST /test/after")}
    assert list_lines(running).count("POST /test/seed") == 1


def test_hooks__whole_url__gets_no_header_of_the_target_and_a_redirect_is_a_failure(tmp_path) -> None:
    async def redirect(exchange: Exchange) -> None:
        exchange.answer(b"", "302 Found", Location="/login")

    with agent() as shop, agent() as other, agent(redirect) as away:
        own = {
            "before": {"request": f"GET {other.url}?of={{{{test_id}}}}", "headers": {"X-Of": "{{test_id}}"}},
            "after": {"request": f"POST {away.url}"},
        }
        write_suite(tmp_path, "a ü", own=own)
        done = run(tmp_path, shop)
    [request] = other.requests
    assert request.head.startswith("GET /chat?of=a%20%C3%BC HTTP")
    assert (request.header("X-Key"), request.header("X-Of")) == (None, "a%20%C3%BC")
    assert done.returncode == 3
    assert f"the hook `after` (POST {away.url}) failed: HTTP 302 Found to «/login»" in done.stdout
    assert [one.header("X-Key") for one in away.requests] == [None]


def test_hooks__conversation__are_around_the_whole(tmp_path) -> None:
    turns = {"turns": [{"message": "a", "expect": {"responseContains": ["ok"]}}, {"message": "b"}]}
    case = {"id": "talk", **turns, "before": {"request": "POST /on"}, "after": {"request": "POST /off"}}
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "shop.golden.json").write_text(json.dumps([case]))
    with agent() as running:
        assert gate(tmp_path, "run", "--agent-endpoint", running.url).returncode == 0
    assert list_lines(running) == ["POST /on", "a", "b", "POST /off"]


def test_hooks__commands__run_beside_the_file_without_secrets_and_count_with_their_files(tmp_path) -> None:
    command = ["python3", "seed.py", "{{test_id}}"]
    write_suite(tmp_path, "a", own={"before": command, "after": [{"command": "python3 seed.py end"}]})
    seed = tmp_path / "evals" / "seed.py"
    seed.write_text("import os, sys; print(*sys.argv[1:], os.environ.get('TOKEN'), file=open('../log.txt', 'a'))\n")
    with agent() as running:
        options = ("run", "--agent-endpoint", running.url)
        assert gate(tmp_path, *options, "--output-dir", "before", TOKEN="s3cret").returncode == 0
        assert (tmp_path / "log.txt").read_text().splitlines() == ["a None", "end None"]
        seed.write_text("raise SystemExit('no database')\n")
        done = gate(tmp_path, *options, "--baseline", "before")
    assert done.returncode == 3
    assert f"hook or health check of 1 case changed: `evals/{seed.name}`" in done.stdout
    assert "the hook `before` exited with code 1: no database" in done.stdout
    assert len(running.requests) == 1


def test_hooks__key_in_a_command__is_masked_in_the_warning_that_quotes_it(tmp_path) -> None:
    write_suite(tmp_path, "a", own={"before": ["true", "s3cret-of-shop"]})
    with agent(Shop()) as running:
        done = run(tmp_path, running)
    assert "are compared for `true ***`" in done.stderr + done.stdout + json.dumps(record(tmp_path)["warnings"])
    assert "s3cret" not in done.stdout + done.stderr + json.dumps(record(tmp_path))


def test_hooks__path_alone_for_a_target_without_a_host__is_refused_once_with_its_place(tmp_path) -> None:
    write_suite(tmp_path, own={}, **SUITE_HOOKS)
    (tmp_path / "targets.yaml").write_text("targets: [{name: shop, provider: cli, command: 'echo ok'}]\n")
    done = gate(tmp_path, "run", "--target", "shop")
    assert (done.returncode, done.stderr.count("`before` of the suite")) == (2, 1)
    assert "unsupported-hook" in done.stderr
