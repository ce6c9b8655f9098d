// The report's page.  Everything is drawn from the JSON in it: the output of
// `sinter show kernels --json`, source, memory, schedules and parameters.  The
// address holds the choice (#line-9, #line-9-of-1 in the first imported file,
// #train-3), so every link is an ordinary one and the browser's history works.  The chosen elements have ids
// that begin with at-, or the browser would move the page to them.  The panes are
// drawn at once; the sections below follow when the browser is idle, or before
// printing.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const launches = data.kernels.launches;
const device = data.kernels.device;
const ROW = 22, MANY = 24, ROWS = 200, NAMED = 6;

// ---- making elements ----

function element(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {}))
    e.setAttribute(name, value);
  e.append(...children);
  return e;
}

function drawn(tag, attributes, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {}))
    e.setAttribute(name, value);
  e.append(...children);
  return e;
}

function titled(e, text) {
  e.append(drawn("title", {}, text));
  return e;
}

const byId = id => document.getElementById(id);
const placeOf = address => byId(`at-${address}`);

// ---- numbers ----

function scaled(value, units, step) {
  let i = 0;
  while (Math.abs(value) >= step && i + 1 < units.length) {
    value /= step;
    i++;
  }
  return `${value.toFixed(value >= 100 || i === 0 ? 0 : 1)} ${units[i]}`;
}

