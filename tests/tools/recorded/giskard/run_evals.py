import asyncio
import sys
from pathlib import Path

from agent import answer, judge
from cases import CASES
from giskard.checks import CheckResult, Scenario, StringMatching, Suite, from_fn


def respond(inputs):
    return answer(inputs)


def brevity(trace):
    judge(trace.last.inputs, trace.last.outputs)
    return CheckResult.success(message="short")


suite = Suite(name="orders")
for one, wanted in CASES.items():
    scenario = Scenario(one).interact(inputs=one, outputs=respond)
    said = StringMatching(name="correct", keyword=wanted, target_key="trace.last.outputs")
    suite.append(scenario.check(said).check(from_fn(brevity, name="brevity")))
skipped = from_fn(lambda _: CheckResult.skip(message="not today"), name="away")
suite.append(Scenario("Are you away?").interact(inputs="Are you away?", outputs="No.").check(skipped))
result = asyncio.run(suite.run(return_exception=True))
Path(sys.argv[1]).write_text(result.model_dump_json())
