import { answer } from "./agent.mjs";

export default class Bot {
  id() {
    return "bot";
  }

  async callApi(prompt) {
    return { output: answer(prompt.trim()) };
  }
}
