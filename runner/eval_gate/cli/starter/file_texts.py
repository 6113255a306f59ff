"""Renders the starter files from the templates in `files/`."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from eval_gate.cli.starter.agent_detection import FoundAgent
from eval_gate.cli.starter.evaluated_agent import AGENT_EVALS, COMMAND_NAME, AgentPlace, EvaluatedAgent
from eval_gate.cli.starter.folder_contents import FoundTools
from eval_gate.cli.starter.route_contract import PROMPT_FIELD, RESPONSE_FIELD, RouteContract
from eval_gate.targets.container import HOST_NAME

_FILES: Final = Path(__file__).with_name("files")
_EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "tool-forge": ("hello.golden.json",),
    "agentv": ("hello.eval.yaml", "checks/answers.py"),
    AGENT_EVALS: ("hello.json",),
}
_PORTS: Final = {"http": 80, "https": 443}


NO_TOOLS: Final = FoundTools()
_REGISTRY: Final = "# The agent's tools. Evals of tools that were removed or changed are reported as stale."
_SNAPSHOT: Final = "# Values for {{snapshot:...}} tokens in evals."


def read_example(kind: str) -> dict[str, str]:
    """Read the example eval of a format: the names of its files with their texts."""
    return {name: _read_template(name) for name in _EXAMPLES[kind]}


def render_gitignore(results: str) -> str:
    """Render a `.gitignore` that excludes the results."""
    return f"# Results of `eval-gate run`\n{results}\n"


def render_targets(agent: EvaluatedAgent, contract: RouteContract) -> str:
    """Render a list with one target: the agent as its source describes the route."""
    lines = [
        _TARGETS_HEAD.format(route=agent.address.path, name=COMMAND_NAME, host=HOST_NAME),
        "targets:",
        f"  - name: {COMMAND_NAME}",
        "    provider: http",
        f"    url: {_format_scalar(agent.endpoint or '')}",
    ]
    if contract.headers:
        lines += [
            "    # Any value that the agent accepts when a test starts it. Write a real key as ${{ NAME }}.",
            "    headers:",
        ]
        lines += [f"      {_format_scalar(name)}: {_format_header(name)}" for name in contract.headers]
    if contract.prompt_field is None:
        lines.append(
            f"    # TODO: if the field of the prompt is not `{PROMPT_FIELD}`, uncomment this line and name it."
        )
        lines.append('    # requestTemplate: { FIELD: "{{message}}" }')
    else:
        lines.append("    # The body of a request. {{message}} is the prompt of the case.")
        lines.append(
            f'    requestTemplate: {{ {_format_scalar(contract.prompt_field, flow=True)}: "{{{{message}}}}" }}'
        )
    if contract.other_fields:
        lines.append(f"    # TODO: add what the request needs, too: {', '.join(contract.other_fields)}.")
    if contract.response_path is None:
        lines.append(
            f"    # TODO: if the text of the response is not `{RESPONSE_FIELD}`, uncomment this line and name it."
        )
        lines.append("    # responsePath: FIELD")
    elif contract.response_path != RESPONSE_FIELD:
        lines.append("    # Where the text of the response is.")
        lines.append(f"    responsePath: {_format_scalar(contract.response_path)}")
    return "\n".join(lines) + "\n"


def _format_header(name: str) -> str:
    return "Bearer only-in-ci" if name.lower() == "authorization" else "only-in-ci"


_TARGETS_HEAD: Final = """\
# The request of {route}, as `eval-gate init` read it in the source of your agent. Check it, then run
#   eval-gate run --targets targets.yaml --target {name}
# The configuration does not use it: to make it the default, replace `agentEndpoint` there by `target: {name}`, and
# `agent-endpoint` in the workflow by `target: {name}`. In its container, the action reaches your agent at
# {host} instead of localhost.
# All settings: https://github.com/eval-gate/eval-gate/blob/main/docs/targets.md#http-agents"""


def render_config(
    agent: EvaluatedAgent,
    evals: Sequence[str],
    seed: str | None = None,
    tools: FoundTools = NO_TOOLS,
    *,
    strict: bool = True,
) -> str:
    """Render the configuration: where the evals are, the target, and other settings as comments.

    Without `strict`, that setting is a comment, too.
    """
    paragraphs = {_find_setting(one): one for one in _read_template("eval-gate.yaml").rstrip("\n").split("\n\n")}
    places = "".join(f"\n  - {_format_scalar(place)}" for place in evals)
    paragraphs["evals"] = paragraphs["evals"].removesuffix("\n  - evals") + places
    if seed is not None:
        paragraphs["evals"] += (
            f"\n\n# Values for {{{{seed:...}}}} tokens in evals.\nseedManifestPath: {_format_scalar(seed)}"
        )
    if tools.registry is not None:
        paragraphs["evals"] += f"\n\n{_REGISTRY}\ntoolRegistryPath: {_format_scalar(tools.registry)}"
    if tools.snapshot is not None:
        paragraphs["evals"] += f"\n\n{_SNAPSHOT}\nsnapshotPath: {_format_scalar(tools.snapshot)}"
    if not strict:
        paragraphs["strict"] = re.sub(r"(?m)^strict:", "# strict:", paragraphs["strict"])
    if agent.kind is AgentPlace.DESCRIBED and agent.command is None:
        paragraphs["concurrency"] = _WORKERS_TEXT
    paragraphs["agentEndpoint"] = _render_target(agent, paragraphs["agentEndpoint"])
    if agent.command is not None:
        steps = {len(PurePosixPath(place).parts) for place in evals}
        up = "/".join([".."] * steps.pop()) if len(steps) == 1 else ".."
        paragraphs["agentEndpoint"] = paragraphs["agentEndpoint"].replace("cwd: .", f"cwd: {up or '.'}")
    return "\n\n".join(paragraphs.values()) + "\n"


