"""Render the starter files from the templates in `files/`."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from eval_gate.cli.starter.described_target import TARGET_NAME
from eval_gate.cli.starter.evaluated_agent import AGENT_EVALS, TARGETS, AgentPlace, EvaluatedAgent
from eval_gate.errors import PAGES
from eval_gate.model.base import JsonValue
from eval_gate.targets.agent_address import HOST_NAME
from eval_gate.text.urls import PORTS

_FILES: Final = Path(__file__).with_name("files")
_EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "tool-forge": ("hello.golden.json",),
    "agentv": ("hello.eval.yaml", "checks/answers.py"),
    AGENT_EVALS: ("hello.json",),
}


def read_example(kind: str) -> dict[str, str]:
    """Read the example eval of a format: the names of its files with their texts."""
    return {name: _read_template(name) for name in _EXAMPLES[kind]}


def render_targets(entry: Mapping[str, JsonValue]) -> str:
    """Render a list with one target."""
    import yaml

    listed = yaml.safe_dump({"targets": [dict(entry)]}, sort_keys=False, allow_unicode=True, width=sys.maxsize)
    return f"{_TARGETS_HEAD}\n{listed}"


_TARGETS_HEAD: Final = f"""\
# How the agent is asked, and where its responses have their parts. All settings: {PAGES}/targets.md
# A value ${{{{ NAME }}}} comes from an environment variable."""


def render_config(agent: EvaluatedAgent, evals: Sequence[str], warm_up: int | None = None) -> str:
    """Render the configuration: where the evals are, the target, `warm_up`, and other settings as comments."""
    paragraphs = {_find_setting(one): one for one in _read_template("eval-gate.yaml").rstrip("\n").split("\n\n")}
    places = "".join(f"\n  - {_format_scalar(place)}" for place in evals)
    paragraphs["evals"] = paragraphs["evals"].removesuffix("\n  - evals") + places
    if agent.kind is AgentPlace.DESCRIBED and agent.entry is None and agent.function is None:
        paragraphs["concurrency"] = _WORKERS_TEXT
    paragraphs["agentEndpoint"] = _render_target(agent, paragraphs["agentEndpoint"])
    if warm_up is not None:
        paragraphs["warmUp"] = paragraphs["warmUp"].replace("# warmUp: 10", f"warmUp: {warm_up}")
    return "\n\n".join(paragraphs.values()) + "\n"


def list_target_lines(agent: EvaluatedAgent) -> tuple[str, ...]:
    """List the lines of a configuration that choose the target."""
    text = _render_target(agent, "agentEndpoint: http://localhost:8080/chat")
    return tuple(line for line in text.splitlines() if not line.startswith("#"))


def _find_setting(paragraph: str) -> str:
    """Find the setting that a paragraph is about, even if it is commented out; the heading has none."""
    match = re.search(r"(?m)^(?:# )?([a-z]\w*):", paragraph)
    return match[1] if match else ""


def _render_target(agent: EvaluatedAgent, usual: str) -> str:
    """Render the paragraph that chooses the target; `usual` is that of the template, which chooses an agent."""
    if agent.entry is not None:
        return f"{_ENTRY_HEAD}\ntargets: {TARGETS}\ntarget: {TARGET_NAME}"
    if agent.function is not None:
        return f"{_FUNCTION_HEAD}\nagentFunction: {_format_scalar(agent.function)}"
    match agent.kind:
        case AgentPlace.AGENT_HERE | AgentPlace.AGENT_ELSEWHERE:
            if agent.preset is None:
                return re.sub(r"(?m)^agentEndpoint: .*$", f"agentEndpoint: {agent.endpoint}", usual)
            return f"{_PRESET_HEAD}\nagentEndpoint: {agent.endpoint}\nagentProtocol: {agent.preset}"
        case AgentPlace.MODEL:
            settings = {"provider": agent.provider, "model": agent.model, "baseUrl": agent.base_url}
            lines = [f"{key}: {_format_scalar(value)}" for key, value in settings.items() if value]
            return "\n".join([_MODEL_HEAD, *lines, _MODEL_REST])
        case AgentPlace.SUITES:
            return _SUITES_TEXT
        case AgentPlace.DESCRIBED:
            where = agent.targets or "the list of targets"
            return f"# The targets are described in {where}. To choose one for all evals:\n# target: NAME"


