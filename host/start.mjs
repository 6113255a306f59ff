// Starts the gate on the machine of the job: for runners without Docker, and for evals that need what is installed there.
//
// It finds a Python, makes an environment for the gate alone (the packages of requirements/runtime.txt, held to their
// hashes, and the gate as it is in this checkout), and becomes the gate. Nothing but Node's own modules is used, so that
// what runs is what can be read here. What the runner gives to an action (inputs, tokens, files) is handed on as it is.
import { spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

const ROOT = path.dirname(import.meta.dirname);
const LOCK = path.join(ROOT, "requirements", "runtime.txt");
const INSTALL = path.join(ROOT, "requirements", "install.py");
const PACKAGE = path.join(ROOT, "runner", "eval_gate");
const NEEDED = [3, 11];
const WINDOWS = process.platform === "win32";
// as actions/setup-python and the systems call it; the first one that is new enough is taken
const NAMES = ["python3", "python", "python3.14", "python3.13", "python3.12", "python3.11"];
const USAGE = 2;
const INCOMPLETE = 3;

/** What is said to people in place of a stack trace, and the exit code of the step. */
class Refusal extends Error {
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

/** The variables for what only sets things up: none of the action's tokens and inputs, and no word on where pip puts things. */
function environmentForSetup() {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(INPUT_|ACTIONS_|GITHUB_TOKEN$|PIP_(USER|TARGET|PREFIX|ROOT|CONSTRAINT|NO_BINARY|PYTHON)$)/i.test(name),
  );
  return Object.fromEntries(kept);
}

/** How programs of the setup are run: in our folder, because Windows looks for a program in the current one first. */
function setup() {
  return { cwd: ROOT, env: environmentForSetup() };
}

/** What a program prints, or null where it cannot be run or fails. */
function asked(program, ...words) {
  const done = spawnSync(program, words, { ...setup(), encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  return done.status === 0 ? done.stdout.trim() : null;
}

/** Run a program of the setup, with what it prints in the log. Throws a Refusal that says `trouble`. */
function ran(trouble, program, ...words) {
  const done = spawnSync(program, words, { ...setup(), stdio: ["ignore", "inherit", "inherit"] });
  if (done.status !== 0) throw new Refusal(trouble, INCOMPLETE);
}

/** The first Python that is new enough: how it is called, and what tells its environments from another's. */
function findPython() {
  const facts = "import json, platform, sys; print(json.dumps([list(sys.version_info[:3]), sys.base_prefix, platform.machine()]))";
  const old = [];
  for (const name of NAMES) {
    const said = asked(name, "-I", "-c", facts);
    if (said === null) continue;
    const version = JSON.parse(said)[0];
    if (version[0] === NEEDED[0] && version[1] >= NEEDED[1]) return { name, version: version.join("."), facts: said };
    old.push(`${name} is ${version.join(".")}`);
  }
  const found = old.length ? `only an older one (${old.join(", ")})` : "none";
  throw new Refusal(
    `Eval Gate needs Python ${NEEDED.join(".")} or later, and there is ${found} here. Put actions/setup-python before this step.`,
    USAGE,
  );
}

/** The package's files by their path in it, without what Python leaves behind. */
function filesOf(folder, below = "") {
  return fs
    .readdirSync(path.join(folder, below), { withFileTypes: true })
    .filter((entry) => entry.name !== "__pycache__")
    .flatMap((entry) => {
      const name = path.posix.join(below, entry.name);
      return entry.isDirectory() ? filesOf(folder, name) : [name];
    })
    .sort();
}

/** A name for the environment: another one for each lock, package, way of making it, and Python. */
function keyOf(python) {
  const digest = createHash("sha256").update(python.facts);
  for (const file of [LOCK, INSTALL, import.meta.filename, ...filesOf(PACKAGE).map((name) => path.join(PACKAGE, name))]) {
    const content = fs.readFileSync(file);
    digest.update(`\0${path.relative(ROOT, file)}\0${content.length}\0`).update(content);
  }
  return digest.digest("hex").slice(0, 20);
}

/** Where environments are kept: between jobs where the runner has a place for that, else as long as this job. */
function cacheFolder() {
  for (const place of [process.env.RUNNER_TOOL_CACHE, process.env.RUNNER_TEMP]) {
    if (!place) continue;
    const folder = path.join(place, "eval-gate");
    try {
      fs.mkdirSync(folder, { recursive: true, mode: 0o755 });
      fs.accessSync(folder, fs.constants.W_OK);
      if (isOurs(folder)) return folder;
    } catch {
      // not ours to write: the next one is
    }
  }
  try {
    return fs.mkdtempSync(path.join(os.tmpdir(), "eval-gate-"));
  } catch {
    throw new Refusal("neither RUNNER_TOOL_CACHE nor RUNNER_TEMP names a folder that can be written by us alone", INCOMPLETE);
  }
}

/** Whether no other user can put anything there, or something else in its place: what lies there is run with our tokens. */
function isOurs(folder) {
  if (WINDOWS) return true;
  const [itself, above] = [fs.lstatSync(folder), fs.statSync(path.dirname(folder))];
  const othersMayRename = above.mode & 0o002 && !(above.mode & 0o1000);
  return itself.isDirectory() && itself.uid === process.getuid() && !(itself.mode & 0o002) && !othersMayRename;
}

function pythonOf(environment) {
  return WINDOWS ? path.join(environment, "Scripts", "python.exe") : path.join(environment, "bin", "python");
}

/** Whether the environment is there and works: the Python that it was made with may have been removed since. */
function works(environment) {
  return fs.existsSync(environment) && asked(pythonOf(environment), "-I", "-c", "import eval_gate") !== null;
}

/** Make the environment beside its place and move it there as a whole: nobody ever finds half of one. */
function make(python, place) {
  const making = `${place}-${process.pid}-${randomBytes(4).toString("hex")}`;
  try {
    ran(
      `${python.name} cannot make environments here (on Debian and Ubuntu that needs the package python3-venv). Put actions/setup-python before this step.`,
      ...[python.name, "-I", "-m", "venv", making],
    );
    ran(
      "the packages that Eval Gate needs could not be installed: the lines above say why.",
      ...[pythonOf(making), "-I", INSTALL, LOCK, "--no-input", "--only-binary", ":all:", "--no-compile"],
    );
    const packages = asked(pythonOf(making), "-I", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))");
    for (const name of filesOf(PACKAGE)) {
      const target = path.join(packages, "eval_gate", name);
      fs.mkdirSync(path.dirname(target), { recursive: true });
      fs.copyFileSync(path.join(PACKAGE, name), target);
    }
    moveTo(making, place);
  } finally {
    fs.rmSync(making, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Another job on this machine may have been first: then its environment is as good. One that does not work gives way. */
function moveTo(making, place) {
  for (let tries = 1; ; tries += 1) {
    try {
      fs.renameSync(making, place);
      return;
    } catch (error) {
      if (works(place)) return;
      if (tries === 5) throw new Refusal(`${place} cannot be put in its place: ${error.code}`, INCOMPLETE);
      if (fs.existsSync(place)) {
        const aside = `${making}-old`;
        fs.renameSync(place, aside);
        fs.rmSync(aside, { recursive: true, force: true });
      } else {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500); // Windows: somebody looks into its files
      }
    }
  }
}

/** Become the gate. On Windows, and with a Node that cannot, it is started, and its end is ours. */
function become(program) {
  // -I: the checkout may hold a folder `eval_gate` of its own, and a PYTHONPATH has no say
  const words = ["-I", "-X", "utf8", "-m", "eval_gate", "action", "--on-host"];
  if (process.execve && !WINDOWS) process.execve(program, [program, ...words], process.env);
  const gate = spawn(program, words, { stdio: "inherit" });
  // the runner tells only us that a job was cancelled; on Windows it tells all who share the console
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => WINDOWS || gate.kill(signal));
  gate.on("error", (error) => refuse(new Refusal(`${program} cannot be started: ${error.code}`, INCOMPLETE)));
  gate.on("exit", (code, signal) => process.exit(code ?? (signal === "SIGINT" ? 130 : 143)));
}

/** Say why there is no verdict: as an annotation, in the outputs, and in the summary. */
function refuse(refusal) {
  const escaped = refusal.message.replace(/%/g, "%25").replace(/\r/g, "%0D").replace(/\n/g, "%0A");
  fs.writeSync(1, `::error title=Eval Gate::${escaped}\n`);
  const files = { GITHUB_OUTPUT: `verdict=inconclusive\nexit-code=${refusal.code}\n`, GITHUB_STEP_SUMMARY: `### Eval Gate\n\n${refusal.message}\n` };
  for (const [name, text] of Object.entries(files)) if (process.env[name]) fs.appendFileSync(process.env[name], text);
  process.exit(refusal.code);
}

try {
  const python = findPython();
  const environment = path.join(cacheFolder(), keyOf(python));
  if (!works(environment)) {
    const began = Date.now();
    make(python, environment);
    fs.writeSync(1, `Eval Gate was set up with Python ${python.version} in ${((Date.now() - began) / 1000).toFixed(1)} s\n`);
  }
  become(pythonOf(environment));
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  refuse(error);
}
