from agent import answer
from evals.record import record_sampling


class Answered:
    def __init__(self, text):
        self.text = text

    def get_completions(self):
        return [self.text]


class Agent:
    def __init__(self, **_):
        pass

    def __call__(self, prompt, **_):
        said = answer(prompt if isinstance(prompt, str) else prompt[-1]["content"])
        record_sampling(prompt=prompt, sampled=[said])
        return Answered(said)
