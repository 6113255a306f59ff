"""Templates are compiled once, and a process that finds them compiled needs no compiler."""

import shutil
from pathlib import Path

import jinja2
import pytest
from jinja2 import nodes

from eval_gate.reports import markdown, matrix, template_engine
from eval_gate.reports.page import html as page
from eval_gate.reports.template_compilation import compile_templates

LENGTHS = (0, 2, 20, 40, 80, 100, 1000, -1)
TEMPLATES = sorted(Path(template_engine.__file__).parent.rglob("*.j2"))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory) -> Path:
    """What is kept of all templates: to compile them takes as long as a hundred other tests."""
    folder = tmp_path_factory.mktemp("templates") / "__pycache__"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(template_engine, "CACHE_FOLDER", folder)
        patch.setattr("sys.dont_write_bytecode", False)
        forget()
        compile_templates()
    forget()
    return folder


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """Another place for what is compiled, and nothing known of what was."""
    folder = tmp_path / "__pycache__"
    monkeypatch.setattr(template_engine, "CACHE_FOLDER", folder)
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    forget()
    yield folder
    forget()


def forget() -> None:
    for module in (markdown, page, matrix):
        module.get_environment.cache_clear()


def no_compiler(monkeypatch) -> None:
    def never(*_args, **_options):
        raise AssertionError("compiled once more")

    monkeypatch.setattr(jinja2.Environment, "_generate", never)


def test_compile_templates__once__is_there_for_all_templates_of_the_next_process(cache, compiled, monkeypatch) -> None:
    shutil.copytree(compiled, cache)
    assert len(list(cache.iterdir())) == len(TEMPLATES)
    no_compiler(monkeypatch)
    compile_templates()


def test_compile_templates__by_another_version__is_done_again(cache, compiled, monkeypatch) -> None:
    shutil.copytree(compiled, cache)
    monkeypatch.setattr("jinja2.__version__", "0.0.1")
    no_compiler(monkeypatch)
    with pytest.raises(AssertionError, match="compiled once more"):
        compile_templates()


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, len(LENGTHS)))])
def test_compile_templates__what_was_kept_is_cut_off__is_done_again(cache, compiled, first) -> None:
    """Each template at another length, and over all of these runs at every one."""
    shutil.copytree(compiled, cache)
    whole = {path: path.read_bytes() for path in sorted(cache.iterdir())}
    for number, (path, content) in enumerate(whole.items(), first):
        path.write_bytes(content[: LENGTHS[number % len(LENGTHS)]])
    compile_templates()
    assert {path: len(path.read_bytes()) for path in cache.iterdir()} == {path: len(whole[path]) for path in whole}


@pytest.mark.slow
def test_compile_templates__place_that_is_no_folder__keeps_nothing_and_works(cache) -> None:
    cache.write_text("in the way")
    compile_templates()
    assert cache.read_text() == "in the way"


@pytest.mark.slow
def test_compile_templates__python_keeps_no_bytecode__keeps_nothing(cache, monkeypatch) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    compile_templates()
    assert not cache.exists()


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_template__filters__are_of_nothing_that_is_known_when_it_is_compiled(path) -> None:
    """Or its text would be kept, and another one of the filter's code not be seen by who works on it."""
    tree = jinja2.Environment().parse(path.read_text(), path.name)
    assert [one.lineno for one in tree.find_all(nodes.Filter) if isinstance(one.node, nodes.Const)] == []