const bytesText = n => scaled(n, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
const rateText = n => scaled(n, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"], 1000);
const flopsText = n => scaled(n, ["flops", "kflops", "Mflops", "Gflops", "Tflops"], 1000);
const timeText = s => s >= 1e-3 ? `${(1e3 * s).toFixed(2)} ms`
  : s >= 1e-7 ? `${(1e6 * s).toFixed(2)} µs` : `${(1e9 * s).toFixed(2)} ns`;
const countText = n => n.toLocaleString("en");
const sum = (list, of) => list.reduce((all, x) => all + of(x), 0);

// ---- launches ----

// Launches that share a text share its name, so the place is what tells them
// apart.
const idOf = l => `${l.step}-${l.index}`;
const launchAt = new Map(launches.map(l => [idOf(l), l]));
const textAt = new Map(launches.filter(l => l.text).map(l => [l.name, l]));
const merges = data.kernels.merged_launches;
const mergedTextAt = new Map(merges.filter(j => j.text).map(j => [j.name, j.text]));
const mergedOf = l => merges.find(j => j.step === l.step && j.name === l.merged_launch &&
  j.index <= l.index && l.index < j.index + j.count);
const steps = [...new Set(launches.map(l => l.step))];
let step = steps.includes("train") ? "train" : steps[0];

// Files are known by their names alone, as launches have them.
const fileOf = place => data.sources.findIndex(s => s.file === place.file);
const isShown = place => fileOf(place) >= 0;
const lineName = (line, file) => file > 0 ? `line-${line}-of-${file}` : `line-${line}`;
const lineOf = place => lineName(place.line, fileOf(place));
// A launch comes from the lines of its operations.  Its costs are charged to the
// lines of the model's body that call the functions with those operations.
const linesOf = l => [...new Set([...l.lines, ...l.charges].filter(isShown).map(lineOf))];
const ownPlace = c => ({ file: c.own_file, line: c.own_line });
const isCall = c => c.own_line !== c.line || c.own_file !== c.file;

// The seconds of a launch that belong to a charge.
function secondsOf(l, c) {
  const [part, all] = l.bound_by === "memory" ? [c.bytes, l.bytes] : [c.flops, l.flops];
  return all > 0 ? l.roofline_seconds * part / all : 0;
}

// Update where a launch assigns to states, backward where all that it leaves is
// part of the backward pass.
function passOf(l) {
  if (l.operations.some(o => o.op === "assign"))
    return "update";
  const left = l.operations.filter(o => l.writes.some(t => t.node === o.node));
  return left.length && left.every(o => o.backward) ? "backward" : "forward";
}

// For each node, the launches of the chosen step that leave it in memory and those
// that read it.
let ends = null;

function endsOf(node) {
  if (!ends || ends.step !== step) {
    ends = { step, writes: new Map(), reads: new Map() };
    for (const l of launches.filter(x => x.step === step))
      for (const way of ["writes", "reads"])
        for (const t of l[way])
          ends[way].set(t.node, [...(ends[way].get(t.node) || []), l]);
  }
  return { writes: ends.writes.get(node) || [], reads: ends.reads.get(node) || [] };
}

// For each launch of a step, the launches that write the tensors it reads.
function sourcesOf(list) {
  const writer = new Map();
  return list.map((l, i) => {
    const from = new Set();
    for (const t of l.reads)
      if (writer.has(t.node))
        from.add(writer.get(t.node));
    for (const t of l.writes)
      writer.set(t.node, i);
    return [...from];
  });
}

// ---- the head ----

// As sinter check counts them: kernels that are merged are one launch.
const countedOf = name => data.steps.find(s => s.name === name);

function launchesText() {
  const { launches: merged, launches_without_joins: all } = countedOf(step);
  return countText(merged) + (merged < all ? ` (${countText(all)} unmerged)` : "");
}

function headDraw() {
  const list = launches.filter(l => l.step === step);
  document.title = `${data.kernels.model} – sinter report`;
  byId("model").textContent = data.kernels.model;
  byId("about").textContent =
    `${data.kernels.file}, planned for CUDA; times are bounds for ${device.name} ` +
    `(${device.arch}) from its description`;
  const figures = [
    [`launches in ${step}`, launchesText()],
    [`bytes moved in ${step}`, bytesText(sum(list, l => l.bytes))],
    [`arithmetic in ${step}`, flopsText(sum(list, l => l.flops))],
    ["arena (planned memory)", bytesText(data.kernels.arena_bytes)],
    ["parameters", countText(sum(data.parameters, p => p.count))],
    [`roofline time of ${step}`, timeText(sum(list, l => l.roofline_seconds))],
  ];
  byId("figures").replaceChildren(...figures.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  byId("end").textContent =
    `Written by sinter ${data.version}. Bytes and flops come from the plan. The ` +
    "roofline time of a launch is the longer of bytes / bandwidth and flops / " +
    "peak: a lower bound, not a measurement.";
}

// ---- the source ----

// The bytes of the step for each line: those charged to it, and those of the
// operations in it that are charged to its callers.
function lineBytes() {
  const share = new Map();
  const add = (place, key, bytes) => {
    if (!isShown(place))
      return;
    const name = lineOf(place), of = share.get(name) || { charged: 0, called: 0 };
    of[key] += bytes;
    share.set(name, of);
  };
  for (const l of launches.filter(x => x.step === step))
    for (const c of l.charges) {
      add(c, "charged", c.bytes);
      if (isCall(c))
        add(ownPlace(c), "called", c.bytes);
    }
  return share;
}

function lineTitle(of) {
  if (!of)
    return "";
  const charged = of.charged ? [`${bytesText(of.charged)} in ${step}`] : [];
  const called = of.called
    ? [`${bytesText(of.called)} in ${step}, charged to the lines that call this function`] : [];
  return [...charged, ...called].join("\n");
}

function heatDraw(of, most) {
  const heat = element("span", { class: "heat" });
  for (const key of ["charged", "called"])
    if (of && of[key] > 0)
      heat.append(element("i", { class: key,
        style: `width:${(100 * Math.min(1, of[key] / most)).toFixed(1)}%` }));
  return heat;
}

function lineDraw(text, number, file, of, most) {
  const name = lineName(number, file);
  return element("a", { id: `at-${name}`, href: `#${name}`,
    tabindex: number > 1 || file ? -1 : 0, title: lineTitle(of) },
  element("span", { class: "number" }, String(number)), heatDraw(of, most),
  element("span", {}, text || " "));
}

function sourceDraw() {
  const share = lineBytes();
  const most = Math.max(1, ...[...share.values()].map(of => of.charged));
  byId("source").replaceChildren(element("div", { class: "code" },
    ...data.sources.flatMap((source, file) => [
      ...file ? [element("p", { class: "file" }, source.file)] : [],
      ...source.text.replace(/\n$/, "").split("\n").map((text, i) =>
        lineDraw(text, i + 1, file, share.get(lineName(i + 1, file)), most))])));
}

// ---- the chain of launches ----

function arcsDraw(list) {
  const width = 74, dot = width - 8;
  const picture = drawn("svg", { width, height: ROW * list.length });
  const middle = i => ROW * i + ROW / 2;
  sourcesOf(list).forEach((from, i) => from.forEach(j => {
    const faint = from.length > MANY ? " faint" : "";
    const reach = Math.min(dot - 4, 6 + 9 * Math.log2(i - j));
    picture.append(drawn("path", {
      d: `M${dot},${middle(j)}C${dot - reach * 1.3},${middle(j)} ` +
        `${dot - reach * 1.3},${middle(i)} ${dot},${middle(i)}`,
      fill: "none", class: `arc${faint}`, "data-from": j, "data-to": i,
    }));
  }));
  list.forEach((l, i) => picture.append(drawn("circle",
    { cx: dot, cy: middle(i), r: l.kind === "call" ? 4 : 3, class: passOf(l) })));
  return picture;
}

function rowDraw(l, longest, first) {
  const bar = element("span", {
    class: `bar ${l.bound_by}`,
    style: `width:${(100 * l.roofline_seconds / longest).toFixed(1)}%`,
  });
  return element("a", {
    class: "row", id: `at-${idOf(l)}`, href: `#${idOf(l)}`, tabindex: first ? 0 : -1,
    title: `${l.name}\n${timeText(l.roofline_seconds)} by ${l.bound_by}, ${bytesText(l.bytes)}`,
  }, element("span", { class: "rate" }, bar),
  element("span", { class: l.kind === "call" ? "name call" : "name" }, l.name));
}

function stepChooser() {
  const choice = element("select", { "aria-label": "step" },
    ...steps.map(name => element("option", name === step ? { selected: "" } : {}, name)));
  choice.addEventListener("change", () => stepChoose(choice.value));
  return choice;
}

function launchesDraw() {
  const list = launches.filter(l => l.step === step);
  const longest = Math.max(1e-12, ...list.map(l => l.roofline_seconds));
  byId("launches").replaceChildren(
    element("div", { class: "toolbar" }, "step ", stepChooser(),
      ` · ${launchesText()} launches · bars: roofline time`),
    element("div", { class: "chain" }, ...list.map((l, i) => rowDraw(l, longest, i === 0)),
      arcsDraw(list)));
}

// ---- one launch ----

function fact(list, name, ...value) {
  list.append(element("dt", {}, name), element("dd", {}, ...value));
}

const lineText = place => fileOf(place) ? `${place.file}:${place.line}` : `line ${place.line}`;
const lineLink = place => !place.file ? ""
  : isShown(place) ? element("a", { href: `#${lineOf(place)}` }, lineText(place))
    : lineText(place);

const launchLink = l => element("a", { href: `#${idOf(l)}` }, l.name);

function listed(items) {
  return items.flatMap((item, i) => i ? [", ", item] : [item]);
}

function resourcesDraw(list, l) {
  for (const r of l.resources)
    fact(list, r.arch, `${r.registers} registers, ` +
      (r.spill_bytes ? `${r.spill_bytes} bytes spilled` : "no spills") +
      `, ${r.shared_bytes} bytes shared`);
}

const blocksText = l =>
  `${countText(l.blocks)} block${l.blocks === 1 ? "" : "s"} of ${l.threads} threads`;

// The lines that pay for a launch, the largest share first.
function chargedDraw(l) {
  const at = new Map();
  for (const c of l.charges) {
    const of = at.get(lineOf(c)) || { place: c, bytes: 0 };
    of.bytes += c.bytes;
    at.set(lineOf(c), of);
  }
  return inOrder([...at.values()], x => x.bytes).map(({ place, bytes }) =>
    element("span", {}, lineLink(place), ` ${bytesText(bytes)}`));
}

function factsDraw(l) {
  const list = element("dl", { class: "facts" });
  fact(list, "lines", ...listed(l.lines.map(lineLink)));
  if (l.charges.some(isCall))
    fact(list, "charged to", ...listed(chargedDraw(l)));
  fact(list, "bytes moved", bytesText(l.bytes));
  fact(list, "arithmetic", flopsText(l.flops));
  if (l.kind === "kernel")
    fact(list, "launch", blocksText(l));
  resourcesDraw(list, l);
  fact(list, "roofline time", `${timeText(l.roofline_seconds)}, bound by ${l.bound_by}`);
  if (l.fused_into)
    fact(list, "fused into", launchLink(launches.find(x =>
      x.step === l.step && x.name === l.fused_into)), " where the library supports it");
  const merged = mergedOf(l);
  if (merged)
    fact(list, "merged into", `${merged.name}, one launch of `, ...listed(partsOf(merged).map(launchLink)));
  return list;
}

// The kernels of a merged launch.
const partsOf = merged => Array.from({ length: merged.count },
  (_, i) => launchAt.get(`${merged.step}-${merged.index + i}`));

// A table of the first rows, and of the others when they are asked for.
function tableDraw(list, row) {
  const table = element("table", {}, ...list.slice(0, ROWS).map(row));
  const left = list.slice(ROWS);
  if (left.length) {
    const more = element("button", { type: "button", class: "more" }, `${countText(left.length)} more`);
    const last = element("tr", {}, element("td", { colspan: 5 }, more));
    more.addEventListener("click", () => last.replaceWith(...left.map(row)));
    table.append(last);
  }
  return table;
}

// The tensors that a launch reads or writes, with the launches at the other end.
function tensorsDraw(l, name, list) {
  const other = name === "reads" ? "writes" : "reads";
  const ends = t => {
    const all = endsOf(t.node)[other].filter(x => x !== l);
    return element("div", { class: "ends" }, ...listed(all.slice(0, NAMED).map(launchLink)),
      all.length > NAMED ? ` and ${all.length - NAMED} more` : "",
      ...(t.reason ? [`, because ${t.reason}`] : []));
  };
  const row = t => element("tr", {}, element("td", { class: "mono" }, `%${t.node}`),
    element("td", { class: "mono" }, t.type), element("td", {}, t.name, ends(t)),
    element("td", { class: "count" }, bytesText(t.bytes)));
  return list.length ? [element("h3", {}, name), tableDraw(list, row)] : [];
}

function operationRow(o) {
  const row = element("tr", { "data-node": o.node },
    element("td", { class: "mono" }, element("button", { type: "button" }, `%${o.node}`)),
    element("td", { class: "mono" }, o.op), element("td", { class: "mono" }, o.type),
    element("td", {}, lineLink(o)),
    element("td", { class: "path" }, (o.path || "") + (o.backward ? " backward" : "")));
  row.addEventListener("click", e => e.target.closest("a") || nodeMark(o.node, "pre b"));
  return row;
}

const operationsDraw = l => [element("h3", {},
  l.operations.length === 1 ? "1 operation" : `${countText(l.operations.length)} operations`),
  tableDraw(l.operations, operationRow)];

// The text that a launch has; a name such as v12 or out12_1 stands for operation
// %12, and p12 also for a tensor that is read, or, where the text is written for
// another launch, for what has that place here.  An index may be called x1, too.
function textDraw(text, l) {
  const pre = element("pre", {});
  const operations = new Set(l.operations.map(o => String(o.node)));
  const tensors = new Set([...l.reads, ...l.writes].map(t => String(t.node)));
  const here = new Map(l.text_nodes.map(pair => pair.map(String)));
  for (const line of text.split("\n")) {
    if (line.startsWith("//")) {
      pre.append(element("span", { class: "comment" }, `${line}\n`));
      continue;
    }
    let end = 0;
    for (const word of line.matchAll(/\b(v|p|out|s|q|near|pivot|d|x|at)(\d+)(?:_\d+)?\b/g)) {
      const node = here.get(word[2]) || word[2];
      if (!operations.has(node) && !(word[1] === "p" && tensors.has(node)))
        continue;
      pre.append(line.slice(end, word.index));
      const name = element("b", { "data-node": node, title: `%${node}` }, word[0]);
      name.addEventListener("click", () => nodeMark(node, "tr"));
      pre.append(name);
      end = word.index + word[0].length;
    }
    pre.append(`${line.slice(end)}\n`);
  }
  return pre;
}

// Marks an operation in the table and in the text, and brings into view where it
// is at the other end.
function nodeMark(node, other) {
  if (!byId("detail").querySelector(`tr[data-node="${node}"]`))
    byId("detail").querySelector(".more")?.click();
  for (const e of byId("detail").querySelectorAll("[data-node]"))
    e.classList.toggle("marked", e.dataset.node === String(node));
  const first = byId("detail").querySelector(`${other}.marked`);
  if (first)
    paneShow(first);
}

// The text of a kernel, which may be written for another launch.
function ownTextDraw(l) {
  const own = textAt.get(l.text_of);
  if (!own)
    return [element("p", { class: "note" }, "A library call has no text here.")];
  const head = own === l ? [] : [" shared with ", element("a",
    { href: `#${idOf(own)}` }, `launch ${own.index} of ${own.step}`)];
  return [element("h3", {}, "CUDA text", ...head), textDraw(own.text, l)];
}

// The text of the merged launch, which calls the functions of its kernels.
function mergedTextDraw(l) {
  const merged = mergedOf(l), facts = element("dl", { class: "facts" });
  if (!merged)
    return [];
  fact(facts, "launch", blocksText(merged));
  resourcesDraw(facts, merged);
  const nothing = { operations: [], reads: [], writes: [], text_nodes: [] };
  return [element("h3", {}, `CUDA text of ${merged.name}`), facts,
    textDraw(mergedTextAt.get(merged.name), nothing)];
}

function detailDraw(l) {
  const text = [...ownTextDraw(l), ...mergedTextDraw(l)];
  byId("detail").replaceChildren(element("h3", {}, l.name), factsDraw(l),
    ...operationsDraw(l), ...tensorsDraw(l, "reads", l.reads),
    ...tensorsDraw(l, "writes", l.writes), ...text);
}

// ---- the choice ----

// Scrolls within the pane alone: the page stays where it is.
function paneShow(e) {
  const pane = e.closest(".pane");
  const shown = e.firstElementChild || e;
  const at = shown.getBoundingClientRect().top - pane.getBoundingClientRect().top;
  if (at < 40 || at > pane.clientHeight - 40)
    pane.scrollTop += at - pane.clientHeight / 3;
}

function marksClear() {
  for (const e of document.querySelectorAll(".panes .marked, .panes .chosen"))
    e.classList.remove("marked", "chosen");
  byId("detail").scrollTop = 0;
}

// A list is one stop of the tab key, at what was last chosen in it; arrow keys
// go on from there.
function stopMove(pane, to) {
  for (const e of pane.querySelectorAll('a[tabindex="0"]'))
    e.tabIndex = -1;
  to.tabIndex = 0;
}

function keyFollow(event) {
  const list = [...event.currentTarget.querySelectorAll("a[tabindex]")];
  const at = list.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: list.length - 1 }[event.key];
  if (at < 0 || to === undefined || !list[to])
    return;
  event.preventDefault();
  list[to].focus();
  location.hash = list[to].hash;
}

function arcsMark(index) {
  for (const e of document.querySelectorAll(`.arc[data-from="${index}"], .arc[data-to="${index}"]`))
    e.classList.add("chosen");
}

function lineChoose(name) {
  const mine = launches.filter(l => l.step === step && linesOf(l).includes(name));
  placeOf(name).classList.add("chosen");
  stopMove(byId("source"), placeOf(name));
  paneShow(placeOf(name));
  for (const l of mine)
    placeOf(idOf(l)).classList.add("marked");
  if (mine.length) {
    paneShow(placeOf(idOf(mine[0])));
    detailDraw(mine[0]);
  } else {
    byId("detail").replaceChildren(element("p", { class: "note" },
      `No launch of ${step} comes from this line.`));
  }
}

function launchChoose(l) {
  if (l.step !== step)
    stepChoose(l.step);
  placeOf(idOf(l)).classList.add("chosen");
  stopMove(byId("launches"), placeOf(idOf(l)));
  paneShow(placeOf(idOf(l)));
  arcsMark(l.index);
  const lines = linesOf(l).map(placeOf);
  for (const e of lines)
    e.classList.add("marked");
  if (lines.length)
    paneShow(lines[0]);
  detailDraw(l);
}

// A link from below brings the panes back into view.
function panesShow() {
  const at = byId("launches").getBoundingClientRect();
  if (at.bottom < 100 || at.top > window.innerHeight - 100)
    byId("workbench").scrollIntoView();
}

// The choice in the address; "" where an escape is incomplete.
function chosenId() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

function addressFollow() {
  const id = chosenId();
  if (id.startsWith("line-") && placeOf(id)) {
    marksClear();
    lineChoose(id);
    panesShow();
  } else if (launchAt.has(id)) {
    marksClear();
    launchChoose(launchAt.get(id));
    panesShow();
  }
}

// ---- charts ----

// Entries of a legend: a field of a colour, or a line as it is drawn.
const key = (name, text) =>
  [element("span", { class: "key", style: `background:var(--${name})` }), text];
const lineKey = (name, text) => [drawn("svg", { class: "chart-key", width: 24, height: 10 },
  drawn("line", { class: name, x1: 0, x2: 24, y1: 5, y2: 5 })), text];

function axis(picture, x, y, height, width, most, text) {
  for (let i = 0; i <= 4; i++) {
    const at = y + height * (1 - i / 4);
    picture.append(drawn("line", { x1: x, x2: x + width, y1: at, y2: at, class: "grid" }),
      drawn("text", { x: x - 6, y: at + 4, "text-anchor": "end" }, text(most * i / 4)));
  }
}

function path(points) {
  return points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(2)},${y.toFixed(2)}`).join("");
}

// Each buffer is a rectangle: launches from left to right, addresses upwards.
function memoryDraw() {
  const m = data.memory, left = 80, top = 14, width = 1100, height = 380;
  const most = Math.max(1, m.arena_bytes), across = Math.max(1, m.launches);
  const x = k => left + width * k / across, y = b => top + height * (1 - b / most);
  const picture = drawn("svg", { viewBox: `0 0 ${left + width + 10} ${top + height + 34}`,
    class: "chart", role: "img", "aria-label": "memory over time" });
  axis(picture, left, top, height, width, most, bytesText);
  const names = launches.filter(l => l.step === m.step);
  for (const b of m.buffers) {
    const to = Math.min(b.to + 1, m.launches);
    const r = titled(drawn("rect", { class: `buffer ${b.backward ? "backward" : "forward"}`,
      x: x(b.from), width: Math.max(0.5, x(to) - x(b.from)), y: y(b.offset + b.bytes),
      height: Math.max(0.5, y(b.offset) - y(b.offset + b.bytes)) }),
      `%${b.node} ${b.type} ${b.name}\n${bytesText(b.bytes)}, launches ${b.from} to ${b.to}` +
      (b.file ? `, ${b.file}:${b.line}` : ""));
    r.addEventListener("click", () => { location.hash = idOf(names[b.from]); });
    picture.append(r);
  }
  const fixed = m.states + m.inputs;
  picture.append(titled(drawn("rect", { class: "update", x: left, width, y: y(fixed),
    height: y(0) - y(fixed) }), `states and inputs: ${bytesText(fixed)}`));
  picture.append(drawn("path", { class: "live", d: path(m.live.flatMap((b, k) =>
    [[x(k), y(b + fixed)], [x(k + 1), y(b + fixed)]])) }));
  picture.append(drawn("line", { class: "peak", x1: x(m.peak + 0.5), x2: x(m.peak + 0.5),
    y1: top, y2: top + height }));
  picture.append(drawn("text", { x: left, y: top + height + 22 },
    `time: launches 0 to ${m.launches - 1} of ${m.step}; height: address in the arena`));
  byId("memory").replaceChildren(element("h2", {}, "Memory"), picture,
    element("p", { class: "note" }, ...key("forward", "buffer of the forward pass"),
      ...key("backward", "of the backward pass"), ...key("update", "states and inputs"),
      ...lineKey("live", "bytes that are live"), ...lineKey("peak", "peak, at "),
      names.length ? element("a", { href: `#${idOf(names[m.peak])}` }, names[m.peak].name) : "none"),
    ...peakDraw(m));
}

