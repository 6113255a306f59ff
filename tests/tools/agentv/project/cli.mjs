import { readFileSync, writeFileSync } from "node:fs";
import { answer } from "./agent.mjs";

const [asked, said] = process.argv.slice(2);
writeFileSync(said, answer(readFileSync(asked, "utf8").trim()));
