import { describe, expect, it } from "vitest";
import { answer } from "./agent.mjs";

function ask(question) {
  const said = answer(question);
  console.log(said); // the report quotes it
  return said;
}

it("opening hours", () => {
  expect(ask("When are you open?")).toContain("9 to 18");
});

describe("orders", () => {
  it("refund", () => {
    expect(ask("Refund order 4711")).toContain("4711");
  });

  it("where is it (2 days)", () => {
    expect(ask("Where is order 12?")).toContain("on its way");
  });

  describe("late", () => {
    it.each([13])("cancel %i", (order) => {
      expect(ask(`Cancel order ${order}`)).toContain("cancelled");
    });
  });
});
