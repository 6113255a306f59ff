"""Light peers: libraries that evaluate within one process, ask the same agent the same, and keep nothing.

Usage: peers.py braintrust|pydantic-evals URL CASES CONCURRENCY. Each case has three text checks, all of which hold.
`beside.py --peers` runs it with libraries of its own (peers.txt): they are no part of what develops the program.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp

Task = Callable[[str], Awaitable[str]]
CHECKED = ("Lisbon", "21", "sunny")
"""What each answer has to contain."""


@asynccontextmanager
async def asking(url: str, concurrency: int) -> AsyncIterator[Task]:
    """Asks the agent one question, as floor.py does, and gives its text."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:

        async def task(question: str) -> str:
            async with session.post(url, json={"message": question}) as answer:
                text: str = json.loads(await answer.read())["response"]
                return text

        yield task


def questions(cases: int) -> list[str]:
    """Return the prompts of the eval file that `suites.py` writes."""
    return [f"What is the weather in Lisbon? ({number})" for number in range(cases)]


async def by_braintrust(task: Task, cases: int, concurrency: int) -> list[float]:
    """Evaluate the cases with braintrust, and return the mean score of each check.

    Nothing is sent to the service of braintrust.
    """
    from braintrust import EvalAsync

    def holds(expected: str) -> Callable[..., float]:
        def check(output: str, **_case: object) -> float:
            return float(expected in output)

        check.__name__ = f"contains {expected}"
        return check

    data = [{"input": question} for question in questions(cases)]
    checks = [holds(expected) for expected in CHECKED]
    done = await EvalAsync(
        "weather", data=data, task=task, scores=checks, max_concurrency=concurrency, no_send_logs=True
    )
    return [score.score for score in done.summary.scores.values()]


async def by_pydantic_evals(task: Task, cases: int, concurrency: int) -> list[float]:
    """Evaluate the cases with pydantic-evals, and return the share of checks that hold.

    The list has one share, or none if the report has no averages.
    """
    from pydantic_evals import Case, Dataset
    from pydantic_evals.evaluators import Contains

    asked = [Case(name=str(number), inputs=question) for number, question in enumerate(questions(cases))]
    suite = Dataset(name="weather", cases=asked, evaluators=[Contains(expected) for expected in CHECKED])
    report = await suite.evaluate(task, max_concurrency=concurrency, progress=False)
    found = report.averages()
    return [] if found is None or found.assertions is None else [found.assertions]


PEERS = {"braintrust": by_braintrust, "pydantic-evals": by_pydantic_evals}


async def main(peer: str, url: str, cases: int, concurrency: int) -> None:
    """Evaluate, and fail where a check does not hold: what was measured would be something else then."""
    async with asking(url, concurrency) as task:
        scores = await PEERS[peer](task, cases, concurrency)
    if not scores or min(scores) < 1:
        sys.exit(f"{peer}: not every check holds: {scores}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
