"""The options of `run` and the configuration are one table, held together here."""

import inspect

import pytest
import typer
from pydantic.alias_generators import to_camel
from typer.main import get_command

from eval_gate.cli import options
from eval_gate.cli.commands.run import run
from eval_gate.config.load import flag_of, keys


def option_names() -> dict[str, set[str]]:
    """Flags by parameter of `run`."""
    app = typer.Typer()
    app.command()(run)
    return {parameter.name: {*parameter.opts} for parameter in get_command(app).params}


def test_run__every_configuration_key__is_also_a_flag() -> None:
    flags = {flag for names in option_names().values() for flag in names} | {"PATHS"}
    missing = {key for key in keys() if flag_of(key) not in flags}
    assert missing == set()


def test_run__every_parameter__is_a_key_or_belongs_to_one_call() -> None:
    parameters = set(inspect.signature(run).parameters) - {"context"} - options.NOT_CONFIGURABLE
    assert {options.KEYS.get(name, to_camel(name)) for name in parameters} == set(keys()) - {"baselineRunId"}


@pytest.mark.parametrize(
    ("given", "globs"),
    [(["a,b", " c "], ("a", "b", "c")), ([",", ""], ()), (None, ())],
)
def test_split_commas__given__are_all_globs(given, globs) -> None:
    assert options.split_commas(given) == globs