const callPlace = b => ({ file: b.call_file, line: b.call_line });
const keyOf = place => `${place.file}:${place.line}`;

// Bytes and number of buffers for each place, the largest first.
function totalsOf(buffers, placeOfBuffer) {
  const totals = new Map();
  for (const b of buffers) {
    const place = placeOfBuffer(b);
    const of = totals.get(keyOf(place)) || { place, bytes: 0, buffers: [] };
    of.bytes += b.bytes;
    of.buffers.push(b);
    totals.set(keyOf(place), of);
  }
  return inOrder([...totals.values()], x => x.bytes);
}

// The lines inside functions, below the line that calls them.
function insideDraw({ place, buffers }) {
  const inside = totalsOf(buffers, b => b).filter(x => keyOf(x.place) !== keyOf(place));
  return inside.length === 0 ? [] : [element("div", { class: "ends" }, "inside: ",
    ...listed(inside.map(x => element("span", {}, lineLink(x.place), ` ${bytesText(x.bytes)}`))))];
}

// The lines whose layers own the buffers that are live at the peak.
function peakDraw(m) {
  const totals = totalsOf(m.buffers.filter(b => b.from <= m.peak && m.peak <= b.to), callPlace);
  const most = Math.max(1, ...totals.map(x => x.bytes));
  const row = x => element("tr", {},
    element("td", {}, x.place.file ? lineLink(x.place) : "no line", ...insideDraw(x)),
    element("td", { class: "count" }, bytesText(x.bytes)),
    element("td", { class: "count" }, x.buffers.length === 1 ? "1 buffer" : `${x.buffers.length} buffers`),
    element("td", { style: "width:50%" }, element("span", { class: "bar",
      style: `width:${(100 * x.bytes / most).toFixed(2)}%` })));
  return totals.length === 0 ? [] : [element("h3", {}, "Live at the peak, by line of the model body"),
    element("table", { id: "peak" }, element("tbody", {}, ...totals.map(row)))];
}

