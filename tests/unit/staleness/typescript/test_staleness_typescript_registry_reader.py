"""Barrels and folders of TypeScript and JavaScript, as people write them and as they break."""

import os
from pathlib import Path

import pytest

from eval_gate.errors import GateError
from eval_gate.staleness.tool_registry import ToolRegistry
from eval_gate.staleness.typescript import source_files as js_files
from eval_gate.staleness.typescript.registry_reader import MAX_NOTICES, load_barrel, load_folder


def put(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())


def tool(name: str, *, export: str = "export const {name}Tool = ", after: str = "", description: str = "'d'") -> str:
    opening = export.replace("{name}", name)
    return f"{opening}{{ name: '{name}', description: {description}, version: '1.0.0' }}{after};\n"


def barrel(folder: Path, text: str, **files: str) -> ToolRegistry:
    put(folder, {"tools.exports.ts": text} | {name.replace("_", "."): body for name, body in files.items()})
    return load_barrel(folder / "tools.exports.ts", "tools.exports.ts", folder)


def names(registry: ToolRegistry) -> list[str]:
    return [found.name for found in registry.tools]


@pytest.mark.contract("registry.barrel")
@pytest.mark.parametrize(
    "line",
    [
        "export { aTool } from './a.tool';",
        "export { aTool } from './a.tool.js';",
        "export { aTool } from './a.tool.ts'",
        'export { aTool as other } from "./a.tool";',
        "export * from './a.tool';",
        "export { default } from './default.tool';",
        "export { default as aTool } from './default.tool';",
        "import { aTool } from './a.tool'; export { aTool };",
        "import { aTool as b } from './a.tool'; export { b as c };",
        "import a from './default.tool'; export { a };",
        "import a from './default.tool'; export default a;",
        "import { aTool } from './a.tool';\nexport { aTool };\nexport { aTool as again };",
        "export { aTool } from './folder';",
        "export { aTool } from './stars';",
        "// export { gone } from './gone';\n/* export { gone2 } from './gone'; */\nexport { aTool } from './a.tool'",
        "export type { Tool } from './types';\nexport { type Tool as T, aTool } from './a.tool';",
        "\ufeffexport { aTool } from './a.tool';",
        "export {\n  aTool, // the first\n} from './a.tool';",
    ],
)
def test_barrel__one_tool__is_found_however_it_is_exported(tmp_path, line) -> None:
    put(
        tmp_path,
        {
            "a.tool.ts": tool("a"),
            "default.tool.ts": tool("a", export="export default "),
            "folder/index.ts": "export { aTool } from '../a.tool';",
            "stars.ts": "export * from './empty';\nexport * from './a.tool';",
            "empty.ts": "export const nothing = 1;",
        },
    )
    found = barrel(tmp_path, line)
    assert (names(found), found.unresolved_tools, found.notices) == (["a"], (), ())
    assert found.source == "tools.exports.ts"


@pytest.mark.contract("registry.tool-file")
@pytest.mark.parametrize("suffix", [".ts", ".js", ".mjs"])
@pytest.mark.parametrize(
    "body",
    [
        tool("a"),
        tool("a", export="const aTool = ") + "export { aTool };",
        tool("a", export="const local = ") + "export { local as aTool };",
        tool("a", export="const local = ") + "export default local;",
        tool("a", export="export default "),
        tool("a", export="export let aTool = "),
        tool("a", export="export const aTool = (", after=")"),
    ],
)
def test_folder__plain_tool_file__is_read(tmp_path, suffix, body) -> None:
    put(tmp_path, {f"tools/a.tool{suffix}": body})
    found = load_folder(tmp_path / "tools", tmp_path)
    assert names(found) == ["a"]
    assert (found.size, found.notices, found.source) == (1, (), "tools")
    assert (found.tools[0].description, found.tools[0].version) == ("d", "1.0.0")


