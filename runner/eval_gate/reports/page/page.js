/* The page of a run. All text that is not ours is put in as text, never as markup. */
(() => {
  "use strict";

  const $ = (id) => document.getElementById(id);
  const page = JSON.parse($("data").textContent);
  const rows = page.rows;
  const size = rows.id.length;
  const ours = page.here.replace("This", "this");
  const isWide = () => matchMedia("(min-width: 900px)").matches;
  const STATUS = {
    P: ["pass", "✓", "pass"], F: ["fail", "✕", "fail"], E: ["warn", "!", "error"],
    S: ["soft", "–", "skipped"], N: ["soft", "–", "not run"], "-": ["soft", "–", "removed"],
    M: ["warn", "±", "both"], C: ["warn", "!", "agent error"], U: ["soft", "–", "not sent"],
    Q: ["warn", "!", "no message from the simulated user"],
  };

  /* --- Elements ------------------------------------------------------------------------------------------------ */

  /* Children may be texts, elements, lists of them, or nothing. */
  function make(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === undefined || value === null || value === false) continue;
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
    return made;
  }

  const foreign = (tag, text, attributes) => make(tag, { dir: "auto", ...attributes }, text);
  const unseen = (text) => make("span", { class: "unseen" }, text);

  function seconds(ms) {
    if (ms < 1000) return `${Math.round(ms)} ms`;
    return ms < 100000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`;
  }

  const many = (number, one, more) => `${number.toLocaleString("en")} ${number === 1 ? one : more || one + "s"}`;

  const mark = (letter) => {
    const [tone, sign, words] = STATUS[letter] || STATUS["-"];
    return make("span", { class: `mark ${tone}`, role: "img", "aria-label": words }, sign);
  };

  /* --- Which cases are listed ---------------------------------------------------------------------------------- */

  const groupOf = (n) => page.groups[rows.group[n]];
  const suiteOf = (n) => (rows.suite[n] >= 0 ? page.suites[rows.suite[n]] : rows.elsewhere[n] || "");
  const isReused = (n) => page.reused.includes(rows.suite[n]);
  let details = {};
  const detailsOf = (n) => details[n];
  const tagsOf = (n) => (rows.tagSet.length ? rows.tagSets[rows.tagSet[n]] : []);
  const evaluatorsOf = (n) => (rows.evaluatorSet.length ? rows.evaluatorSets[rows.evaluatorSet[n]] : []);

  /* What the search looks through: names first, and as soon as they are there also questions and failures. */
  const haystack = rows.id.map((id, n) => {
    const words = [id, suiteOf(n), rows.what[n], page.causes[rows.cause[n]], rows.about && rows.about[n], ...tagsOf(n).map((tag) => rows.tagNames[tag])];
    return words.filter(Boolean).join("\n").toLowerCase();
  });

  function learn(found) {
    details = found;
    for (const [n, said] of Object.entries(details)) {
      const more = [said.what, said.question && said.question.slice(0, 2000)].filter(Boolean);
      if (more.length) haystack[n] += `\n${more.join("\n").toLowerCase()}`;
    }
  }

  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  }

  const chosen = { groups: new Set(), suite: "", tag: "", evaluator: "", target: "", sort: "change", terms: [] };
  const title = document.title;
  let reading = "";
  let listed = [];
  let items = [];
  let open = -1;

  function fits(n) {
    if (chosen.groups.size && !chosen.groups.has(`${rows.group[n]}`) && !chosen.groups.has(rows.status[n])) return false;
    if (chosen.suite !== "" && rows.suite[n] !== +chosen.suite) return false;
    if (chosen.tag !== "" && !tagsOf(n).includes(+chosen.tag)) return false;
    if (chosen.evaluator !== "" && !evaluatorsOf(n).includes(+chosen.evaluator)) return false;
    if (chosen.target !== "" && rows.target[n] !== +chosen.target) return false;
    return chosen.terms.every((term) => haystack[n].includes(term));
  }

  const ORDERS = {
    change: null,
    drop: (a, b) => (rows.drop[b] || 0) - (rows.drop[a] || 0) || a - b,
    time: (a, b) => rows.ms[b] - rows.ms[a] || a - b,
    name: (a, b) => (rows.id[a] < rows.id[b] ? -1 : rows.id[a] > rows.id[b] ? 1 : a - b),
  };

  const removed = [...rows.status].filter((letter) => letter === "-").length;
  const WHOLE = `${many(size - removed, "case")}${removed ? ` and ${removed.toLocaleString("en")} removed` : ""}`;

  function list() {
    listed = [];
    for (let n = 0; n < size; n++) if (fits(n)) listed.push(n);
    const order = ORDERS[chosen.sort];
    if (order) listed.sort(order);
    items = [];
    let top = 0;
    let last = {};
    for (const n of listed) {
      const under = headingOf(n);
      if (!order && under !== last.under) {
        items.push((last = { under, group: rows.group[n], count: 0, top, height: HEAD }));
        top += HEAD;
      }
      last.count += 1;
      items.push({ n, top, height: ROW, at: items.length });
      top += ROW;
    }
    $("rows").style.height = `${top}px`;
    const all = listed.length === size;
    $("count").textContent = all ? WHOLE : `${listed.length.toLocaleString("en")} of ${WHOLE}`;
    drawn = "";
    draw();
  }

  /* Cases that fail for one reason stand under it, all others under their class. */
  const headingOf = (n) => page.causes[rows.cause[n]] ?? groupOf(n)[1];

  /* --- The list: only the rows in sight are there -------------------------------------------------------------- */

  const HEAD = 34;
  const ROW = 52;
  const AROUND = 6;
  let drawn = "";

  function firstAt(y) {
    let low = 0;
    let high = items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (items[middle].top + items[middle].height <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function draw() {
    const box = $("list");
    const from = Math.max(0, firstAt(box.scrollTop) - AROUND);
    const to = Math.min(items.length, firstAt(box.scrollTop + (box.clientHeight || 800)) + AROUND);
    const now = `${from} ${to} ${open}`;
    if (now === drawn) return;
    drawn = now;
    const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.n : null;
    const inside = box.contains(document.activeElement) && focused;
    $("rows").replaceChildren(...items.slice(from, to).map((item) => ("n" in item ? row(item) : head(item))));
    if (inside) {
      const again = $("rows").querySelector(`[data-n="${focused}"]`);
      (again || box).focus({ preventScroll: true });
    }
  }

  function head(item) {
    const made = foreign("li", [foreign("bdi", item.under), " ", make("span", { class: "n" }, item.count.toLocaleString("en"))], { class: `head ${page.groups[item.group][2]}`, title: item.under });
    made.style.top = `${item.top}px`;
    return made;
  }

  function row(item) {
    const n = item.n;
    const flags = [rows.flaky.includes(n) && "flaky", rows.dropped.includes(n) && "score drop", rows.stale.includes(n) && "stale", isReused(n) && "reused", groupOf(n)[0] === "suspected" && "suspected"];
    const below = rows.what[n] || (rows.about && rows.about[n]) || suiteOf(n);
    const made = make("li", { "aria-setsize": items.length, "aria-posinset": item.at + 1 },
      make("a", { href: `#${anchorOf(n)}`, class: "row", "data-n": n, "aria-current": n === open ? "true" : false },
        mark(rows.status[n]),
        make("span", { class: "name" },
          foreign("span", rows.id[n], { class: "id" }),
          foreign("span", below, { class: "below" })),
        make("span", { class: "aside" }, measureOf(n), ...flags.filter(Boolean).map((flag) => make("span", { class: "flag" }, flag)),
          rows.behaves.includes(n) ? make("span", { class: "different" }, "different") : null)));
    made.style.top = `${item.top}px`;
    return made;
  }

  function measureOf(n) {
    if (chosen.sort === "drop") return rows.drop[n] ? `−${rows.drop[n].toFixed(2)}` : "–";
    return rows.ms[n] ? seconds(rows.ms[n]) : "";
  }

  function reveal(n) {
    const item = items.find((one) => one.n === n);
    if (!item) return;
    const box = $("list");
    if (item.top < box.scrollTop + HEAD) box.scrollTop = item.top - HEAD;
    else if (item.top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = item.top + ROW * 2 - box.clientHeight;
    draw();
  }

  /* --- Anchors: the words are for people, the last eight signs name the case ------------------------------------ */

  const words = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 40).replace(/-$/, "");
  const signOf = (n) => rows.anchor.slice(n * 8, n * 8 + 8);

  function anchorOf(n) {
    const stem = suiteOf(n).split("/").pop().split(".")[0];
    return ["case", words(stem), words(rows.id[n]), signOf(n)].filter(Boolean).join("-");
  }

  function placeOf(hash) {
    if (!hash.startsWith("#case-")) return -1;
    const sign = hash.slice(-8);
    const found = [];
    for (let at = rows.anchor.indexOf(sign); at >= 0; at = rows.anchor.indexOf(sign, at + 1)) {
      if (at % 8 === 0) found.push(at / 8);
    }
    return found.find((n) => `#${anchorOf(n)}` === hash) ?? found[0] ?? -1;
  }

  function goTo(hash, replace) {
    const address = hash || location.pathname + location.search;
    try {
      history[replace ? "replaceState" : "pushState"](null, "", address);
    } catch {
      if (hash) location.hash = hash; /* where pages may not say where they are */
    }
  }

  /* --- Differences by word -------------------------------------------------------------------------------------- */

  const WORD = /(?:[\p{L}\p{M}\p{N}_\u200c\u200d]+|\S)\s*|\s+/gu;
  const NO_BLANKS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
  const MOST_TEXT = 60000;
  const LIMITS = { maxEditLength: 4000, timeout: 200, comparator: (a, b) => a.trimEnd() === b.trimEnd() };

  function tokens(text) {
    if (!NO_BLANKS.test(text) || !Intl.Segmenter) return text.match(WORD) || [];
    return [...new Intl.Segmenter(undefined, { granularity: "word" }).segment(text)].map((one) => one.segment);
  }

  /* Pieces [kind, then, now]: "=" on both sides, "-" only then, "+" only now. Null where comparing says nothing. */
  function difference(then, now) {
    if (then.length > MOST_TEXT || now.length > MOST_TEXT) return null;
    const before = tokens(then);
    const after = tokens(now);
    const parts = Diff.diffArrays(before, after, LIMITS);
    if (!parts) return null;
    let from = 0;
    let to = 0;
    let equal = 0;
    const pieces = parts.map((part) => {
      const left = part.added ? "" : before.slice(from, (from += part.count)).join("");
      const right = part.removed ? "" : after.slice(to, (to += part.count)).join("");
      if (!part.added && !part.removed) equal += right.length;
      return [part.added ? "+" : part.removed ? "-" : "=", left, right];
    });
    return equal * 5 < Math.max(then.length, now.length) ? null : joined(pieces);
  }

  const LEAST_ALIKE = 5;

  /* What is equal for no more than a short word between two changes belongs to them, or it reads as confetti. */
  function joined(pieces) {
    const made = [];
    let then = "";
    let now = "";
    const end = () => {
      if (then) made.push(["-", then, ""]);
      if (now) made.push(["+", "", now]);
      then = now = "";
    };
    pieces.forEach(([kind, left, right], place) => {
      const between = then + now && place < pieces.length - 1;
      if (kind === "=" && !(between && left.trim().length < LEAST_ALIKE && !left.includes("\n") && !right.includes("\n"))) {
        end();
        made.push(["=", left, right]);
      } else {
        then += left;
        now += right;
      }
    });
    end();
    return made;
  }

  /* The mark ends with the last word of what is marked, not with the blank behind it. */
  function marked(tag, text) {
    const end = text.trimEnd().length;
    return end ? [make(tag, {}, text.slice(0, end)), text.slice(end)] : [make(tag, {}, text)];
  }

  /* Lines that stand beside each other: what is equal to the end of a line ends one on both sides. */
  function lines(pieces) {
    const made = [];
    let left = [];
    let right = [];
    const end = () => {
      if (left.length || right.length) made.push({ left, right, same: [...left, ...right].every(([kind]) => kind === "=") });
      left = [];
      right = [];
    };
    for (const [kind, then, now] of pieces) {
      if (kind !== "=") {
        if (then) left.push(["-", then]);
        if (now) right.push(["+", now]);
        continue;
      }
      const before = then.split(/(?<=\n)/);
      const after = now.split(/(?<=\n)/);
      if (before.length !== after.length) {
        left.push(["=", then]);
        right.push(["=", now]);
        continue;
      }
      before.forEach((line, place) => {
        left.push(["=", line]);
        right.push(["=", after[place]]);
        if (line.endsWith("\n")) end();
      });
    }
    end();
    return made;
  }

  const KEPT = 160;
  const FOLDED = 480;

  /* One side of a line. Long parts that are equal are folded in the middle. */
  function side(line, other) {
    const cell = foreign("div", [], { class: "text" });
    for (const [kind, text] of line) {
      if (kind === "-") cell.append(...marked("del", text));
      else if (kind === "+") cell.append(...marked("ins", text));
      else if (other && text.length > FOLDED) cell.append(text.slice(0, KEPT), unfold(text.slice(KEPT, -KEPT)), text.slice(-KEPT));
      else cell.append(text);
    }
    return cell;
  }

  function unfold(text) {
    return make("button", {
      type: "button", class: "fold", "aria-label": `Show ${many(text.length, "character")} that are the same`,
      onclick: (event) => event.currentTarget.replaceWith(text),
    }, `⋯ ${text.length.toLocaleString("en")} the same ⋯`);
  }

  const FEW_LINES = 3;

  /* The table of both sides; runs of lines that are equal are folded but for the first and the last. */
  function sides(found, labels) {
    const body = make("tbody", {});
    const line = (one) => {
      const made = make("tr", { class: one.same ? "same" : false });
      made.append(make("td", { class: "then" }, side(one.left, one.same)), make("td", { class: "now" }, side(one.right, one.same)));
      return made;
    };
    for (let at = 0; at < found.length; ) {
      let to = at;
      while (to < found.length && found[to].same) to++;
      if (to - at > FEW_LINES * 2) {
        const middle = found.slice(at + 1, to - 1);
        const button = make("button", { type: "button", class: "fold" }, `⋯ ${many(middle.length, "line")} the same ⋯`);
        const fold = make("tr", { class: "folded" }, make("td", { colspan: 2 }, button));
        button.addEventListener("click", () => fold.replaceWith(...middle.map(line)));
        body.append(line(found[at]), fold, line(found[to - 1]));
      } else found.slice(at, to).forEach((one) => body.append(line(one)));
      if (to < found.length) body.append(line(found[to]));
      at = to + 1;
    }
    return make("table", { class: "sides" },
      make("thead", {}, make("tr", {}, labels.map((label) => make("th", { scope: "col" }, label)))), body);
  }

  const LONG = 6000;
  const FEW_WORDS = 400;

  function whole(text, tag) {
    const made = foreign("div", [], { class: `text ${tag || ""}` });
    if (text.length <= LONG) made.append(text);
    else {
      const more = make("button", { type: "button", class: "fold", onclick: () => made.replaceChildren(text) },
        `⋯ all ${many(text.length, "character")} ⋯`);
      made.append(text.slice(0, LONG / 2), more);
    }
    return made;
  }

  function bothSides(then, now, labels) {
    const pieces = difference(then, now);
    if (pieces) return sides(lines(pieces), labels);
    return [
      make("p", { class: "soft" }, "Too different to compare by word: both are shown as they are."),
      make("table", { class: "sides" },
        make("thead", {}, make("tr", {}, labels.map((label) => make("th", { scope: "col" }, label)))),
        make("tbody", {}, make("tr", {}, make("td", { class: "then" }, whole(then)), make("td", { class: "now" }, whole(now))))),
    ];
  }

  /* --- The case ------------------------------------------------------------------------------------------------- */

  const part = (title, ...children) => {
    const inside = children.flat(Infinity).filter(Boolean);
    return inside.length ? make("section", { class: "part" }, make("h3", {}, title), ...inside) : null;
  };

  const folded = (title, fill, open) => {
    const made = make("details", { open }, make("summary", {}, title));
    let filled = false;
    const once = () => {
      if (filled || !made.open) return;
      filled = true;
      made.append(...[fill()].flat(Infinity).filter(Boolean));
    };
    made.addEventListener("toggle", once);
    if (open) once();
    return made;
  };

  function copying(label, text, remark) {
    const button = make("button", { type: "button", class: "button", onclick: () => copy(text, button) }, "Copy");
    button.setAttribute("aria-label", `Copy: ${label}`);
    return make("li", {}, make("span", { class: "label" }, label, remark ? make("span", { class: "soft" }, ` ${remark}`) : null),
      make("code", { dir: "auto" }, text), button);
  }

  async function copy(text, button) {
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const box = make("textarea", { class: "unseen", "aria-hidden": "true" });
      box.value = text;
      document.body.append(box);
      box.select();
      done = document.execCommand("copy");
      box.remove();
      button.focus();
    }
    button.textContent = done ? "Copied" : "Not copied";
    $("said").textContent = done ? "Copied" : "Could not be copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }

  function show(n, { focus = false, jump = true } = {}) {
    open = n;
    const box = $("case");
    box.replaceChildren(...view(n));
    document.documentElement.classList.add("opened");
    if (jump) {
      const { top } = box.getBoundingClientRect();
      if (!isWide()) scrollTo(0, 0);
      else if (top < 0 || top > innerHeight / 2) box.scrollIntoView({ block: "start" });
    }
    reveal(n);
    draw();
    if (focus) box.querySelector("h2").focus({ preventScroll: true });
    document.title = `${rows.id[n]} · ${title}`;
  }

  function leave() {
    document.documentElement.classList.remove("opened");
    document.title = title;
    goTo("", true);
  }

  function close() {
    const was = open;
    leave();
    list();
    reveal(was);
    const link = $("rows").querySelector(`[data-n="${was}"]`);
    if (link) link.focus({ preventScroll: true });
    if (!isWide()) $("cases").scrollIntoView({ block: "start" });
  }

  function step(by) {
    if (!listed.length) return;
    const at = listed.indexOf(open);
    const shown = document.documentElement.classList.contains("opened");
    const next = at < 0 || !shown ? (by > 0 ? 0 : listed.length - 1) : Math.min(listed.length - 1, Math.max(0, at + by));
    goTo(`#${anchorOf(listed[next])}`, true);
    show(listed[next], { focus: true });
  }

  function bar(n) {
    const said = detailsOf(n);
    const [, group, tone] = groupOf(n);
    const at = listed.indexOf(n);
    const tags = tagsOf(n).map((tag) => foreign("span", rows.tagNames[tag], { class: "tag" }));
    const status = make("p", { class: "line status" }, make("span", { class: `tag ${tone}` }, (said && said.change) || group),
      said && said.waived ? make("span", { class: "tag" }, said.waived.done) : null,
      rows.flaky.includes(n) ? make("span", { class: "tag warn" }, "flaky") : null,
      rows.dropped.includes(n) ? make("span", { class: "tag warn" }, "score drop") : null,
      rows.behaves.includes(n) ? make("span", { class: "tag" }, "behaves differently") : null,
      rows.stale.includes(n) ? make("span", { class: "tag warn" }, "stale") : null,
      isReused(n) ? make("span", { class: "tag" }, "reused") : null, tags);
    return make("div", { class: "bar" },
      make("button", { type: "button", class: "button back", onclick: close }, "← All cases"), status,
      make("span", { class: "soft place" }, at >= 0 ? `${(at + 1).toLocaleString("en")} of ${listed.length.toLocaleString("en")}` : ""),
      make("button", { type: "button", class: "button", "aria-keyshortcuts": "k", onclick: () => step(-1), disabled: at <= 0 }, "Previous"),
      make("button", { type: "button", class: "button", "aria-keyshortcuts": "j", onclick: () => step(1), disabled: at < 0 || at === listed.length - 1 }, "Next"));
  }

  function view(n) {
    const said = detailsOf(n);
    const heading = make("div", { class: "heading" },
      foreign("h2", rows.id[n], { tabindex: -1 }),
      make("p", { class: "soft" }, foreign("bdi", suiteOf(n)), said && said.about ? [" · ", foreign("bdi", said.about)] : null));
    if (!said) {
      const why = reading || page.leftOut.length ? reading || page.leftOut.join(" ") : "No details of this case are stored.";
      return [bar(n), heading, make("p", { class: "line" }, mark(rows.status[n]), ` ${(STATUS[rows.status[n]] || STATUS["-"])[2]}, ${isReused(n) ? "reused" : seconds(rows.ms[n])}. `, make("span", { class: "soft" }, why))];
    }
    return [bar(n), heading, ...story(n, said).filter(Boolean)];
  }

  /* The case in the order in which it is judged. */
  function story(n, said) {
    const { before, now = {} } = said;
    const turns = isTalk(before, now);
    return [
      make("div", { class: "seen" },
        said.error ? why(said.error) : said.what ? why(said.what) : null,
        page.compared && make("p", {}, said.seen.map((line, place) => [place ? "; " : "", foreign("bdi", line)])),
        said.compared ? foreign("p", said.compared, { class: "soft" }) : null,
        said.waived ? waived(said.waived) : null,
        (said.warnings || []).map((warning) => foreign("p", `⚠️ ${warning}`)),
        said.question || said.expected ? asked(said, turns) : null),
      part("What is different", said.behaves ? behaves(said.behaves) : null),
      answers(n, said, before, now),
      !turns && page.carries.calls && (now.status !== "E" || now.calls) && part("Tool calls", calls(before, now), missing(now, "toolCalls", "more call", `in ${ours}`), missing(before, "toolCalls", "more call", "in the baseline")),
      part("Conversation", talk(page.here, now), before ? talk("Baseline", before) : null),
      part("Checks", said.checks ? checks(said.checks, said.changed) : null, asserted(said)),
      record(said),
      part("Time and cost", numbers(before, now)),
      ways(n, said),
    ];
  }

  /* Why it failed: of what is long only the beginning, so that the responses stay in sight. */
  function why(text) {
    const made = foreign("pre", text, { class: "why" });
    if (text.length > FEW_WORDS) made.replaceChildren(text.slice(0, FEW_WORDS), make("button", { type: "button", class: "fold", onclick: () => made.replaceChildren(text) }, `⋯ all ${many(text.length, "character")} ⋯`));
    return made;
  }

  /* What was asked, in one line until it is opened: of a conversation the first line. */
  const asked = (said, turns) => make("div", { class: "prompt" }, folded([!turns ? "Prompt " : said.turnCount ? "Script " : "User ", foreign("span", (said.question || "").slice(0, 300).replace(turns ? /\n[^]*/ : /$/, turns ? " …" : ""), { class: "soft" })], () => [
    said.question ? whole(said.question, "asked") : null,
    said.expected ? make("div", { class: "expected" }, make("p", { class: "label" }, "Expected"), make("ul", {}, said.expected.map((line) => foreign("li", line)))) : null,
    said.askedCut ? make("p", { class: "soft" }, "The prompt or the expectation is longer; see the eval file.") : null]));

  /* What a passing case does differently; names are in backticks. */
  function behaves(found) {
    const names = (text) => text.split("`").map((piece, place) => (place % 2 ? foreign("code", piece) : piece));
    return make("table", { class: "numbers" },
      make("thead", {}, make("tr", {}, make("td", {}), make("th", { scope: "col" }, "Baseline"), make("th", { scope: "col" }, page.here))),
      make("tbody", {}, found.map(([what, then, now]) => make("tr", {}, make("th", { scope: "row" }, names(what)), foreign("td", then), foreign("td", now)))));
  }

  function waived(one) {
    return make("p", {}, make("b", {}, one.done), ` until ${one.until}, `, one.owner ? `by ${one.owner}, ` : "",
      one.url ? make("a", { href: one.url }, one.where === one.url ? "comment" : one.where) : foreign("code", one.where), ": ", foreign("bdi", one.reason || ""));
  }

  function missing(one, what, words, where) {
    const number = one && one.missing && one.missing[what];
    return number ? make("p", { class: "soft" }, `${many(number, words)} ${where} left out; run.json holds more.`) : null;
  }

  /* Answers: baseline and here. A dot for each execution puts its answer on the right. */
  function answers(n, said, before, now) {
    const runs = said.runs || [];
    const box = make("div", { class: "answers" });
    const decisive = runs.find((run) => run.decisive);
    const failing = decisive && decisive.status !== "P" ? decisive : runs.find((run) => run.status !== "P");
    let shown = Math.max(0, runs.indexOf(failing || decisive));
    const fill = () => {
      const run = runs[shown];
      const own = !run || (decisive ? run === decisive : !run.side && run.status === now.status);
      const one = own ? now : run.side || {};
      box.replaceChildren(...[isTalk(before, one) ? turns(before, one, (own ? said : run).turn, said) : compared(before, one, run, own)].flat(Infinity).filter(Boolean));
      const traces = [traced("Trace: ", one), traced("Trace of the baseline: ", before)].filter(Boolean);
      if (traces.length) box.append(make("p", { class: "soft" }, traces.map((words, place) => [place ? " · " : "", words])));
      if (run && !own && run.checks) box.append(folded("Checks of this execution", () => checks(run.checks)));
      if (run && run.error && !own && !(said.error || said.what || "").startsWith(run.error)) box.append(why(run.error));
      if (run && !own && !one.perTurn && (one.calls || []).length) box.append(folded("Tool calls of this execution", () => calls(null, one)));
      dots.forEach((dot, place) => dot.setAttribute("aria-pressed", place === shown));
    };
    const dots = runs.map((run, place) => {
      const [tone, sign, words] = STATUS[run.status];
      const label = `Execution ${place + 1} of ${runs.length}${run.again ? ", a re-run" : ""}: ${words}, ${seconds(run.ms)}`;
      return make("button", { type: "button", class: `dot ${tone}`, "aria-label": label, title: label, onclick: () => { shown = place; fill(); } }, sign);
    });
    fill();
    const row = runs.length ? make("div", { class: "dots", role: "group", "aria-label": `Executions of ${ours}` }, make("span", { class: "label" }, "Executions"), dots) : null;
    const then = before && before.runs ? make("div", { class: "dots" },
      make("span", { class: "label" }, "Baseline"),
      [...before.runs].map((letter) => mark(letter))) : null;
    const heading = isTalk(before, now) ? make("h3", {}, "Conversation") : make("h3", { class: "unseen" }, before ? `Baseline and ${ours}` : "Response");
    return make("section", { class: "part" }, heading, make("div", { class: "line" }, then, row), box);
  }

  const traced = (words, one) => (one && one.trace ? [words, one.traceUrl ? make("a", { href: one.traceUrl }, one.trace) : foreign("code", one.trace)] : null);

  const isTalk = (before, now) => Boolean(now.perTurn || (before && before.perTurn));

  const UNSENT = { status: "U", calls: [] };

  /* A conversation: turns of the same number stand beside each other; the one to look at is open. */
  function turns(before, one, opened, said) {
    const split = (side) => {
      let at = 0;
      return ((side && side.perTurn) || []).map((turn) => ({ ...turn, calls: ((side && side.calls) || []).slice(at, (at += turn.calls || 0)) }));
    };
    const [then, now] = [split(before), split(one)];
    const list = Array.from({ length: Math.max(then.length, now.length) }, (_, place) =>
      make("li", {}, turn(place + 1, then.length ? then[place] || UNSENT : null, now[place] || UNSENT, place + 1 === opened, said)));
    return [
      one.perTurn ? null : make("p", { class: "soft" }, `The conversation of ${ours} is not stored.`),
      one.userEnd ? make("p", { class: "soft" }, `A simulated user wrote the messages, so they can differ. ${page.here}: ${one.userEnd}.${before && before.userEnd ? ` Baseline: ${before.userEnd}.` : ""}`) : null,
      make("ol", { class: "turns" }, list), missing(one, "toolCalls", "more call", `in ${ours}`), missing(one, "turns", "more turn", `in ${ours}`)];
  }

  function turn(number, was, is, opened, said) {
    const ended = [...new Set([was, is].map((side) => side && side.status && STATUS[side.status][2]).filter(Boolean))].join(" → ");
    const parts = [was === UNSENT ? `only in ${ours}` : is === UNSENT ? "only in the baseline" : ended,
      is.calls.length ? is.calls.map((call, place) => [place ? ", " : "", foreign("code", call.name)]) : null,
      was && ![was.status, is.status].some((letter) => ["U", "E", "Q"].includes(letter)) ? likenessOf(was, is) : null].filter((words) => words && words.length);
    const title = [is.status ? mark(is.status) : null, ` Turn ${number}${said.turnCount ? ` of ${said.turnCount}` : ""}`, make("span", { class: "soft" }, parts.map((words) => [" · ", words]))];
    const message = (text, kind) => make("td", { class: kind }, whole(text === undefined ? "–" : text));
    const unstored = is.status === "Q" ? "–" : "The message is not stored.";
    return folded(title, () => [
      make("p", { class: "label" }, "User"),
      was && was.message !== is.message && is.status !== "U" && was.status !== "U"
        ? make("table", { class: "sides" }, make("thead", {}, make("tr", {}, ["Baseline", page.here].map((side) => make("th", { scope: "col" }, side)))),
          make("tbody", {}, make("tr", {}, message(was.message, "then"), message(is.message, "now"))))
        : whole(is.message ?? (was && was.message) ?? unstored, "asked"),
      is.error && !(said.error || "").includes(is.error) ? why(is.error) : null,
      compared(was, is, null, true),
      is.calls.length || (was && was.calls.length) ? [make("p", { class: "label" }, "Tool calls"), calls(was, is)] : null], opened);
  }

  function likenessOf(was, is) {
    const [then, now] = [was, is].map((side) => JSON.stringify(side.calls.map((call) => [call.name, call.args])));
    return then !== now ? "other calls" : was.answer !== is.answer ? "other words" : "same";
  }

  function sideTitle(name, one, extra) {
    const words = one.status ? STATUS[one.status][2] : "";
    return [name, words ? [": ", mark(one.status), ` ${words}`] : null, one.ms !== undefined ? make("span", { class: "soft" }, ` ${seconds(one.ms)}`) : null,
      extra ? make("span", { class: "soft" }, ` ${extra}`) : null];
  }

  const cutWords = (one) => (one.length ? `cut from ${many(one.length, "character")}` : "");

  function compared(before, one, run, own) {
    const { status, ms } = own ? one : run;
    const right = sideTitle(page.here, { status, ms }, cutWords(one));
    if (!before) {
      if (one.answer === undefined) return page.carries.answers ? make("p", { class: "soft" }, nothing(status)) : make("p", { class: "line" }, right);
      return [make("h4", {}, right), whole(one.answer, "alone")];
    }
    const left = sideTitle("Baseline", before, cutWords(before));
    const then = before.answer;
    const now = one.answer;
    if (then !== undefined && then === now) {
      return [make("p", { class: "soft" }, "Both responses are the same."), make("h4", {}, right), whole(now, "alone")];
    }
    if (then && now) return bothSides(then, now, [left, right]);
    if (!page.carries.answers) return make("p", { class: "line" }, left, " · ", right);
    const given = (text, letter) => (text !== undefined ? whole(text) : make("p", { class: "soft" }, nothing(letter)));
    return make("table", { class: "sides" },
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, left), make("th", { scope: "col" }, right))),
      make("tbody", {}, make("tr", {}, make("td", { class: "then" }, given(then, before.status), before.error ? why(before.error) : null),
        make("td", { class: "now" }, given(now, status)))));
  }

  function nothing(status) {
    if (status === "U") return "Not sent.";
    if (status === "Q") return "Nothing was sent to the agent, so the case has no score.";
    if (status === "E") return "No response: the case has no score.";
    if (status === "S" || status === "N") return "No response: the case was not run.";
    return "The response is not stored.";
  }

  /* Calls: two timelines beside each other, aligned by what was called and with what. */
  function aligned(then, now) {
    const likeness = (a, b) => (a.name !== b.name ? -1 : (a.args || "") === (b.args || "") ? 3 : 2);
    const best = Array.from({ length: then.length + 1 }, () => new Int32Array(now.length + 1));
    for (let i = then.length - 1; i >= 0; i--) {
      for (let j = now.length - 1; j >= 0; j--) {
        const like = likeness(then[i], now[j]);
        best[i][j] = Math.max(best[i + 1][j], best[i][j + 1], like > 0 ? like + best[i + 1][j + 1] : 0);
      }
    }
    const made = [];
    let i = 0;
    let j = 0;
    while (i < then.length || j < now.length) {
      const like = i < then.length && j < now.length ? likeness(then[i], now[j]) : -1;
      if (like > 0 && best[i][j] === like + best[i + 1][j + 1]) made.push([then[i++], now[j++]]);
      else if (i < then.length && (j >= now.length || best[i][j] === best[i + 1][j])) made.push([then[i++], null]);
      else made.push([null, now[j++]]);
    }
    return made;
  }

  const MOST_CALLS = 400;

  function calls(before, now) {
    const here = (now.calls || []).slice(0, MOST_CALLS);
    const then = ((before && before.calls) || []).slice(0, MOST_CALLS);
    if (!here.length && !then.length) return now.status === "P" || now.status === "F" ? make("p", { class: "soft" }, before ? "None, on either side." : "None.") : null;
    if (!before) return make("ol", { class: "calls" }, here.map((call) => make("li", {}, called(call))));
    const body = aligned(then, here).map(([was, is]) => {
      const other = was && is && (was.args || "") !== (is.args || "");
      const [kind, sign, words] = !was ? ["extra", "+", `only in ${ours}`] : !is ? ["gone", "−", `missing in ${ours}`] : other ? ["other", "≠", "other arguments"] : ["same", "=", "same"];
      const pieces = other && was.args && is.args ? difference(was.args, is.args) : null;
      return make("tr", { class: kind }, make("th", { scope: "row" }, make("span", { class: "sign", "aria-hidden": "true" }, sign), " ", words),
        make("td", {}, was ? called(was, pieces && pieces.map(([k, text]) => [k, text]).filter(([k]) => k !== "+")) : null),
        make("td", {}, is ? called(is, pieces && pieces.map(([k, , text]) => [k, text]).filter(([k]) => k !== "-")) : null));
    });
    return make("table", { class: "timeline" },
      make("thead", {}, make("tr", {}, make("td", {}), make("th", { scope: "col" }, "Baseline"), make("th", { scope: "col" }, page.here))), make("tbody", {}, body));
  }

  function called(call, marked) {
    const result = call.result;
    return [
      make("div", { class: "line" }, foreign("code", call.name, { class: "tool" }),
        call.ok === false ? make("span", { class: "tag fail" }, "failed") : call.ok === true ? make("span", { class: "tag pass" }, "ok") : null,
        call.ms !== undefined ? make("span", { class: "soft" }, seconds(call.ms)) : null),
      marked ? side(marked) : call.args ? whole(call.args) : null,
      result !== undefined ? folded("Result", () => whole(result)) : null,
      (call.cut || []).length ? make("p", { class: "soft" }, `Only the beginning of its ${call.cut.join(" and ")} is stored.`) : null,
    ];
  }

  function talk(name, one) {
    const messages = one.talk || [];
    if (!messages.length) return null;
    const left = one.missing && one.missing.messages;
    const words = `${name}: ${many(messages.length, "message")}${left ? `, ${left} more left out` : ""}${one.turns ? ", ended at the most turns" : ""}`;
    return folded(words, () => make("ol", { class: "talk" }, messages.map((message) => make("li", { class: message.role },
      make("div", { class: "label" }, message.role, message.name ? [" ", foreign("code", message.name)] : null),
      message.text ? whole(message.text) : null,
      (message.calls || []).map((call) => make("div", { class: "line" }, "calls ", foreign("code", call.name, { class: "tool" }), call.args ? whole(call.args) : null))))));
  }

  /* Checks, those that miss something first. */
  function checks(found, changed) {
    return make("ul", { class: "checks" }, found.map((check) => {
      if (check.more) return make("li", { class: "soft" }, `and ${many(check.more, "more check")}`);
      const [tone, sign, words] = { pass: ["pass", "✓", "met"], fail: ["fail", "✕", "missed"], part: ["warn", "±", "met in part"], gone: ["soft", "–", changed ? "no longer checked" : "did not run"] }[check.state];
      const score = check.then !== undefined && check.now !== undefined && check.then !== check.now ? `${check.then} → ${check.now}` : check.now ?? `${words}; baseline ${check.then}`;
      return make("li", { class: check.state },
        make("div", { class: "line" }, make("span", { class: `mark ${tone}`, role: "img", "aria-label": words }, sign), foreign("b", check.name),
          make("span", { class: "score" }, score), check.required ? make("span", { class: "tag fail" }, "required") : null,
          make("span", { class: "soft" }, [check.type && check.type !== check.name ? check.type : null, check.weight ? `weight ${check.weight}` : null].filter(Boolean).join(", "))),
        (check.misses || []).map((miss) => make("p", { class: "miss" }, make("span", { "aria-hidden": "true" }, "✕ "), foreign("bdi", miss))),
        (check.hits || []).map((hit) => make("p", { class: "hit" }, make("span", { "aria-hidden": "true" }, "✓ "), foreign("bdi", hit))),
        check.says ? make("figure", { class: "says" }, make("figcaption", {}, foreign("bdi", check.name), check.model ? [" (", foreign("bdi", check.model), ")"] : null, " says"), whole(check.says)) : null,
        check.said ? folded("Reasoning in the baseline", () => whole(check.said)) : null,
        check.missed ? folded("What was missed in the baseline", () => make("ul", {}, check.missed.map((miss) => foreign("li", miss)))) : null,
        check.prompts ? folded(`Prompt of the LLM judge${check.model ? `: ${check.model}` : ""}`, () => check.prompts.map(([name, text]) => [make("h4", {}, name.replace(/([A-Z])/g, " $1").toLowerCase()), whole(text)])) : null,
        check.members ? checks(check.members, changed) : null);
    }));
  }

  function asserted(said) {
    if (!said.asserted) return null;
    const [run, skipped] = said.asserted;
    const tokens = said.skippedTokens || [];
    if (!skipped && (said.checks || !run)) return null;
    return make("p", { class: "soft" }, `${many(run, "assertion")} run, ${skipped} skipped`, tokens.length ? [": ", foreign("code", tokens.join(", "))] : null, ".");
  }

  /* The record on the branch: a dot for each earlier run, the newest first. */
  function record(said) {
    const past = said.past || "";
    const dots = [...past].map((letter, place) => {
      const [name, day] = page.history[place] || ["", ""];
      const [tone, sign, words] = letter === "-" ? ["soft", "·", "not run, or with another evaluation setup"] : STATUS[letter] || STATUS["-"];
      return make("li", { class: `mark ${tone}`, title: `${name} ${day}: ${words}` }, sign, unseen(` ${name} ${words}`));
    });
    return part(`History ${page.place}`.replace("History in the history", "History"), said.record ? foreign("p", said.record) : null,
      dots.length ? [make("ol", { class: "past" }, dots), dots.length > 1 && make("p", { class: "soft" }, `One sign for each of ${many(dots.length, "earlier run")}, the newest first.`)] : null);
  }

  function numbers(before, now) {
    const rows = [];
    const row = (name, then, here) => {
      if (then !== undefined || here !== undefined) rows.push([name, then ?? "–", here ?? "–"]);
    };
    const was = before || {};
    const counted = (one) => (one.tokens ? one.tokens.map((number) => (number === null || number === undefined ? "?" : number.toLocaleString("en"))) : [undefined, undefined]);
    row("Time", was.ms !== undefined ? seconds(was.ms) : undefined, now.ms !== undefined ? seconds(now.ms) : undefined);
    row("First token", undefined, now.first !== undefined ? seconds(now.first) : undefined);
    row("Tokens in", counted(was)[0], counted(now)[0]);
    row("Tokens out", counted(was)[1], counted(now)[1]);
    row("Cost", was.cost, now.cost);
    row(now.userEnd ? "Cost of judges and simulated user" : "Cost of judges", undefined, now.judge);
    row("Tries", undefined, now.attempts);
    if (!rows.length) return null;
    return make("table", { class: "numbers" },
      make("thead", {}, make("tr", {}, make("td", {}), before ? make("th", { scope: "col" }, "Baseline") : null, make("th", { scope: "col" }, page.here))),
      make("tbody", {}, rows.map(([name, then, here]) => make("tr", {}, make("th", { scope: "row" }, name), before ? make("td", {}, then) : null, make("td", {}, here)))));
  }

  function ways(n, said) {
    const here = location.href.split("#")[0] + `#${anchorOf(n)}`;
    const line = said.place ? copying("Eval file", said.place) : null;
    if (line && said.url) line.querySelector("code").replaceChildren(make("a", { href: said.url }, said.place));
    return part("Links and commands", make("ul", { class: "ways" }, line,
      said.rerun ? copying("Run it again", said.rerun) : null,
      said.comment ? copying("Waive it", said.comment, "as a comment, with a reason") : null,
      said.waive ? copying("Waive it", said.waive, "with a reason") : null,
      copying("Link", here)),
      said.target ? make("p", { class: "soft" }, "Target: ", foreign("code", said.target)) : null,
      said.difficulty ? make("p", { class: "soft" }, "Difficulty: ", foreign("bdi", said.difficulty)) : null);
  }

  /* --- Search, chips, choices ----------------------------------------------------------------------------------- */

  /* A case that the filter leaves out is closed; beside the list, the first one of the list takes its place. */
  function change() {
    $("list").scrollTop = 0;
    list();
    if (open >= 0 && !fits(open)) {
      open = -1;
      leave();
      $("case").replaceChildren();
    }
    if (open >= 0) $("case").querySelector(".bar").replaceWith(bar(open));
    else if (listed.length && isWide()) show(listed[0], { jump: false });
  }

  function press(item, attributes) {
    const button = make("button", { type: "button", class: item.className || "button", ...attributes }, [...item.childNodes]);
    item.replaceWith(button);
    return button;
  }

  /* The counts of the first screen choose cases. */
  function chips() {
    for (const item of document.querySelectorAll("[data-group]")) {
      const { group } = item.dataset;
      const button = press(item, { "aria-pressed": "false", onclick: () => {
        if (!chosen.groups.delete(group)) chosen.groups.add(group);
        button.setAttribute("aria-pressed", chosen.groups.has(group));
        change();
      } });
    }
  }

  function choice(key, title, names, all) {
    if (names.length < 2 && !(names.length === 1 && key !== "suite" && key !== "target")) return null;
    return make("select", { id: `by-${key}`, "aria-label": title, onchange: (event) => { chosen[key] = event.currentTarget.value; change(); } },
      make("option", { value: "" }, all), names.map((name, place) => make("option", { value: place }, name.length > 60 ? `${name.slice(0, 59)}…` : name)));
  }

  function choices() {
    const sorts = { change: "Changed first", drop: "Largest drop", time: "Slowest", name: "By name" };
    if (!Object.keys(rows.drop).length) delete sorts.drop;
    $("narrow").append(...[
      make("select", { id: "sort", "aria-label": "Order", onchange: (event) => { chosen.sort = event.currentTarget.value; change(); } },
        Object.entries(sorts).map(([key, words]) => make("option", { value: key }, words))),
      choice("suite", "Suite", page.suites, "All suites"),
      choice("tag", "Tag", rows.tagNames, "All tags"),
      choice("evaluator", "Evaluator", rows.evaluatorNames, "All evaluators"),
      choice("target", "Target", rows.targetNames, "All targets"),
    ].filter(Boolean));
  }

  /* Rows of the table below the cases choose, too. The keyboard goes on in the list. */
  function metricButtons(key) {
    for (const item of document.querySelectorAll(`[data-${key}]`)) {
      const place = item.dataset[key];
      press(item, { onclick: () => {
        clear();
        chosen[key] = place;
        if ($(`by-${key}`)) $(`by-${key}`).value = place;
        $("narrow").parentElement.open = true;
        change();
        $("cases").scrollIntoView({ block: "start" });
        $("list").focus({ preventScroll: true });
      } });
    }
  }

  function copies() {
    for (const one of document.querySelectorAll(".copy")) {
      const text = one.textContent.trim();
      const button = make("button", { type: "button", class: "button", "aria-label": `Copy: ${text.slice(0, 60)}`, onclick: () => copy(text, button) }, "Copy");
      one.append(" ", button);
    }
  }

  /* --- Begin ------------------------------------------------------------------------------------------------------ */

  function follow() {
    const n = placeOf(location.hash);
    if (n >= 0) {
      if (!fits(n)) clear();
      show(n, { focus: true });
    } else if (location.hash === "" && document.documentElement.classList.contains("opened")) {
      document.documentElement.classList.remove("opened");
    }
  }

  function clear() {
    Object.assign(chosen, { suite: "", tag: "", evaluator: "", target: "", terms: [] });
    chosen.groups.clear();
    $("search").value = "";
    for (const one of $("narrow").querySelectorAll("select:not(#sort)")) one.value = "";
    for (const one of $("chips").children) one.setAttribute("aria-pressed", "false");
    change();
  }

  $("search").addEventListener("input", (event) => {
    chosen.terms = event.currentTarget.value.toLowerCase().split(/\s+/).filter(Boolean);
    change();
  });
  $("list").addEventListener("scroll", draw, { passive: true });
  addEventListener("resize", draw);
  addEventListener("hashchange", follow);
  addEventListener("popstate", follow);
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a.row");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    goTo(link.getAttribute("href"), false);
    show(+link.dataset.n, { focus: true });
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape") {
      if (event.target === $("search") && $("search").value) clear();
      else if (document.documentElement.classList.contains("opened")) close();
      else $("list").focus();
    } else if (typing) {
      if (event.key !== "Enter" || event.target !== $("search") || !listed.length) return;
      goTo(`#${anchorOf(listed[0])}`, true);
      show(listed[0], { focus: true });
    } else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "/") $("search").focus();
    else return;
    event.preventDefault();
  });

  const packed = $("packed");
  if (packed) reading = "Loading …";
  else learn(JSON.parse($("details").textContent));
  chips();
  choices();
  metricButtons("tag");
  metricButtons("evaluator");
  copies();
  document.documentElement.classList.add("js");
  document.documentElement.style.setProperty("--here", JSON.stringify(page.here));
  list();
  follow();
  document.documentElement.classList.toggle("empty", !size);
  if (open < 0 && size && groupOf(0)[2] !== "pass" && isWide()) show(0, { jump: false });
  if (packed) {
    const again = (words) => {
      const focused = $("case").contains(document.activeElement);
      reading = words;
      if (open >= 0) $("case").replaceChildren(...view(open));
      if (focused) $("case").querySelector("h2").focus({ preventScroll: true });
    };
    unpacked(packed.textContent).then((found) => {
      learn(found);
      again("");
    }, () => again("This browser cannot unpack what this page says of single cases; run.json holds it."));
  }
})();