// ---- tables that can be put in order ----

// A cell of heads for columns of [name, value of a row, class]; the one that is
// sorted by is marked, and a click chooses another.
function headsDraw(columns, sorted, choose) {
  return columns.map(([name, , kind], i) => {
    const button = element("button", { type: "button" }, name + (i === sorted ? " ▾" : ""));
    button.addEventListener("click", () => choose(i));
    const order = kind ? "descending" : "ascending";
    return element("th", { class: kind, ...(i === sorted && { "aria-sort": order }) }, button);
  });
}

// Names from a to z, numbers from the largest.
function inOrder(list, value) {
  return [...list].sort((a, b) => typeof value(a) === "string"
    ? value(a).localeCompare(value(b)) : value(b) - value(a));
}

// ---- the roofline ----

const intensityOf = l => l.bytes ? l.flops / l.bytes : 0;
const rateOf = l => l.roofline_seconds > 0 ? l.flops / l.roofline_seconds : 0;

// The powers of ten around some numbers above 0.
function decadesOf(values) {
  const powers = values.filter(v => v > 0).map(Math.log10);
  const low = Math.floor(Math.min(...powers));
  return [low, Math.max(low + 1, Math.ceil(Math.max(...powers)))];
}

const powerText = i => i < 0 ? (10 ** i).toFixed(-i) : countText(10 ** i);