@pytest.mark.contract("registry.tool-file")
@pytest.mark.parametrize(
    "body",
    [
        tool("a", export="export const aTool: ToolDefinition<{ name: string }> = "),
        tool("a", after=" satisfies ToolDefinition"),
        tool("a", after=" as const"),
        tool("a", after=" as const satisfies ToolDefinition"),
        tool("a", export="export default ", after=" satisfies ToolDefinition"),
        tool("a", export="export const aTool = <ToolDefinition>"),
    ],
)
def test_folder__tool_file_with_types__is_read(tmp_path, body) -> None:
    put(tmp_path, {"a.tool.ts": "import type { ToolDefinition } from './types';\n" + body})
    assert names(load_folder(tmp_path, tmp_path)) == ["a"]


@pytest.mark.contract("staleness.hash.real-string")
@pytest.mark.parametrize(
    ("body", "description"),
    [
        pytest.param(
            """// name: 'wrong', description: 'wrong'
            export const aTool = { name: 'a', description: 'right' };""",
            "right",
            id="commented keys",
        ),
        pytest.param(
            """export const aTool = {
              schema: { name: { type: 'string', description: 'wrong' }, description: { type: 'string' } },
              /* description: 'wrong', */
              name: 'a', description: 'right',
              execute() { const x = { name: 'wrong', description: 'wrong' }; return x; } };""",
            "right",
            id="nested keys come first",
        ),
        pytest.param(
            """export const aTool = { name: 'a', description: "Gets the user's balance" };""",
            "Gets the user's balance",
            id="apostrophe",
        ),
        pytest.param(
            """export const aTool = { name: 'a', description:
                'A. ' +
                'B.' };""",
            "A. B.",
            id="sum over lines",
        ),
        pytest.param("export const aTool = { 'name': 'a', 'description': `r` };", "r", id="quoted keys"),
        pytest.param("export const aTool = { name: 'a', description: null };", None, id="null"),
    ],
)
def test_folder__description__is_the_real_one(tmp_path, body, description) -> None:
    put(tmp_path, {"a.tool.ts": body})
    found = load_folder(tmp_path, tmp_path)
    assert [(t.name, t.description) for t in found.tools] == [("a", description)]
    assert found.notices == ()


@pytest.mark.contract("registry.never-executed")
@pytest.mark.parametrize("key", ["description", "version", "status"])
@pytest.mark.parametrize("value", ["`x ${y}`", "TEXT", "text()", "12"])
def test_folder__value_that_is_no_plain_string__is_unknown_with_a_notice(tmp_path, key, value) -> None:
    put(tmp_path, {"tools/a.tool.ts": f"\nexport const aTool = {{ name: 'a', description: 'd', {key}: {value} }};"})
    found = load_folder(tmp_path / "tools", tmp_path)
    assert getattr(found.tools[0], key) is None
    assert found.notices == (f"tools/a.tool.ts:2: the {key} of a is not a plain string and is not checked",)