def _find_setting(paragraph: str) -> str:
    """Find the setting that a paragraph of the configuration is about, even if it is commented out.

    Return an empty string for the heading.
    """
    found = re.search(r"(?m)^(?:# )?([a-z]\w*):", paragraph)
    return found[1] if found else ""


def _render_target(agent: EvaluatedAgent, usual: str) -> str:
    """Render the paragraph of the configuration that chooses the target.

    `usual` is the paragraph of the template, which chooses an agent.
    """
    match agent.kind:
        case AgentPlace.AGENT_HERE | AgentPlace.AGENT_ELSEWHERE:
            if agent.preset is None:
                return re.sub(r"(?m)^agentEndpoint: .*$", f"agentEndpoint: {agent.endpoint}", usual)
            return f"{_PRESET_HEAD}\nagentEndpoint: {agent.endpoint}\nagentProtocol: {agent.preset}"
        case AgentPlace.MODEL:
            said = {"provider": agent.provider, "model": agent.model, "baseUrl": agent.base_url}
            lines = [f"{key}: {_format_scalar(value)}" for key, value in said.items() if value]
            return "\n".join([_MODEL_HEAD, *lines, _MODEL_REST])
        case AgentPlace.SUITES:
            return _SUITES_TEXT
        case AgentPlace.DESCRIBED if agent.command is not None:
            lines = ["targets:", f"  - name: {COMMAND_NAME}", "    provider: cli"]
            lines += [f"    command_template: {_format_scalar(agent.command)}", "    cwd: .", f"target: {COMMAND_NAME}"]
            return "\n".join([_COMMAND_HEAD, *lines])
        case AgentPlace.DESCRIBED:
            where = agent.targets or "the list of targets"
            return f"# The targets are described in {where}. To choose one for all evals:\n# target: NAME"


_PRESET_HEAD: Final = """\
# The agent and its protocol. For the protocols, and for agents with another one, see
# https://github.com/eval-gate/eval-gate/blob/main/docs/targets.md. The workflow has its own `agent-endpoint`."""
_COMMAND_HEAD: Final = """\
# The agent: this command runs for each case. The response is its output, or the content of {OUTPUT_FILE}.
# `cwd` is relative to the folder of the eval file. Pass secrets with `env`."""
_MODEL_HEAD: Final = "# The model to evaluate without an agent, with this prompt and these tools."
_MODEL_REST: Final = "# systemPromptPath: prompt.md\n# toolRegistryPath: tools.json"
_WORKERS_TEXT: Final = """\
# Number of cases to run at the same time, for all targets. Without it, `workers` of each target applies, or 1.
# concurrency: 4"""
_SUITES_TEXT: Final = """\
# The suites define their own agents, which use OpenAI's gpt-5-mini. To use another model, or your own agent:
# model: anthropic:claude-sonnet-4-5
# agentEndpoint: http://localhost:8080/chat"""


def render_workflow(agent: EvaluatedAgent, branch: str, config_name: str, *, config_says: bool) -> str:
    """Render the workflow.

    `config_says` is whether the configuration names the model or preset, so that the workflow need not repeat
    it.
    """
    shared = {"[main]": f"[{_format_scalar(_escape_pattern(branch), flow=True)}]", "eval-gate.yaml": config_name}
    match agent.kind:
        case AgentPlace.AGENT_HERE:
            text = _fill_template("workflow-agent.yml", shared | _build_address_changes(agent))
            if agent.preset is not None and not config_says:
                text = re.sub(
                    r"(?m)^( +)agent-endpoint: .*$",
                    lambda line: f"{line[0]}\n{line[1]}agent-protocol: {_format_scalar(agent.preset or '')}",
                    text,
                )
            return _fill_start_step(text, agent.found_agent)
        case AgentPlace.MODEL | AgentPlace.SUITES if agent.secrets:
            text = _fill_template("workflow-model.yml", shared)
            lines = [f"          {name}: ${{{{ secrets.{name} }}}}\n" for name in agent.secrets]
            lines += [f"          {name}: ${{{{ vars.{name} }}}}\n" for name in agent.variables]
            text = text.replace("          OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY }}\n", "".join(lines))
        case _:
            text = _fill_template("workflow-elsewhere.yml", shared)
    said = {"agent-endpoint": agent.endpoint}
    if not config_says:
        said |= {"agent-protocol": agent.preset, "provider": agent.provider, "model": agent.model}
        said |= {"base-url": agent.base_url}
    inputs = "".join(f"          {name}: {_format_scalar(value)}\n" for name, value in said.items() if value)
    return text + (f"        with:\n{inputs}" if inputs else "")