// Scales of a chart with two logarithmic axes; launches without arithmetic have a
// column of their own at the left.
function rooflineScales(list) {
  const [x0, x1] = decadesOf([1, ...list.map(intensityOf), device.f16_flops / device.bytes_per_second]);
  const roof = x => Math.min(device.f16_flops, x * device.bytes_per_second);
  const [y0, y1] = decadesOf([...list.map(rateOf), roof(10 ** x0), device.f16_flops]);
  const left = 120, top = 14, width = 920, height = 360;
  const across = v => left + width * (Math.log10(v) - x0) / (x1 - x0);
  const up = v => top + height * (1 - (Math.log10(v) - y0) / (y1 - y0));
  return { x0, x1, y0, y1, left, top, width, height, roof, x: across, y: up };
}

function rooflineAxes(picture, s) {
  for (let i = s.x0; i <= s.x1; i++)
    picture.append(drawn("line", { class: "grid", x1: s.x(10 ** i), x2: s.x(10 ** i), y1: s.top,
      y2: s.top + s.height }), drawn("text", { x: s.x(10 ** i), y: s.top + s.height + 16,
      "text-anchor": "middle" }, powerText(i)));
  for (let i = s.y0; i <= s.y1; i++)
    picture.append(drawn("line", { class: "grid", x1: s.left, x2: s.left + s.width,
      y1: s.y(10 ** i), y2: s.y(10 ** i) }), drawn("text", { x: s.left - 56, y: s.y(10 ** i) + 4,
      "text-anchor": "end" }, scaled(10 ** i, ["", "k", "M", "G", "T", "P"], 1000)));
  picture.append(
    drawn("text", { x: s.left - 32, y: s.top + s.height + 16, "text-anchor": "middle" }, "0"),
    drawn("text", { x: s.left + s.width / 2, y: s.top + s.height + 34, "text-anchor": "middle" },
      "arithmetic intensity (flop/byte)"),
    drawn("text", { x: 12, y: s.top + s.height / 2, "text-anchor": "middle",
      transform: `rotate(-90 12 ${s.top + s.height / 2})` }, "attainable rate (flop/s)"));
}