@pytest.mark.contract("registry.size")
@pytest.mark.contract("registry.never-executed")
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("export { x } from './missing';", 'tools.exports.ts:1: x cannot be read: "./missing" does not exist'),
        ("export { x } from 'package';", 'tools.exports.ts:1: x cannot be read: "package" is not a relative path'),
        ("export { x } from './a';", "tools.exports.ts:1: x cannot be read: a.ts does not export x"),
        ("export { default } from './a';", "tools.exports.ts:1: default cannot be read: a.ts does not export default"),
        ("export { x };", "tools.exports.ts:1: x cannot be read: it is not defined in tools.exports.ts"),
        ("export * as x from './a';", "tools.exports.ts:1: x cannot be read: it is a whole module"),
        ("export { made } from './a';", "a.ts:2: made cannot be read: it is not an object literal"),
        ("export { named } from './a';", "a.ts:3: named cannot be read: its name is not a plain string"),
        ("export { spread } from './a';", "a.ts:4: spread cannot be read: its name is not a plain string"),
        ("export { x } from './broken';", "tools.exports.ts:1: x cannot be read: syntax error in broken.ts:2"),
        (
            "export * from './broken';",
            "tools.exports.ts:1: * from ./broken cannot be read: syntax error in broken.ts:2",
        ),
        ("export { x } from './latin';", "tools.exports.ts:1: x cannot be read: latin.ts is not UTF-8 text"),
        ("export { x } from './circle';", "tools.exports.ts:1: x cannot be read: circle.ts does not export x"),
        ("export { x } from './stars';", "tools.exports.ts:1: x cannot be read: stars.ts does not export x"),
        pytest.param(
            f"export {{ x }} from './{'a' * 300}';",
            f'tools.exports.ts:1: x cannot be read: "./{"a" * 78}" does not exist',
            id="a name too long",
        ),
    ],
)
def test_barrel__unresolvable_export__is_counted_with_a_notice(tmp_path, line, why) -> None:
    put(
        tmp_path,
        {
            "a.ts": tool("a")
            + "export const made = defineTool({ name: 'made' });\n"
            + "export const named = { name: NAME, description: 'd' };\n"
            + "export const spread = { ...base, description: 'd' };\n",
            "broken.ts": "export const x = { name: 'x', description: 'd' };\nconst = {\n",
            "circle.ts": "export { x } from './circle';",
            "stars.ts": "export * from './stars2';",
            "stars2.ts": "export * from './stars';",
        },
    )
    (tmp_path / "latin.ts").write_bytes(b"export const x = { name: '\xe9' };")
    found = barrel(tmp_path, line + "\nexport { aTool } from './a';")
    assert found.notices == (why,)
    assert (names(found), found.size, len(found.unresolved_tools)) == (["a"], 2, 1)


def test_barrel__export_that_is_certainly_no_tool__is_not_counted_but_said(tmp_path) -> None:
    found = barrel(
        tmp_path,
        """export const ALL = [1];
        export function run() {}
        export class Tool {}
        export const VERSION = '1';
        export const LIMITS = { max: 3 };
        export const go = async () => 1;
        export interface Shape { a: string }
        export enum Kind { A }
        """,
    )
    assert found.size == 0
    assert [notice.split(": ")[1] for notice in found.notices] == [
        f"{name} is not a tool definition and is not counted"
        for name in ("ALL", "run", "Tool", "VERSION", "LIMITS", "go")
    ]


def test_barrel__star_over_helpers__takes_only_what_looks_like_a_tool(tmp_path) -> None:
    put(
        tmp_path,
        {
            "a.ts": tool("a")
            + "export const schema = z.object({});\nexport const category = { name: 'Weather' };\n"
            + "export const bTool = defineTool({});\nexport default { name: 'd', description: 'd' };",
        },
    )
    found = barrel(tmp_path, "export * from './a';\nexport * from './a';")
    assert (names(found), found.unresolved_tools) == (["a"], ("bTool",))


def test_barrel__with_a_syntax_error__believes_nothing_and_counts_what_it_names(tmp_path) -> None:
    found = barrel(tmp_path, "export { aTool } from './a';\nexport const bTool = 1;\nexport {", a_ts=tool("a"))
    assert (found.tools, found.unresolved_tools) == ((), ("aTool", "bTool"))
    assert found.notices == tuple(
        f"tools.exports.ts:3: {name} cannot be read: syntax error" for name in ("aTool", "bTool")
    )


