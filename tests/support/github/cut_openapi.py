"""Cut GitHub's OpenAPI description down to the operations that the fake answers.

Usage, in any folder outside this repository (npm's package `@octokit/openapi`, MIT licence, holds the description):

    npm install @octokit/openapi@23
    python path/to/cut_openapi.py node_modules/@octokit/openapi

It writes `openapi/api.json` and `openapi/LICENSE` beside this file. What is kept validates exactly as the whole
description does; prose and examples are left out because they are most of its weight.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent / "openapi"

REPO = "/repos/{owner}/{repo}"

OPERATIONS = f"""
GET /rate_limit
GET {REPO}
GET {REPO}/activity
GET {REPO}/git/ref/{{ref}}
GET {REPO}/pulls
GET {REPO}/pulls/{{pull_number}}
GET {REPO}/commits
GET {REPO}/commits/{{ref}}
GET {REPO}/commits/{{commit_sha}}/pulls
GET {REPO}/compare/{{basehead}}
GET {REPO}/collaborators/{{username}}/permission
GET {REPO}/contents/{{path}}
GET {REPO}/branches/{{branch}}
POST {REPO}/issues
GET {REPO}/issues/{{issue_number}}
PATCH {REPO}/issues/{{issue_number}}
GET {REPO}/issues/{{issue_number}}/comments
POST {REPO}/issues/{{issue_number}}/comments
GET {REPO}/issues/comments/{{comment_id}}
PATCH {REPO}/issues/comments/{{comment_id}}
DELETE {REPO}/issues/comments/{{comment_id}}
POST {REPO}/check-runs
GET {REPO}/check-runs/{{check_run_id}}
PATCH {REPO}/check-runs/{{check_run_id}}
GET {REPO}/check-runs/{{check_run_id}}/annotations
GET {REPO}/commits/{{ref}}/check-runs
POST {REPO}/statuses/{{sha}}
GET {REPO}/commits/{{ref}}/statuses
GET {REPO}/actions/artifacts
GET {REPO}/actions/artifacts/{{artifact_id}}
GET {REPO}/actions/artifacts/{{artifact_id}}/{{archive_format}}
GET {REPO}/actions/runs
GET {REPO}/actions/runs/{{run_id}}
GET {REPO}/actions/runs/{{run_id}}/artifacts
GET {REPO}/actions/workflows/{{workflow_id}}
GET {REPO}/actions/workflows/{{workflow_id}}/runs
POST {REPO}/actions/workflows/{{workflow_id}}/dispatches
"""

PROSE = {"description", "summary", "example", "examples", "externalDocs", "title", "tags", "operationId", "deprecated"}
# Below these keys the keys are names that GitHub chose (a field may be called `description`), not words of OpenAPI.
NAMES = {"properties", "responses", "headers", "schemas", "parameters", "content", "paths", "links"}


def trimmed(node: Any, *, names: bool = False) -> Any:
    """The same node without prose, examples and extensions; a description's own names stay."""
    if isinstance(node, list):
        return [trimmed(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: trimmed(value, names=key in NAMES and not names)
        for key, value in node.items()
        # a discriminator names schemas by their place, which they lose when they are put where they are used
        if names or not (key in PROSE or key == "discriminator" or key.startswith("x-"))
    }
    # `nullable` beside an `enum` without null: GitHub does answer null there (the conclusion of a check run).
    if not names and kept.get("nullable") is True and None not in kept.get("enum", [None]):
        kept["enum"] = [*kept["enum"], None]
    return kept


def cut(whole: dict[str, Any]) -> dict[str, Any]:
    """The operations wanted, and every component they reach."""
    small: dict[str, Any] = {
        "openapi": whole["openapi"],
        "info": {key: whole["info"][key] for key in ("title", "version", "license")},
        "paths": {},
        "components": {},
    }
    todo = []
    for line in OPERATIONS.split("\n"):
        if line:
            method, path = line.split()
            operation = trimmed(whole["paths"][path][method.lower()])
            small["paths"].setdefault(path, {})[method.lower()] = operation
            todo.append(operation)
    while todo:
        node = todo.pop()
        if isinstance(node, dict) and isinstance(node.get("$ref"), str):
            _, _, kind, name = node["$ref"].split("/")
            if name not in small["components"].setdefault(kind, {}):
                component = trimmed(whole["components"][kind][name])
                small["components"][kind][name] = component
                todo.append(component)
        todo += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return small


def corrected(small: dict[str, Any]) -> dict[str, Any]:
    """The description where GitHub itself is known to do otherwise."""
    schemas = small["components"]["schemas"]
    for kind in ("pull-request", "pull-request-simple"):  # null where the fork was deleted, as for a run below
        schemas[kind]["properties"]["head"]["properties"]["repo"] = {"$ref": "#/components/schemas/nullable-repository"}
    run = schemas["workflow-run"]["properties"]
    run["head_repository"] = {"oneOf": [run["head_repository"], {"enum": [None]}]}
    for person in ("author", "committer"):  # `nullable` beside `oneOf` says nothing to a validator
        schemas["commit"]["properties"][person]["oneOf"].append({"enum": [None]})
    small["components"]["parameters"]["created"]["schema"] = {"type": "string"}  # `>=2026-01-01` is meant to be given
    # The address that every `statuses_url` holds.
    small["paths"][f"{REPO}/statuses/{{ref}}"] = small["paths"][f"{REPO}/commits/{{ref}}/statuses"]
    return small


def main(package: Path) -> None:
    whole = json.loads((package / "generated" / "api.github.com.json").read_text(encoding="utf-8"))
    OUT.mkdir(exist_ok=True)
    small = json.dumps(corrected(cut(whole)), separators=(",", ":"), sort_keys=True)
    (OUT / "api.json").write_text(small + "\n", encoding="utf-8")
    shutil.copyfile(package / "LICENSE", OUT / "LICENSE")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