// The machine: bandwidth, and the peaks of the two kinds of arithmetic.
function rooflineRoofs(picture, s) {
  const most = 10 ** s.x1;
  const roofs = [["bandwidth", 1 / device.bytes_per_second * 10 ** s.y0, device.f16_flops / device.bytes_per_second,
    x => x * device.bytes_per_second, `bandwidth ${rateText(device.bytes_per_second)}`],
  ...[["f32", device.f32_flops], ["f16", device.f16_flops]].map(([name, peak]) =>
    [name, peak / device.bytes_per_second, most, () => peak, `peak ${name} ${flopsText(peak)}/s`])];
  for (const [name, from, to, rate, text] of roofs) {
    const x = Math.max(10 ** s.x0, from);
    picture.append(titled(drawn("line", { class: `roof ${name}`, x1: s.x(x), y1: s.y(rate(x)),
      x2: s.x(to), y2: s.y(rate(to)) }), text));
  }
}

const kindOf = l => l.kind === "call" ? `${passOf(l)} call` : passOf(l);

function rooflineDot(s, l, longest) {
  const none = !(l.flops > 0) || !(l.bytes > 0);
  const dot = titled(drawn("circle", { class: `dot ${kindOf(l)}`,
    cx: none ? s.left - 32 : s.x(intensityOf(l)), cy: none ? s.top + s.height : s.y(rateOf(l)),
    r: 2.5 + 11 * Math.sqrt(l.roofline_seconds / longest) }),
  `${l.name}\n${timeText(l.roofline_seconds)}, bound by ${l.bound_by}\n` +
    `${bytesText(l.bytes)}, ${flopsText(l.flops)}, ${intensityOf(l).toFixed(2)} flop/byte`);
  return drawn("a", { href: `#${idOf(l)}` }, dot);
}

