"""Notes in the workspace which hook ran for whom; a third word that is not a text makes it fail."""

import json
import pathlib
import sys

told = json.load(sys.stdin)
name, place = sys.argv[1:3]
assert place == told["workspace_path"]
about = (told["case_input"] or "-").split()[0], (told["case_metadata"] or {}).get("level", "-")
with (pathlib.Path(place) / "log.txt").open("a") as log:
    print(name, told["test_id"], *about, *sys.argv[3:], file=log)
if "fails" in sys.argv:
    sys.exit("this hook fails")
