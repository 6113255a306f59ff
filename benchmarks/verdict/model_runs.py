"""Run sixty cases over a real model, again and again, and write down every execution.

    python benchmarks/verdict/model_runs.py http://127.0.0.1:8080/v1 --to executions.jsonl --until 01:00

A run executes every case of the three agents of `model_agents.py` in an order of its own, two or three times, first all
first executions. The settings (prompt, temperature, with and without a day) take turns. What was written stays: a
second start goes on with the next run.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from model_agents import CASES, Case, Model, is_right, respond


@dataclass(frozen=True)
class Setting:
    """How the agents are run. `each`: every so many rounds. `trials`: executions of a case in one run."""

    prompt: str
    temperature: float
    each: int
    trials: int = 2
    daily: bool = False


SETTINGS = (
    Setting("good", 0.7, each=1),
    Setting("good", 0.0, each=2, daily=True),
    Setting("good", 0.7, each=3, daily=True),
    Setting("good", 0.3, each=3),
    Setting("good", 1.0, each=3),
    Setting("good", 0.0, each=6),
    Setting("worse", 0.7, each=4, trials=1),
    Setting("worse", 0.0, each=10),
    Setting("worse", 0.3, each=10, trials=1),
    Setting("worse", 1.0, each=10, trials=1),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", help="where the model is asked, as in http://127.0.0.1:8080/v1")
    parser.add_argument("--model", default="smollm2", help="its name there")
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="a line for each execution")
    parser.add_argument("--until", required=True, metavar="HH:MM", help="when to stop, of today or tomorrow (UTC)")
    parser.add_argument("--each", type=int, default=1, metavar="N", help="take every Nth case only")
    given = parser.parse_args(arguments)
    cases = CASES[:: given.each]
    model = Model(given.address, given.model)
    done = [json.loads(line)["run"] for line in given.to.read_text().splitlines()] if given.to.is_file() else []
    hour, minute = map(int, given.until.split(":"))
    end = time.monotonic() + ((hour * 60 + minute) * 60 - time.time() % 86400) % 86400
    for number, setting in itertools.islice(enumerate(_schedule()), max(done, default=-1) + 1, None):
        with given.to.open("a", buffering=1) as file:
            file.writelines(json.dumps(line) + "\n" for line in _run(model, cases, setting, number, end))
        if time.monotonic() >= end:
            break
    return 0


def _schedule() -> Iterator[Setting]:
    """Yield the setting of each run."""
    for number_of_round in itertools.count(1):
        yield from (setting for setting in SETTINGS if number_of_round % setting.each == 0)


def _run(model: Model, cases: Sequence[Case], setting: Setting, number: int, end: float) -> Iterator[dict[str, object]]:
    """Yield a line for each execution of one run, as long as there is time."""
    random = Random(number)
    for trial in range(setting.trials):
        agents = sorted({case.agent for case in cases})
        random.shuffle(agents)  # one agent after the other: a prompt that is in the server's cache is fast
        for agent in agents:
            own = [case for case in cases if case.agent == agent]
            for case in random.sample(own, len(own)):
                if time.monotonic() >= end:
                    return
                yield _execute(model, case, setting, number) | {"trial": trial}


def _execute(model: Model, case: Case, setting: Setting, number: int) -> dict[str, object]:
    day = number if setting.daily else None
    begun = time.monotonic()
    passed, text, error = False, "", ""
    try:
        said = respond(model, case, setting.prompt, setting.temperature, day)
        passed, text = is_right(case, said, day), f"{said.call}\n{said.text}"
    except (OSError, http.client.HTTPException) as problem:
        error = type(problem).__name__
    return {
        "agent": case.agent,
        "prompt": setting.prompt,
        "temperature": setting.temperature,
        "daily": setting.daily,
        "case": case.id,
        "run": number,
        "minute": int(time.time() // 60),
        "passed": passed,
        "text": hashlib.sha256(text.encode()).hexdigest()[:12],
        "error": error,
        "seconds": round(time.monotonic() - begun, 3),
    }


if __name__ == "__main__":
    raise SystemExit(main())
