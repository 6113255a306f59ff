"""Judge calls: ours, from the prompt to the verdict, or the same prompts with nothing but the provider's own library.

Usage: judge.py ours|sdk URL CALLS CONCURRENCY. Prints wall and processor seconds of the calls alone.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator

from eval_gate.config.settings import RecordingMode
from eval_gate.engine.judge_targets import ModelJudge
from eval_gate.evaluators.base import EvaluationContext
from eval_gate.evaluators.judge.llm_judge import evaluate_llm_judge, render_prompts
from eval_gate.model.case import CaseBrief, EvalCase, Location
from eval_gate.model.conversation import Message, Response
from eval_gate.model.specs.evaluator import LlmJudge
from eval_gate.targets.model.build import build_chat
from eval_gate.targets.model.model_client import ModelClient
from eval_gate.targets.model.recording import Recording
from eval_gate.targets.model.settings import ModelSettings
from eval_gate.targets.retry import LoadLimiter, build_retry_policy
from eval_gate.text.javascript.regex import PatternMatcher
from eval_gate.text.tokens import TokenData

RESPONSE = Response(text="It is 21 degrees and sunny in Lisbon.")


SPEC = LlmJudge()


def brief(number: int) -> CaseBrief:
    """Build the brief of one case."""
    question = f"What is the weather in Lisbon? ({number})"
    return CaseBrief(question=question, linked_question=question, expected_outcome="names the temperature")


async def ours(url: str, calls: int, concurrency: int) -> None:
    """Time calls of the LLM judge evaluator as a run uses it.

    The calls include the prompt, the concurrency limit, retries, parsing and the price.
    """
    described = {"name": "check", "provider": "openai", "model": "gpt-4o", "baseUrl": url}
    settings = ModelSettings.model_validate(described)
    chat = build_chat(settings, {"OPENAI_API_KEY": "sk-none"}, timeout_s=60)
    judge = ModelJudge(
        "check",
        ModelClient(
            chat,
            build_retry_policy(settings),
            LoadLimiter(concurrency, of_provider=True),
            Recording(RecordingMode.OFF),
        ),
    )
    matcher = PatternMatcher()

    async def one(number: int) -> None:
        about = brief(number)
        case = EvalCase(
            id=str(number),
            messages=(Message(role="user", content=about.question),),
            evaluators=(SPEC,),
            brief=about,
            suite="x",
            location=Location(file="x", line=1),
            fingerprint="x",
        )
        assert (
            await evaluate_llm_judge(SPEC, EvaluationContext(case, RESPONSE, TokenData(), matcher, judge))
        ).score == 0.9

    await one(0)  # what is imported and opened with the first call is start-up
    await timed(one, calls, concurrency)
    await judge.aclose()
    await matcher.aclose()


async def sdk(url: str, calls: int, concurrency: int) -> None:
    """Time the same calls with the provider's library alone."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=url, api_key="sk-none", max_retries=0) as client:

        async def one(number: int) -> None:
            prompts = render_prompts(SPEC, brief(number), RESPONSE)
            answer = await client.chat.completions.create(
                model="gpt-4o",
                messages=[{"role": "system", "content": prompts.system}, {"role": "user", "content": prompts.user}],
            )
            json.loads(answer.choices[0].message.content or "")

        await one(0)
        await timed(one, calls, concurrency)


async def timed(one: Callable[[int], Awaitable[None]], calls: int, concurrency: int) -> None:
    """So many calls, so many at once."""
    numbers: Iterator[int] = iter(range(1, calls + 1))

    async def worker() -> None:
        for number in numbers:
            await one(number)

    wall, processor = time.perf_counter(), time.process_time()
    await asyncio.gather(*(worker() for _ in range(concurrency)))
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(json.dumps({"wall": wall, "processor": processor}))


if __name__ == "__main__":
    who = {"ours": ours, "sdk": sdk}[sys.argv[1]]
    asyncio.run(who(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