_PRESET_HEAD: Final = """\
# The agent and its protocol. For the protocols, and for agents with another one, see
# https://github.com/eval-gate/eval-gate/blob/main/docs/targets.md. The workflow has its own `agent-endpoint`."""
_ENTRY_HEAD: Final = "# The target to evaluate, and the file that describes it."
_FUNCTION_HEAD: Final = "# The Python function to evaluate, imported from the folder of this file."
_MODEL_HEAD: Final = "# The model to evaluate without an agent, with this prompt and these tools."
_MODEL_REST: Final = "# systemPromptPath: prompt.md\n# toolRegistryPath: tools.json"
_WORKERS_TEXT: Final = """\
# Number of cases to run at the same time, for all targets. Without it, `workers` of each target applies, or 1.
# concurrency: 4"""
_SUITES_TEXT: Final = """\
# The suites define their own agents, which use OpenAI's gpt-5-mini. To use another model, or your own agent:
# model: anthropic:claude-sonnet-4-5
# agentEndpoint: http://localhost:8080/chat"""


def render_workflow(agent: EvaluatedAgent, branch: str, config_name: str, *, has_packages: bool) -> str:
    """Render the workflow. `has_packages` is whether there is a list of Python packages to install."""
    changes = {"[main]": f"[{_format_scalar(_escape_pattern(branch), flow=True)}]", "eval-gate.yaml": config_name}
    is_here = agent.kind is AgentPlace.AGENT_HERE
    text = _fill_template("workflow.yml", changes | (_build_address_changes(agent) if is_here else {}))
    env = [f"          {name}: ${{{{ secrets.{name} }}}}\n" for name in agent.secrets]
    env += [f"          {name}: ${{{{ vars.{name} }}}}\n" for name in agent.variables]
    inputs = []
    if agent.entry is None and agent.endpoint is not None:
        port = f":{agent.address.port}" if agent.address.port else ""
        endpoint = agent.address._replace(netloc=HOST_NAME + port).geturl() if is_here else agent.endpoint
        inputs = [f"          agent-endpoint: {_format_scalar(endpoint)}\n"]
    block = "".join(["        env:\n", *env] if env else [] if is_here else [_NO_SECRETS])
    block += "".join(["        with:\n", *inputs] if inputs else [])
    text = _INPUTS.sub(lambda _: block, text)
    if is_here:
        return _fill_start_step(text, agent.start, has_packages)
    return _ABOUT.sub(_ABOUT_SECRETS if env else _ABOUT_TARGET, _AGENT_STEPS.sub("", text))


_AGENT_STEPS: Final = re.compile(
    r"(?ms)^      - name: Start the agent\n.*?(?=^      - uses: eval-gate/)|^      - name: Show the agent's output\n.*"
)
"""The steps of the workflow for an agent on the same machine."""
_ABOUT: Final = re.compile(r"(?m)^# TODO: change the step .*\n.*\n")
_ABOUT_SECRETS: Final = """\
# TODO: add the key as a secret of the repository, with the name below `env:`. Pull requests from forks and from
# Dependabot have no secrets, and end with an error that says so.
"""
_ABOUT_TARGET: Final = """\
# The target runs elsewhere, or the action starts it. Start everything else that the evals need in a step before the
# action. An agent that is deployed only from the default branch is not the agent of the pull request.
"""
_NO_SECRETS: Final = """\
        # env:
        #   AGENT_TOKEN: ${{ secrets.AGENT_TOKEN }}  # for targets that need it; empty for forks and Dependabot
"""


