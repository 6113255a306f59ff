"""Targets as people describe them."""

import pytest

from eval_gate.config.settings import TargetChoice
from eval_gate.errors import GateError
from eval_gate.targets.agent_address import (
    ContainerProbe,
    find_connection_hint,
    is_local_host,
    parse_default_gateway,
    resolve_host,
)
from eval_gate.targets.build_context import BuildContext
from eval_gate.targets.catalog import TargetCatalog
from eval_gate.targets.retry import build_retry_policy
from eval_gate.targets.target_list import read_targets
from eval_gate.text.secret import SecretAddress

YAML = """
targets:
  - name: staging
    provider: http
    url: https://agent.example/chat
    headers:
      Authorization: Bearer ${{ TOKEN }}
    request_template: {q: "{{message}}"}
    max_retries: 5
  - name: local
    url: http://localhost:1/chat
"""


def write(folder, text: str) -> str:
    (folder / "targets.yaml").write_text(text)
    return "targets.yaml"


def problems(folder, text: str, name: str | None = None, environment=None) -> list[str]:
    with pytest.raises(GateError) as caught:
        read_targets(write(folder, text), folder).resolve_target(name, environment or {})
    return [str(problem) for problem in caught.value.problems] or [caught.value.message]


def test_choose__named_target__has_both_spellings_and_resolved_secrets(tmp_path) -> None:
    chosen = read_targets(write(tmp_path, YAML), tmp_path).resolve_target("staging", {"TOKEN": "abcdef"})
    settings, redact = chosen.settings, chosen.redact
    assert settings.headers == {"Authorization": "Bearer abcdef"}
    assert settings.request_template == {"q": "{{message}}"}
    assert build_retry_policy(settings).max_retries == 5
    assert build_retry_policy(settings, 1).max_retries == 1
    assert redact("the abcdef one") == "the *** one"
    assert "abcdef" not in repr(redact)


def test_choose__other_target__needs_no_variable_of_this_one(tmp_path) -> None:
    settings = read_targets(write(tmp_path, YAML), tmp_path).resolve_target("local", {}).settings
    assert settings.url == "http://localhost:1/chat"


def test_choose__variable_not_set__names_target_and_variable(tmp_path) -> None:
    assert problems(tmp_path, YAML, "staging") == [
        "targets.yaml:7: targets[staging].headers.Authorization: the variable TOKEN is not set"
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (None, "several targets are described: choose one"),
        ("stagin", 'unknown target "stagin" in targets.yaml (did you mean "staging"?)'),
    ],
)
def test_choose__none_or_unknown_name__says_which_there_are(tmp_path, name, said) -> None:
    assert problems(tmp_path, YAML, name) == [said]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "targets:\n- {name: a, url: 'http://u', heders: {}}\n",
            ['targets.yaml:2: targets[a].heders: unknown setting (did you mean "headers"?)'],
        ),
        (
            "- {name: a, provider: htp, url: u}\n",
            ['targets.yaml:1: targets[a].provider: the provider "htp" is not known (did you mean "http"?)'],
        ),
        ("- {name: a}\n", ["targets.yaml:1: targets[a].url: is missing"]),
        ("targets: 5\n", ["targets.yaml:1: expected a list of targets (mappings)"]),
        ("- {name: a, name: b}\n", ['targets.yaml:1: the key "name" is already in line 1']),
        ("- &a [*a]\n", ["targets.yaml:1: an alias that contains itself"]),
    ],
)
def test_choose__wrong_description__names_file_line_and_field(tmp_path, text, said) -> None:
    assert problems(tmp_path, text) == said


def test_choose__secret_in_a_wrong_place__is_not_shown(tmp_path) -> None:
    said = problems(tmp_path, '- {name: a, url: http://u, workers: "${{ KEY }}x"}\n', environment={"KEY": "s3cret"})
    assert "s3cret" not in said[0]


@pytest.mark.parametrize(
    ("choice", "code"),
    [
        (TargetChoice(), "missing-target"),
        (TargetChoice(endpoint=SecretAddress("http://x/"), name="y"), "conflicting-targets"),
        (TargetChoice(endpoint=SecretAddress("localhost:80/chat")), "invalid-url"),
        (TargetChoice(endpoint=SecretAddress("ftp://x/")), "invalid-url"),
        (TargetChoice(targets="none.yaml"), "targets-file-unreadable"),
    ],
    ids=str,
)
def test_book__choice_that_is_none__is_a_usage_error(tmp_path, choice, code) -> None:
    with pytest.raises(GateError) as caught:
        TargetCatalog(choice, BuildContext({}, tmp_path)).get_target()
    assert (caught.value.code, caught.value.exit_code) == (code, 2)


def test_book__inline_list__is_the_only_target(tmp_path) -> None:
    choice = TargetChoice(targets=[{"name": "a", "provider": "http", "url": "http://x/chat", "workers": 3}])
    target = TargetCatalog(choice, BuildContext({}, tmp_path)).get_target()
    assert (target.identity.name, target.workers) == ("a", 3)


ROUTES = """Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
eth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\t0\t0
"""


@pytest.mark.parametrize(
    ("table", "gateway"),
    [(ROUTES, "172.17.0.1"), (ROUTES.rsplit("eth0", 1)[0], None), ("", None), ("Iface\n\n", None)],
    ids=["docker", "no default", "empty", "head only"],
)
def test_default_gateway__route_table__is_little_endian(table, gateway) -> None:
    assert parse_default_gateway(table) == gateway


@pytest.fixture
def container(tmp_path) -> ContainerProbe:
    (tmp_path / "mark").touch()
    (tmp_path / "route").write_text(ROUTES)
    return ContainerProbe(marker_files=(tmp_path / "mark",), route_table=tmp_path / "route")


def test_reachable_host__in_a_container__host_name_is_the_gateway(container, tmp_path) -> None:
    outside = ContainerProbe(marker_files=(tmp_path / "none",), route_table=tmp_path / "route")
    assert resolve_host("host.docker.internal", container) == "172.17.0.1"
    assert resolve_host("host.docker.internal", outside) == "host.docker.internal"
    assert resolve_host("agent", container) == "agent"


def test_connection_hint__in_a_container__says_what_to_write_where(container, tmp_path) -> None:
    hint = find_connection_hint("http://localhost:8080/chat", "targets.yaml:4: targets[a].url", container)
    assert hint is not None
    assert "write http://host.docker.internal:8080/chat for a process on the machine (targets.yaml:4: " in hint
    assert "--host 0.0.0.0" in hint
    there = find_connection_hint("http://host.docker.internal:8080/chat", None, container)
    assert there is not None
    assert there.startswith("it has to start before this step, with --host 0.0.0.0")
    assert find_connection_hint("http://agent:8080", None, container) is None


def test_connection_hint__on_a_machine__says_to_start_what_should_be_there(tmp_path) -> None:
    machine = ContainerProbe(marker_files=(tmp_path / "none",))
    said = "check its URL (agentEndpoint)"
    assert find_connection_hint("http://localhost:8080/chat", "agentEndpoint", machine) == said
    assert find_connection_hint("http://agent.example", "agentEndpoint", machine) is None


@pytest.mark.parametrize(
    ("host", "here"),
    [
        *[("localhost", True), ("127.3.2.1", True), ("::1", True), ("host.docker.internal", True), ("10.0.0.1", False)],
        *[("127.0.0.1.example", False), ("127.example", False), ("1.127.0.0.1", False)],
    ],
)
def test_is_here__address__of_this_machine(host, here) -> None:
    assert is_local_host(host) is here