def _fill_start_step(text: str, agent: FoundAgent | None) -> str:
    """Fill in the workflow step that starts the agent.

    Return `text` unchanged if the start command is not known.
    """
    if agent is None or agent.start is None:
        return text
    lines = [
        f"# guessed from {agent.source}; it must listen on 0.0.0.0",
        *agent.install,
        f"{agent.start} > agent.log{IN_BACKGROUND}",
    ]
    step = "".join(f"          {line}\n" for line in lines)
    return _START.sub(lambda _: step, text).replace(_TO_START, _IS_STARTED)


IN_BACKGROUND: Final = " 2>&1 &"
"""What the line of a workflow that starts the agent ends with."""
_START: Final = re.compile(r"(?m)^ +# TODO: install and start your agent.*\n.*2>&1 &\n")
_TO_START: Final = 'TODO: change the step "Start the agent" so that it starts yours.'
_IS_STARTED: Final = 'Check the step "Start the agent": it must start yours.'


def remove_container(text: str, because: Sequence[str], manifests: Sequence[str]) -> str:
    """Render the workflow with the action that runs on the job's machine instead of in a container.

    `because` are the reasons, which become comments. `manifests` are the package lists to install from.
    """
    install = [_INSTALL[name] for name in manifests] or [
        "# TODO: install what the commands need, for example\n#   pip install ..."
    ]
    steps = _SETUP.replace("INSTALL", "\n".join(install).replace("\n", "\n          "))
    if not manifests:  # nothing to run yet
        steps = _SETUP.partition("      - name:")[0] + "      " + install[0].replace("\n", "\n      ") + "\n"
    why = "".join(f"      #   {one}\n" for one in because[:_MAX_REASONS])
    text = _IN_CONTAINER.sub("", text.replace(HOST_NAME, "localhost").replace("0.0.0.0", "127.0.0.1"))  # noqa: S104
    head = "      # Runs on the runner instead of in the container, because the image lacks what these need:\n"
    step = "      - uses: eval-gate/eval-gate@"
    assert step in text
    return text.replace(step, f"{head}{why}{steps}" + step.replace("gate@", "gate/host@"))


def join_reasons(because: Sequence[str]) -> str:
    """Join the reasons in one line, with a count of those beyond the first `_MAX_REASONS`."""
    more = len(because) - _MAX_REASONS
    return "; ".join(because[:_MAX_REASONS]) + (f"; and {more} more" if more > 0 else "")


_MAX_REASONS: Final = 5
NEEDED_PYTHON: Final = "requirements.txt"
NEEDED_NODE: Final = "package-lock.json"
_INSTALL: Final = {NEEDED_PYTHON: f"pip install --requirement {NEEDED_PYTHON}", NEEDED_NODE: "npm ci"}
_IN_CONTAINER: Final = re.compile(
    r"(?m) The action runs in a container, and\n# reaches the agent at http\S+ only if it[^\n]*"
)
_SETUP: Final = """\
      - uses: actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0
        with:
          python-version: "3.13"
      - name: Install what the commands need
        run: |
          INSTALL
"""


def _build_address_changes(agent: EvaluatedAgent) -> dict[str, str]:
    """Build the address replacements for the template, as the start step and the action reach the agent.

    The start step is on the machine, the action in a container.
    """
    parts = agent.address
    port = f":{parts.port}" if parts.port else ""
    return {
        f"http://{HOST_NAME}:8080/chat": parts._replace(netloc=HOST_NAME + port).geturl(),
        "http://localhost:8080/": f"{parts.scheme}://localhost{port}/",
        "--port 8080": f"--port {parts.port or _PORTS[parts.scheme]}",
    }


def _fill_template(name: str, changes: Mapping[str, str]) -> str:
    """Fill in a template by replacing each text in `changes`.

    All texts are replaced in one pass, so inserted text is not replaced again.
    """
    pattern = "|".join(re.escape(old) for old in changes)
    return re.sub(pattern, lambda match: changes[match[0]], _read_template(name))


def _read_template(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")


def _escape_pattern(branch: str) -> str:
    """Escape a branch name so that, as a pattern of a workflow, it matches only this branch."""
    return re.sub(r"([\\*?+!\[\]])", r"\\\1", branch)


def _format_scalar(text: str, *, flow: bool = False) -> str:
    """Format a text as YAML: plain if YAML reads it back unchanged, else in quotes.

    `flow` is whether the text stands in a list in brackets.
    """
    import yaml

    try:
        same: object = yaml.safe_load(f"[{text}]" if flow else f"- {text}")
    except yaml.YAMLError:
        same = None
    if same == [text]:
        return text
    quoted: str = yaml.dump(text, default_style='"', allow_unicode=True, width=sys.maxsize)
    return quoted.rstrip("\n")