def _fill_start_step(text: str, start: str | None, has_packages: bool) -> str:
    """Fill in the command that starts the agent. Return `text` unchanged without one."""
    if start is None:
        return text
    lines = [*(_INSTALL_AGENT if has_packages else ()), f"{start} > agent.log{IN_BACKGROUND}"]
    step = "".join(f"          {line}\n" for line in lines)
    return _START.sub(lambda _: step, text).replace(_TO_START, _IS_STARTED)


IN_BACKGROUND: Final = " 2>&1 &"
"""The end of the workflow line that starts the agent."""
_INPUTS: Final = re.compile(r"(?m)^        with:\n          agent-endpoint: .*\n")
_START: Final = re.compile(r"(?m)^ +# TODO: install and start your agent.*\n.*2>&1 &\n")
_TO_START: Final = 'TODO: change the step "Start the agent" so that it starts yours.'
_IS_STARTED: Final = 'The step "Start the agent" starts it.'
_INSTALL_AGENT: Final = (
    'python3 -m venv "$RUNNER_TEMP/agent" && . "$RUNNER_TEMP/agent/bin/activate"',
    "pip install --quiet --requirement requirements.txt",
)


def remove_container(text: str, reason: str, has_packages: bool | None) -> str:
    """Render the workflow with the action that runs on the job's machine instead of in a container.

    `has_packages` is whether there is a list of packages for the commands; None if the workflow has no commands.
    """
    steps = "" if has_packages is None else _SETUP_PYTHON + (_INSTALL if has_packages else _TO_INSTALL)
    text = _IN_CONTAINER.sub("", text.replace(HOST_NAME, "localhost").replace("0.0.0.0", "127.0.0.1"))  # noqa: S104
    step = "      - uses: eval-gate/eval-gate@"
    assert step in text
    head = f"      # Runs on the runner, not in the container: {reason}.\n"
    return text.replace(step, f"{head}{steps}" + step.replace("gate@", "gate/host@"))


NEEDED_PYTHON: Final = "requirements.txt"
_INSTALL: Final = f"""\
      - name: Install what the commands need
        run: pip install --requirement {NEEDED_PYTHON}
"""
_TO_INSTALL: Final = """\
      # TODO: install what the commands need, for example
      #   pip install ...
"""
_IN_CONTAINER: Final = re.compile(
    r"(?m) The action runs in a container, and\n# reaches the agent at http\S+ only if it[^\n]*"
)
_SETUP_PYTHON: Final = """\
      - uses: actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0
        with:
          python-version: "3.13"
"""


def _build_address_changes(agent: EvaluatedAgent) -> dict[str, str]:
    """Build the address replacements: the start step reaches the agent from the machine, the action in a container."""
    parts = agent.address
    port = f":{parts.port}" if parts.port else ""
    return {
        "http://localhost:8080/": f"{parts.scheme}://localhost{port}/",
        "--port 8080": f"--port {parts.port or PORTS[parts.scheme]}",
    }


def _fill_template(name: str, changes: Mapping[str, str]) -> str:
    """Fill in a template in one pass, so that inserted text is not replaced again."""
    pattern = "|".join(re.escape(old) for old in changes)
    return re.sub(pattern, lambda match: changes[match[0]], _read_template(name))


def _read_template(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")


def _escape_pattern(branch: str) -> str:
    """Escape a branch name so that, as a pattern of a workflow, it matches only this branch."""
    return re.sub(r"([\\*?+!\[\]])", r"\\\1", branch)


def _format_scalar(text: str, *, flow: bool = False) -> str:
    """Format a text as YAML, in quotes unless YAML reads it back unchanged; `flow`: in a list in brackets."""
    import yaml

    try:
        same: object = yaml.safe_load(f"[{text}]" if flow else f"- {text}")
    except yaml.YAMLError:
        same = None
    if same == [text]:
        return text
    quoted: str = yaml.dump(text, default_style='"', allow_unicode=True, width=sys.maxsize)
    return quoted.rstrip("\n")