// Large dots are drawn first, so that each can be pointed at.
function rooflineDraw(list) {
  const s = rooflineScales(list), longest = Math.max(1e-12, ...list.map(l => l.roofline_seconds));
  const picture = drawn("svg", { viewBox: `0 0 ${s.left + s.width + 30} ${s.top + s.height + 44}`,
    class: "chart", id: "roofline", role: "img", "aria-label": "roofline of the launches" });
  rooflineAxes(picture, s);
  rooflineRoofs(picture, s);
  for (const l of inOrder(list, x => x.roofline_seconds))
    picture.append(rooflineDot(s, l, longest));
  return [picture, element("p", { class: "note", id: "roofline-legend" },
    ...key("forward", "forward kernel"), ...key("backward", "backward kernel"),
    ...key("update", "update"), ...key("pane", "library call (black edge)"),
    ...lineKey("roof bandwidth", `bandwidth ${rateText(device.bytes_per_second)}`),
    ...lineKey("roof f32", `peak f32 ${flopsText(device.f32_flops)}/s`),
    ...lineKey("roof f16", `peak f16 tensor cores ${flopsText(device.f16_flops)}/s`),
    ` · The area of a dot is its roofline time; point at one for its name. Launches ` +
    `without arithmetic stand at 0. Dots lie on a roof because they are bounds from bytes ` +
    `and flops alone: the rate at which instructions issue is not part of the bound.`)];
}

// ---- tables of costs ----

// The name given by `as`, or the layer itself.
const layerOf = path => !path ? "no layer"
  : path.includes(".") ? path.slice(0, path.lastIndexOf(".")) : path;

// The costs of each layer in the step, the longest first.
function layersOf(list) {
  const layers = new Map();
  for (const l of list)
    for (const c of l.charges) {
      const name = layerOf(c.path);
      const of = layers.get(name) || { name, places: new Map(), bytes: 0, flops: 0, seconds: 0 };
      of.bytes += c.bytes;
      of.flops += c.flops;
      of.seconds += secondsOf(l, c);
      if (c.file)
        of.places.set(keyOf(c), c);
      layers.set(name, of);
    }
  return inOrder([...layers.values()], x => x.seconds);
}

function layersDraw(list) {
  const layers = layersOf(list), longest = Math.max(1e-12, ...layers.map(x => x.seconds));
  const row = x => element("tr", {}, element("td", { class: "mono" }, x.name),
    element("td", {}, ...listed([...x.places.values()].sort((a, b) => a.line - b.line).map(lineLink))),
    element("td", { class: "count" }, bytesText(x.bytes)),
    element("td", { class: "count" }, flopsText(x.flops)),
    element("td", { class: "count" }, timeText(x.seconds)),
    element("td", { style: "width:30%" }, element("span", { class: "bar time",
      style: `width:${(100 * x.seconds / longest).toFixed(2)}%` })));
  const heads = [["layer", ""], ["called in", ""], ["bytes", "count"], ["flops", "count"],
    ["roofline time", "count"], ["", ""]];
  return element("div", { class: "scroll" }, element("table", { id: "layers" },
    element("thead", {}, element("tr", {}, ...heads.map(([name, kind]) =>
      element("th", { class: kind }, name)))), element("tbody", {}, ...layers.map(row))));
}

const columns = [
  ["launch", l => l.name, ""],
  ["bytes", l => l.bytes, "count"],
  ["flops", l => l.flops, "count"],
  ["flop/byte", intensityOf, "count"],
  ["roofline time", l => l.roofline_seconds, "count"],
  ["bound by", l => l.bound_by, ""],
];
let sorted = 4;

function costRow(l, longest) {
  return element("tr", {},
    element("td", { class: "mono" }, element("a", { href: `#${idOf(l)}` }, l.name)),
    element("td", { class: "count" }, bytesText(l.bytes)),
    element("td", { class: "count" }, flopsText(l.flops)),
    element("td", { class: "count" }, intensityOf(l).toFixed(1)),
    element("td", { class: "count" }, timeText(l.roofline_seconds)),
    element("td", {}, l.bound_by),
    element("td", { style: "width:30%" }, element("span", { class: `bar ${l.bound_by}`,
      style: `width:${(100 * l.roofline_seconds / longest).toFixed(2)}%` })));
}

function launchTableDraw(list) {
  const longest = Math.max(1e-12, ...list.map(l => l.roofline_seconds));
  const heads = headsDraw(columns, sorted, i => {
    sorted = i;
    costsDraw();
  });
  return element("div", { class: "scroll" }, element("table", { id: "launch-costs" },
    element("thead", {}, element("tr", {}, ...heads, element("th", {}))),
    element("tbody", {}, ...inOrder(list, columns[sorted][1]).map(l => costRow(l, longest)))));
}

