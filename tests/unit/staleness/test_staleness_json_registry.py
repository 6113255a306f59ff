"""Tool definitions in JSON: every shape people have them in, and all problems of a file at once."""

import json

import pytest

from eval_gate.errors import GateError
from eval_gate.staleness.json_registry import load_json
from eval_gate.staleness.tool_registry import ToolDefinition, ToolRegistry

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ToolDefinition(name="get_weather", description="Gets it.", parameters=SCHEMA)


def load(folder, document) -> ToolRegistry:
    file = folder / "tools.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return load_json(file, "config/tools.json", file.parent)


def problems(folder, document) -> list[str]:
    with pytest.raises(GateError) as caught:
        load(folder, document)
    assert caught.value.exit_code == 2
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.contract("registry.json")
@pytest.mark.parametrize(
    "document",
    [
        pytest.param([{"name": "get_weather", "description": "Gets it.", "parameters": SCHEMA}], id="plain list"),
        pytest.param([{"name": "get_weather", "description": "Gets it.", "schema": SCHEMA}], id="schema"),
        pytest.param([{"name": "get_weather", "description": "Gets it.", "input_schema": SCHEMA}], id="Anthropic"),
        pytest.param(
            {"tools": [{"name": "get_weather", "description": "Gets it.", "inputSchema": SCHEMA}], "nextCursor": None},
            id="MCP tools/list",
        ),
        pytest.param(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "result": {"tools": [{"name": "get_weather", "description": "Gets it.", "inputSchema": SCHEMA}]},
            },
            id="MCP answer",
        ),
        pytest.param(
            [
                {
                    "type": "function",
                    "function": {"name": "get_weather", "description": "Gets it.", "parameters": SCHEMA},
                }
            ],
            id="OpenAI chat",
        ),
        pytest.param(
            {"tools": [{"type": "function", "name": "get_weather", "description": "Gets it.", "parameters": SCHEMA}]},
            id="OpenAI responses",
        ),
        pytest.param(
            [{"name": "get_weather", "description": "Gets it.", "schema": {"city": {"type": "string"}}}],
            id="short schema of tool-forge",
        ),
    ],
)
def test_load_json__known_shape__gives_the_tool(tmp_path, document) -> None:
    found = load(tmp_path, document)
    assert found.tools == (WEATHER,)
    assert (found.source, found.size, found.notices) == ("config/tools.json", 1, ())


@pytest.mark.parametrize(
    ("fields", "version", "status"),
    [
        ({"version": "1.2.0", "status": "deprecated"}, "1.2.0", "deprecated"),
        ({"_meta": {"version": "2.0"}}, "2.0", None),
        ({"_meta": {"example.com/version": "3.0"}}, "3.0", None),
        ({"_meta": {"a/version": "3.0", "b/version": "4.0"}}, None, None),
        ({"_meta": {"version": 2}}, None, None),
        ({"version": "1.0", "_meta": {"version": "2.0"}}, "1.0", None),
        ({"version": None, "description": None, "parameters": None, "annotations": {"x": 1}}, None, None),
    ],
)
def test_load_json__version_and_status__are_read(tmp_path, fields, version, status) -> None:
    [tool] = load(tmp_path, [{"name": "a"} | fields]).tools
    assert (tool.version, tool.status) == (version, status)


def test_load_json__built_in_tool__is_counted_with_a_notice(tmp_path) -> None:
    found = load(tmp_path, [{"type": "web_search"}, {"type": "code", "name": "run"}, {"type": "web_search"}])
    assert [tool.name for tool in found.tools] == ["run"]
    assert (found.size, len(found.notices)) == (3, 2)
    assert "web_search" in found.notices[0]


def test_load_json__no_tools__is_an_empty_registry(tmp_path) -> None:
    assert load(tmp_path, []).size == 0


def test_load_json__many_mistakes__are_all_named_with_line_and_field(tmp_path) -> None:
    text = """{"tools": [
  {"name": "a", "description": 7,
   "parameters": "none"},
  {"description": "no name"},
  {"name": ""},
  "get_weather",
  {"type": "function", "function": {"name": 1}},
  {"name": "b"},
  {"name": "b",
   "version": ["1"]},
  {"name": "b"},
  {"name": "c", "status": "\\ud800"},
  {"type": "function", "function": null}
]}"""
    assert problems(tmp_path, text) == [
        "config/tools.json:2: tools[0].description: expected text, got the number 7",
        'config/tools.json:3: tools[0].parameters: expected a mapping, got text "none"',
        "config/tools.json:4: tools[1].name: is missing",
        "config/tools.json:5: tools[2].name: must not be empty",
        'config/tools.json:6: tools[3]: expected a tool, got text "get_weather"',
        "config/tools.json:7: tools[4].function.name: expected text, got the number 1",
        "config/tools.json:10: tools[6].version: expected text, got a list",
        'config/tools.json:9: tools[6].name: "b" is also the name of an earlier tool',
        'config/tools.json:11: tools[7].name: "b" is also the name of an earlier tool',
        "config/tools.json:12: tools[8].status: contains half of a surrogate pair, which is not a character",
        "config/tools.json:13: tools[9].function: expected a tool, got null",
    ]


@pytest.mark.parametrize(
    ("document", "place", "got"),
    [
        ("{}", "", "got a mapping"),
        ('{"tools": {"a": {}}}', "tools: ", "got a mapping"),
        ('"tools"', "", 'got text "tools"'),
        ("null", "", "got null"),
        ('{"result": null}', "result: ", "got null"),
    ],
)
def test_load_json__another_shape__says_which_are_known(tmp_path, document, place, got) -> None:
    [problem] = problems(tmp_path, document)
    assert problem.startswith(f"config/tools.json:1: {place}expected a list of tools, {{tools: [...]}}")
    assert problem.endswith(got)


def test_load_json__not_json__names_file_and_line(tmp_path) -> None:
    assert problems(tmp_path, '[\n  {"name": "a"}\n  {"name": "b"}]')[0].startswith("config/tools.json:3: ")
