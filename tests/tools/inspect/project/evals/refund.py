"""The team's task: a solver that asks the agent, samples named by a text, a path and a number."""

import sys
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import includes
from inspect_ai.solver import Generate, Solver, TaskState, solver

sys.path.insert(0, str(Path(__file__).parents[1]))
from agent import answer


@solver
def agent() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = ModelOutput.from_content("agent", answer(state.input_text))
        return state

    return solve


@task
def orders() -> Task:
    samples = [
        Sample(id="opening hours", input="When are you open?", target="9 to 18"),
        Sample(id="refund/für 4711", input="Refund order 4711", target="4711 is refunded"),
        Sample(id=12, input="Where is order 12?", target="on its way"),
    ]
    return Task(dataset=samples, solver=agent(), scorer=includes())
