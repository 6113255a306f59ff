"""Compares what a grader is told of the workspace with the settings of its assertion: 1 assertion for each of them."""

import json
import os
import pathlib
import sys

told = json.load(sys.stdin)
config, changes, place = told["config"], told["file_changes"], told["workspace_path"]
found = []
if "changes" in config:
    wanted = config["changes"]
    found.append(("changes", changes == (None if wanted is None else wanted.strip())))
for line in config.get("says", []):
    found.append((f"says {line}", line in (changes or "").splitlines()))
for line in config.get("hides", []):
    found.append((f"hides {line}", line not in (changes or "").splitlines()))
if "files" in config:
    names = sorted(one.relative_to(place).as_posix() for one in pathlib.Path(place).rglob("*") if one.is_file())
    found.append(("files", [name for name in names if not name.startswith(".git/")] == config["files"]))
for name, text in config.get("holds", {}).items():
    found.append((f"{name} holds", pathlib.Path(place, name).read_text() == text.replace("|", "\n")))
if "variable" in config:
    found.append(("variable", os.environ.get("AGENTV_WORKSPACE_PATH") == place))
print(json.dumps({"assertions": [{"text": text, "passed": passed} for text, passed in found]}))
