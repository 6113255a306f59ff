"""Pipelines of other CI systems that people copy: the page shows the files, and they fit the systems' schemas."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from jsonschema.validators import validator_for

from tests.support.newcomer import blocks

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "examples" / "ci"
SCHEMAS = {
    "gitlab-ci.yml": "gitlab-ci",
    "azure-pipelines.yml": "azure-pipelines",
    "bitbucket-pipelines.yml": "bitbucket-pipelines",
    "buildkite.yml": "buildkite",
}
"""Schemas that check-jsonschema brings along; there is none of a Jenkinsfile."""


def test_page__pipelines__are_the_files() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    texts = [text for _, text in blocks(page)]
    assert sorted(texts) == sorted(file.read_text(encoding="utf-8") for file in FOLDER.iterdir())
    assert all(f"(../examples/ci/{file.name})" in page for file in FOLDER.iterdir())


@pytest.mark.parametrize("name", SCHEMAS)
def test_pipeline__of_each_system__is_valid(name) -> None:
    text = (files("check_jsonschema") / "builtin_schemas" / "vendor" / f"{SCHEMAS[name]}.json").read_text()
    schema = json.loads(text)
    pipeline = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    validator = validator_for(schema)(schema)
    assert list(validator.iter_errors(pipeline)) == []
    assert list(validator.iter_errors({"steps": 7, "image": 7, "pipelines": 7, "evals": 7}))
