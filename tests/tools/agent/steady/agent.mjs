// The agent under test. It answers from answers.json: the first time with the first answer, from then on with the next,
// and the last one for ever. Each question is noted in asked.txt.
import { appendFileSync, readFileSync } from "node:fs";

const beside = (name) => new URL(name, import.meta.url);

export function answer(question) {
  appendFileSync(beside("asked.txt"), `${question}\n`);
  const times = readFileSync(beside("asked.txt"), "utf8").split("\n").filter((line) => line === question).length;
  const answers = JSON.parse(readFileSync(beside("answers.json"), "utf8"))[question];
  if (!answers) throw new Error(`I was never told about: ${question}`);
  return answers[Math.min(times, answers.length) - 1];
}
