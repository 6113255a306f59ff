"""Which source a location means, and what is refused."""

import asyncio
import sys
from subprocess import run

import pytest

from eval_gate.errors import GateError
from eval_gate.staleness.registry_loader import load_registry

TOOL = "export const aTool = { name: 'a', description: 'd' };"


def load(location, root):
    return asyncio.run(load_registry(location, root))


def refused(location, root) -> GateError:
    with pytest.raises(GateError) as caught:
        load(location, root)
    assert caught.value.exit_code == 2
    return caught.value


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "repository"
    (root / "tools").mkdir(parents=True)
    (root / "tools/a.tool.ts").write_text(TOOL)
    (root / "tools/index.js").write_text("export { aTool } from './a.tool.ts';")
    (root / "tools.exports.ts").write_text("export { aTool } from './tools/a.tool';")
    (root / "tools.json").write_text('[{"name": "a", "description": "d"}]')
    return root


@pytest.mark.parametrize("location", ["tools.exports.ts", "tools/index.js", "tools.json", "tools", "./tools/"])
def test_load_registry__every_kind_of_source__gives_the_same_tool(repository, location) -> None:
    found = load(location, repository)
    assert [(tool.name, tool.description) for tool in found.tools] == [("a", "d")]


def test_load_registry__absolute_path_elsewhere__is_read(repository, tmp_path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.tool.ts").write_text(TOOL)
    assert load(str(other), repository).size == 1


@pytest.mark.contract("registry.missing")
def test_load_registry__missing__is_refused(repository) -> None:
    error = refused("tools/tools.exports.ts", repository)
    assert error.code == "registry-not-found"
    assert error.message == "the tool registry tools/tools.exports.ts does not exist"


@pytest.mark.parametrize("location", ["stdio://server", "ftp://host/x", "file:///etc/passwd"])
def test_load_registry__other_scheme__is_refused(repository, location) -> None:
    error = refused(location, repository)
    assert error.code == "unknown-registry-format"
    assert "http(s) URL of an MCP server" in str(error.hint)


def test_load_registry__other_kind_of_file__is_refused_with_those_that_are_known(repository) -> None:
    (repository / "tools.py").write_text("x = 1")
    error = refused("tools.py", repository)
    assert error.message == "tools.py is not a tool registry: unknown kind of file '.py'"
    assert "a .json file" in str(error.hint)


def test_load_registry__folder_with_a_barrel_only__names_the_barrel(repository) -> None:
    (repository / "tools/a.tool.ts").unlink()
    error = refused("tools", repository)
    assert (error.code, error.hint) == ("registry-empty", "use the file that exports the tools: tools/index.js")


@pytest.mark.parametrize("target", ["file", "folder"])
def test_load_registry__link_out_of_the_repository__is_refused(repository, tmp_path, target) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/b.tool.ts").write_text(TOOL)
    (repository / "link.ts").symlink_to(tmp_path / ("outside" if target == "folder" else "outside/b.tool.ts"))
    assert refused("link.ts", repository).code == "registry-outside-working-directory"


def test_load_registry__root_that_is_a_link__is_no_way_out(repository, tmp_path) -> None:
    (tmp_path / "here").symlink_to(repository)
    assert load("tools.exports.ts", tmp_path / "here").size == 1


@pytest.mark.slow
def test_load_registry__import__brings_no_parser_and_no_client() -> None:
    code = "import sys, eval_gate.staleness.registry_loader, eval_gate.staleness.staleness_checks; print(*sys.modules)"
    modules = run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"tree_sitter", "mcp", "httpx", "eval_gate.staleness.typescript.registry_reader"}.isdisjoint(modules)