@pytest.mark.parametrize("source", ["export {", "export { x } from './a\0';", "(" * 1000, "export * from './a';\n=\n"])
def test_barrel__that_is_no_code__is_one_tool_that_could_not_be_read(tmp_path, source) -> None:
    assert barrel(tmp_path, source).size == 1


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\xff\xfe", "tools.exports.ts is not UTF-8 text"),
        (b"/" * 1_000_001, "tools.exports.ts is larger than 1,000,000 bytes"),
    ],
    ids=["not text", "too large"],
)
def test_barrel__no_source_to_read__is_refused(tmp_path, content, why) -> None:
    (tmp_path / "tools.exports.ts").write_bytes(content)
    with pytest.raises(GateError) as caught:
        load_barrel(tmp_path / "tools.exports.ts", "tools.exports.ts", tmp_path)
    assert (caught.value.code, caught.value.message) == ("registry-unreadable", why)


@pytest.mark.parametrize("specifier", ["../outside/a.tool", "../../etc/passwd", "./link.tool", "./linked/a.tool"])
def test_barrel__path_out_of_the_repository__is_not_followed(tmp_path, specifier) -> None:
    root = tmp_path / "repository"
    put(
        tmp_path,
        {"outside/a.tool.ts": tool("a"), "repository/tools.exports.ts": f"export {{ aTool }} from '{specifier}'"},
    )
    (root / "link.tool.ts").symlink_to(tmp_path / "outside/a.tool.ts")
    (root / "linked").symlink_to(tmp_path / "outside", target_is_directory=True)
    found = load_barrel(root / "tools.exports.ts", "tools.exports.ts", root)
    assert (found.tools, found.unresolved_tools) == ((), ("aTool",))
    assert found.notices == (f'tools.exports.ts:1: aTool cannot be read: "{specifier}" is outside of the repository',)


def test_barrel__above_its_folder_but_in_the_repository__is_followed(tmp_path) -> None:
    put(tmp_path, {"src/a.tool.ts": tool("a"), "config/tools.exports.ts": "export { aTool } from '../src/a.tool';"})
    found = load_barrel(tmp_path / "config/tools.exports.ts", "config/tools.exports.ts", tmp_path)
    assert (names(found), found.source) == (["a"], "config/tools.exports.ts")


def test_barrel__javascript_and_compiled_name__prefer_what_the_importer_means(tmp_path) -> None:
    put(
        tmp_path,
        {
            "a.tool.ts": tool("a", description="'source'"),
            "a.tool.js": tool("a", description="'compiled'"),
            "b.ts": "export { aTool } from './a.tool.js';",
            "b.js": "export { aTool } from './a.tool.js';",
        },
    )
    assert load_barrel(tmp_path / "b.ts", "b.ts", tmp_path).tools[0].description == "source"
    assert load_barrel(tmp_path / "b.js", "b.js", tmp_path).tools[0].description == "compiled"


def test_folder__two_tools_of_one_name__first_is_used_and_both_are_counted(tmp_path) -> None:
    put(tmp_path, {"a.tool.ts": tool("x", description="'first'"), "b.tool.ts": tool("x", description="'second'")})
    found = load_folder(tmp_path, tmp_path)
    assert [t.description for t in found.tools] == ["first"]
    assert (found.size, found.notices) == (2, ("b.tool.ts:1: x cannot be read: an earlier tool has the same name",))


def test_folder__several_files__reads_tool_files_only_and_in_order(tmp_path) -> None:
    put(
        tmp_path,
        {
            "b.tool.js": tool("b"),
            "a.tool.ts": tool("a") + "export const schema = z.object({});\nexport function helper() {}",
            "deep/c.tool.mjs": tool("c"),
            "again.tool.ts": "export { aTool } from './a.tool';",
            "helper.ts": tool("helper"),
            "a.tool.test.ts": tool("test"),
            "node_modules/x/x.tool.js": tool("x"),
            ".cache/y.tool.js": tool("y"),
            "empty.tool.ts": "export const schema = z.object({});",
            "broken.tool.ts": "export const = {",
        },
    )
    found = load_folder(tmp_path, tmp_path)
    assert names(found) == ["a", "b", "c"]
    assert found.unresolved_tools == ("broken.tool.ts", "empty.tool.ts")
    assert found.notices == (
        "syntax error in broken.tool.ts:1",
        "empty.tool.ts exports no tool definition",
    )