function costsDraw() {
  const list = launches.filter(l => l.step === step);
  byId("costs").replaceChildren(element("h2", {}, `Costs of ${step}`),
    element("h3", {}, "Roofline"), ...rooflineDraw(list),
    element("h3", {}, "By layer"), layersDraw(list),
    element("h3", {}, "By launch"), launchTableDraw(list),
    element("p", { class: "note" }, ...key("memory", "bound by memory"),
      ...key("arithmetic", "bound by arithmetic"), ...key("issue", "bound by instructions"),
      ...key("forward", "roofline time of a layer")));
}

// ---- schedules ----

const shortText = v => v === 0 ? "0" : Math.abs(v) >= 0.001 && Math.abs(v) < 1e5
  ? String(Number(v.toPrecision(4))) : v.toExponential(2);

function scheduleDraw(row) {
  const left = 62, top = 10, width = 380, height = 110, at = data.recipe.at;
  const most = Math.max(...row.values, 0) || 1, end = Math.max(1, data.recipe.updates - 1);
  const picture = drawn("svg", { viewBox: `0 0 ${left + width + 12} ${top + height + 26}`,
    class: "chart", role: "img", "aria-label": row.name });
  axis(picture, left, top, height, width, most, shortText);
  picture.append(drawn("path", { class: "line", d: path(row.values.map((v, i) =>
    [left + width * at[i] / end, top + height * (1 - v / most)])) }));
  picture.append(drawn("text", { x: left, y: top + height + 18 }, "update 0"),
    drawn("text", { x: left + width, y: top + height + 18, "text-anchor": "end" },
      countText(data.recipe.updates - 1)));
  const of = !row.of ? "" : row.count > 1 ? ` of ${row.of} and ${row.count - 1} more` : ` of ${row.of}`;
  const from = row.file ? [" ", lineLink(row)] : [];
  return element("div", {}, element("h3", {}, row.name + of, ...from), picture);
}

// Numbers that stay the same are in a table below the curves.
function recipeDraw() {
  const r = data.recipe;
  const moves = row => row.values.some(v => v !== row.values[0]);
  const still = r.rows.filter(row => !moves(row));
  const assumed = r.known ? "" : " (assumed: the data set gives no number of samples)";
  byId("recipe").replaceChildren(element("h2", {}, "Schedules"),
    element("p", { class: "hint" }, `${countText(r.updates)} updates, ` +
      `${countText(r.epoch_updates)} in an epoch${assumed}` +
      (r.loss_scale ? `; initial loss scale ${countText(r.loss_scale)}` : "")),
    element("div", { class: "schedules" }, ...r.rows.filter(moves).map(scheduleDraw)),
    element("table", {}, ...still.map(row => element("tr", {},
      element("td", {}, row.name), element("td", { class: "count" }, shortText(row.values[0])),
      element("td", { style: "width:70%" }, row.of
        ? `${row.of}${row.count > 1 ? ` and ${row.count - 1} more` : ""}` : "")))));
}

function parametersDraw() {
  byId("parameters").append(element("div", { class: "scroll" }, element("table", {},
    element("thead", {}, element("tr", {}, ...["name", "type", "elements", "bytes of states", "optimizer", "line"]
      .map((name, i) => element("th", { class: i === 2 || i === 3 ? "count" : "" }, name)))),
    element("tbody", {}, ...data.parameters.map(p => element("tr", {},
      element("td", { class: "mono" }, p.name), element("td", { class: "mono" }, p.type),
      element("td", { class: "count" }, countText(p.count)),
      element("td", { class: "count" }, bytesText(p.states)),
      element("td", {}, p.optimizer || "fixed"),
      element("td", {}, lineLink(p))))))));
}

// ---- all of it ----

// The sections below the panes that are not drawn yet.
const waiting = new Map([["memory", memoryDraw], ["costs", costsDraw],
  ["recipe", recipeDraw], ["parameters", parametersDraw]]);

function waitingDraw(enough) {
  for (const [id, draw] of waiting) {
    waiting.delete(id);
    draw();
    if (enough())
      return;
  }
}

function idleDraw() {
  const later = window.requestIdleCallback || setTimeout;
  later(() => {
    waitingDraw(() => true);
    if (waiting.size)
      idleDraw();
  }, { timeout: 200 });
}

function panesDraw() {
  headDraw();
  sourceDraw();
  launchesDraw();
}

function stepChoose(name) {
  step = name;
  panesDraw();
  if (!waiting.has("costs"))
    costsDraw();
}

panesDraw();
if (!byId("curves").querySelector("svg")) {
  byId("curves").remove();
  document.querySelector('nav a[href="#curves"]').remove();
}
for (const pane of [byId("source"), byId("launches")])
  pane.addEventListener("keydown", keyFollow);
window.addEventListener("hashchange", addressFollow);
window.addEventListener("beforeprint", () => waitingDraw(() => false));
const first = launches.filter(l => l.step === step && l.kind === "kernel")
  .sort((a, b) => b.roofline_seconds - a.roofline_seconds)[0];
if (first && !location.hash)
  detailDraw(first);
addressFollow();
idleDraw();