def test_folder__without_tool_files__is_none(tmp_path) -> None:
    put(tmp_path, {"index.ts": tool("a")})
    assert load_folder(tmp_path, tmp_path) is None


def test_folder__link_to_a_file_outside__is_not_read(tmp_path) -> None:
    put(tmp_path, {"outside.tool.ts": tool("a"), "tools/b.tool.ts": tool("b")})
    (tmp_path / "tools/a.tool.ts").symlink_to(tmp_path / "outside.tool.ts")
    found = load_folder(tmp_path / "tools", tmp_path / "tools")
    assert (names(found), found.unresolved_tools) == (["b"], ("a.tool.ts",))
    assert "is outside of the repository" in found.notices[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_folder__named_pipe__does_not_hang(tmp_path) -> None:
    os.mkfifo(tmp_path / "a.tool.ts")
    assert load_folder(tmp_path, tmp_path).notices == ("a.tool.ts is not a file",)


def test_folder__too_many_files__is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(js_files, "MAX_FILES", 2)
    put(tmp_path, {f"t{number}.tool.ts": tool(f"t{number}") for number in range(3)})
    with pytest.raises(GateError) as caught:
        load_folder(tmp_path, tmp_path)
    assert caught.value.code == "registry-too-large"


def test_barrel__very_many_notices__are_bounded(tmp_path) -> None:
    lines = "\n".join(f"export {{ x{number} }} from './missing{number}';" for number in range(200))
    found = barrel(tmp_path, lines)
    assert (found.size, len(found.notices)) == (200, MAX_NOTICES + 1)
    assert found.notices[-1] == "tools.exports.ts: 150 more notices about tool definitions"


@pytest.mark.slow
def test_barrel__long_chain_of_stars__is_followed_without_recursion(tmp_path) -> None:
    chain = {f"m{number}.ts": f"export * from './m{number + 1}';" for number in range(1200)}
    put(tmp_path, chain | {"m1200.ts": tool("a")})
    assert names(barrel(tmp_path, "export * from './m0';")) == ["a"]
    assert names(barrel(tmp_path, "export { aTool } from './m0';")) == ["a"]


@pytest.mark.contract("registry.schema")
@pytest.mark.parametrize(
    ("schema", "parameters"),
    [
        pytest.param(
            "{ city: { type: 'string' }, units: { type: 'string', optional: true, enum: ['c', 'f'] }, n: { } }",
            {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "units": {"type": "string", "enum": ["c", "f"]},
                    "n": {"type": "string"},
                },
                "required": ["city", "n"],
            },
            id="short form",
        ),
        pytest.param(
            "{ type: { type: 'string', description: 'kind' } }",
            {
                "type": "object",
                "properties": {"type": {"type": "string", "description": "kind"}},
                "required": ["type"],
            },
            id="a parameter called type",
        ),
        pytest.param(
            "{ type: 'object', properties: { a: { type: 'number' } } }",
            {"type": "object", "properties": {"a": {"type": "number"}}},
            id="JSON Schema",
        ),
        pytest.param("{}", {"type": "object", "properties": {}, "required": []}, id="no parameters"),
        pytest.param("z.object({ city: z.string() })", None, id="Zod"),
        pytest.param("{ city: z.string() }", None, id="Zod inside"),
        pytest.param("weatherSchema", None, id="reference"),
        pytest.param("{ city: 'string' }", None, id="of another form"),
        pytest.param("[]", None, id="a list"),
    ],
)
def test_folder__schema__becomes_json_schema_or_stays_open(tmp_path, schema, parameters) -> None:
    put(tmp_path, {"a.tool.ts": f"export const aTool = {{ name: 'a', description: 'd', schema: {schema} }};"})
    found = load_folder(tmp_path, tmp_path)
    assert found.tools[0].parameters == parameters
    assert found.notices == ()
