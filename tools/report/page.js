// The report's page: everything is drawn from the JSON in it, which has what
// `sinter show kernels --json` prints and beside it source, memory, schedules,
// parameters and what sinter compare found, if that is given.  The address says
// what is chosen (#line-9, #line-9-of-1 in the first file that is imported,
// #train-3), so every link is an ordinary one and the
// browser's history works.  What it names has an id that begins with at-, or the
// browser would move the page to it.  The panes are drawn at once, what is below
// them when the browser has time, or when paper asks for it.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const launches = data.kernels.launches;
const device = data.kernels.device;
const ROW = 22, MANY = 24, ROWS = 200;

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
const joins = data.kernels.joined;
const joinTextAt = new Map(joins.filter(j => j.text).map(j => [j.name, j.text]));
const joinOf = l => joins.find(j => j.step === l.step && j.name === l.joined_as &&
  j.index <= l.index && l.index < j.index + j.count);
const steps = [...new Set(launches.map(l => l.step))];
let step = steps.includes("train") ? "train" : steps[0];

// Files are known by their names alone, as launches have them.
const fileOf = place => data.sources.findIndex(s => s.file === place.file);
const isShown = place => fileOf(place) >= 0;
const lineName = (line, file) => file > 0 ? `line-${line}-of-${file}` : `line-${line}`;
const lineOf = place => lineName(place.line, fileOf(place));
const linesOf = l => l.lines.filter(isShown).map(lineOf);

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

// For each launch of a step, those that leave what it reads.
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

function headDraw() {
  const list = launches.filter(l => l.step === step);
  document.title = `${data.kernels.model} – sinter report`;
  byId("model").textContent = data.kernels.model;
  byId("about").textContent =
    `${data.kernels.file}, planned for CUDA and judged for ${device.name} ` +
    `(${device.arch}) by its description`;
  const figures = [
    ["launches in a step", countText(list.length)],
    ["read and written in a step", bytesText(sum(list, l => l.bytes))],
    ["arithmetic in a step", flopsText(sum(list, l => l.flops))],
    ["arena", bytesText(data.kernels.arena_bytes)],
    ["parameters", countText(sum(data.parameters, p => p.count))],
    ["roofline of a step", timeText(sum(list, l => l.roofline_seconds))],
  ];
  byId("figures").replaceChildren(...figures.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  byId("end").textContent =
    `Made by sinter ${data.version}. Bytes and flops are those of the plan; the ` +
    "roofline is the longer of bytes / bandwidth and flops / peak of each " +
    "launch: a bound, not a measurement.";
}

// ---- the source ----

// The share of each line in the bytes of the step; those of a launch are
// divided evenly among its lines.
function lineBytes() {
  const share = new Map();
  for (const l of launches)
    if (l.step === step)
      for (const line of linesOf(l))
        share.set(line, (share.get(line) || 0) + l.bytes / l.lines.length);
  return share;
}

function sourceDraw() {
  const share = lineBytes();
  const most = Math.max(1, ...share.values());
  byId("source").replaceChildren(element("div", { class: "code" },
    ...data.sources.flatMap((source, file) => [
      ...file ? [element("p", { class: "file" }, source.file)] : [],
      ...source.text.replace(/\n$/, "").split("\n").map((text, i) => {
        const name = lineName(i + 1, file), bytes = share.get(name) || 0;
        const heat = element("span", { class: "heat" });
        if (bytes > 0)
          heat.append(element("i", { style: `width:${(100 * bytes / most).toFixed(1)}%` }));
        return element("a", {
          id: `at-${name}`, href: `#${name}`, tabindex: i || file ? -1 : 0,
          title: bytes ? `${bytesText(bytes)} in a step` : "",
        }, element("span", { class: "number" }, String(i + 1)), heat,
          element("span", {}, text || " "));
      })])));
}

// ---- the chain of launches ----

function arcsDraw(list) {
  const width = 88, dot = width - 8;
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

// What is done may be cut where there is no room, the layer behind it not.
function nameDraw(l) {
  const at = l.name.lastIndexOf("__");
  const name = element("span", { class: l.kind === "call" ? "name call" : "name" },
    element("span", {}, at < 0 ? l.name : l.name.slice(0, at)));
  if (at >= 0)
    name.append(element("span", { class: "layer" }, l.name.slice(at)));
  return name;
}

function rowDraw(l, longest, first) {
  const bar = element("span", {
    class: `bar ${l.bound_by}`,
    style: `width:${(100 * l.roofline_seconds / longest).toFixed(1)}%`,
  });
  return element("a", {
    class: "row", id: `at-${idOf(l)}`, href: `#${idOf(l)}`, tabindex: first ? 0 : -1,
    title: `${l.name}\n${timeText(l.roofline_seconds)} by ${l.bound_by}, ${bytesText(l.bytes)}`,
  }, nameDraw(l), element("span", { class: "rate" }, bar));
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
      ` · ${list.length} launch${list.length === 1 ? "" : "es"} · bars: roofline`),
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

function factsDraw(l) {
  const list = element("dl", { class: "facts" });
  fact(list, "from", ...listed(l.lines.map(lineLink)));
  fact(list, "bytes", bytesText(l.bytes));
  fact(list, "arithmetic", flopsText(l.flops));
  if (l.kind === "kernel")
    fact(list, "launch", blocksText(l));
  resourcesDraw(list, l);
  fact(list, "roofline", `${timeText(l.roofline_seconds)}, by ${l.bound_by}`);
  if (l.rides_on)
    fact(list, "saved by", launchLink(launches.find(x =>
      x.step === l.step && x.name === l.rides_on)), " where the library can");
  const join = joinOf(l);
  if (join)
    fact(list, "joined as", `${join.name}, one launch of `, ...listed(partsOf(join).map(launchLink)));
  return list;
}

// The launches that a joined one makes.
const partsOf = join => Array.from({ length: join.count },
  (_, i) => launchAt.get(`${join.step}-${join.index + i}`));

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

// What a launch reads or writes, with the launches at the other end.
function tensorsDraw(l, name, list) {
  const other = name === "reads" ? "writes" : "reads";
  const ends = t => element("div", { class: "ends" },
    ...listed(endsOf(t.node)[other].filter(x => x !== l).slice(0, 6).map(launchLink)),
    ...(t.because ? [`, because ${t.because}`] : []));
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
    element("td", {}, (o.path || "") + (o.backward ? " backward" : "")));
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
    return [element("p", { class: "note" }, "A call of a library.")];
  const head = own === l ? [] : [" that it shares with ", element("a",
    { href: `#${idOf(own)}` }, `launch ${own.index} of ${own.step}`)];
  return [element("h3", {}, "CUDA text", ...head), textDraw(own.text, l)];
}

// The text of what launches it and others as one, which calls those of each.
function joinTextDraw(l) {
  const join = joinOf(l), facts = element("dl", { class: "facts" });
  if (!join)
    return [];
  fact(facts, "launch", blocksText(join));
  resourcesDraw(facts, join);
  const nothing = { operations: [], reads: [], writes: [], text_nodes: [] };
  return [element("h3", {}, `CUDA text of ${join.name}`), facts,
    textDraw(joinTextAt.get(join.name), nothing)];
}

function detailDraw(l) {
  const text = [...ownTextDraw(l), ...joinTextDraw(l)];
  byId("detail").replaceChildren(element("h3", {}, l.name), factsDraw(l),
    ...operationsDraw(l), ...tensorsDraw(l, "reads", l.reads),
    ...tensorsDraw(l, "writes", l.writes), ...text);
}

// ---- what is chosen ----

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

// What the address chooses; "" where somebody has written half an escape.
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
    `launches of ${m.step}, 0 to ${m.launches - 1}`));
  const key = (name, text) => [element("span", { class: "key", style: `background:var(--${name})` }), text];
  byId("memory").replaceChildren(element("h2", {}, "Memory"), picture,
    element("p", { class: "note" }, ...key("forward", "forward"), ...key("backward", "backward"),
      ...key("update", "states and inputs"), " · line: bytes that are live · peak at ",
      names.length ? element("a", { href: `#${idOf(names[m.peak])}` }, names[m.peak].name) : "none"),
    ...peakDraw(m));
}

// Which lines put there what is live when most is.
function peakDraw(m) {
  const lines = new Map();
  for (const b of m.buffers)
    if (b.from <= m.peak && m.peak <= b.to) {
      const key = `${b.file}:${b.line}`, of = lines.get(key) || { place: b, bytes: 0, count: 0 };
      of.bytes += b.bytes;
      of.count++;
      lines.set(key, of);
    }
  const most = Math.max(1, ...[...lines.values()].map(x => x.bytes));
  const row = ({ place, bytes, count }) => element("tr", {},
    element("td", {}, place.file ? lineLink(place) : "no line"),
    element("td", { class: "count" }, bytesText(bytes)),
    element("td", { class: "count" }, count === 1 ? "1 buffer" : `${count} buffers`),
    element("td", { style: "width:60%" }, element("span", { class: "bar",
      style: `width:${(100 * bytes / most).toFixed(2)}%` })));
  return lines.size === 0 ? [] : [element("h3", {}, "Live at the peak, by line"),
    element("table", { id: "peak" }, element("tbody", {},
      ...inOrder([...lines.values()], x => x.bytes).map(row)))];
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

// ---- the table of costs ----

const columns = [
  ["launch", l => l.name, ""],
  ["bytes", l => l.bytes, "count"],
  ["flops", l => l.flops, "count"],
  ["flops / byte", l => l.bytes ? l.flops / l.bytes : 0, "count"],
  ["roofline", l => l.roofline_seconds, "count"],
  ["bound by", l => l.bound_by, ""],
];
let sorted = 4;

function costRow(l, longest) {
  return element("tr", {},
    element("td", { class: "mono" }, element("a", { href: `#${idOf(l)}` }, l.name)),
    element("td", { class: "count" }, bytesText(l.bytes)),
    element("td", { class: "count" }, flopsText(l.flops)),
    element("td", { class: "count" }, columns[3][1](l).toFixed(1)),
    element("td", { class: "count" }, timeText(l.roofline_seconds)),
    element("td", {}, l.bound_by),
    element("td", { style: "width:30%" }, element("span", { class: `bar ${l.bound_by}`,
      style: `width:${(100 * l.roofline_seconds / longest).toFixed(2)}%` })));
}

function costsDraw() {
  const list = inOrder(launches.filter(l => l.step === step), columns[sorted][1]);
  const longest = Math.max(1e-12, ...list.map(l => l.roofline_seconds));
  const heads = headsDraw(columns, sorted, i => {
    sorted = i;
    costsDraw();
  });
  byId("costs").replaceChildren(element("h2", {}, "Bytes and roofline"),
    element("div", { class: "scroll" }, element("table", {},
      element("thead", {}, element("tr", {}, ...heads, element("th", {}))),
      element("tbody", {}, ...list.map(l => costRow(l, longest))))),
    element("p", { class: "note" },
      element("span", { class: "key", style: "background:var(--memory)" }), "by memory",
      element("span", { class: "key", style: "background:var(--arithmetic)" }), "by arithmetic",
      ` · ${device.name}: ${rateText(device.bytes_per_second)}, ` +
      `${flopsText(device.f16_flops)}/s in 16 bits, ${flopsText(device.f32_flops)}/s in 32`));
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

// Numbers that stay the same are said, not drawn.
function recipeDraw() {
  const r = data.recipe;
  const moves = row => row.values.some(v => v !== row.values[0]);
  const still = r.rows.filter(row => !moves(row));
  const assumed = r.known ? "" : " (assumed: the data set does not say how many samples it has)";
  byId("recipe").replaceChildren(element("h2", {}, "Schedules"),
    element("p", { class: "hint" }, `${countText(r.updates)} updates, ` +
      `${countText(r.epoch_updates)} in an epoch${assumed}` +
      (r.loss_scale ? `; the loss is scaled by ${countText(r.loss_scale)} at first` : "")),
    element("div", { class: "schedules" }, ...r.rows.filter(moves).map(scheduleDraw)),
    element("table", {}, ...still.map(row => element("tr", {},
      element("td", {}, row.name), element("td", { class: "count" }, shortText(row.values[0])),
      element("td", { style: "width:70%" }, row.of
        ? `${row.of}${row.count > 1 ? ` and ${row.count - 1} more` : ""}` : "")))));
}

function parametersDraw() {
  byId("parameters").append(element("div", { class: "scroll" }, element("table", {},
    element("thead", {}, element("tr", {}, ...["name", "type", "numbers", "kept beside", "update", "from"]
      .map((name, i) => element("th", { class: i === 2 || i === 3 ? "count" : "" }, name)))),
    element("tbody", {}, ...data.parameters.map(p => element("tr", {},
      element("td", { class: "mono" }, p.name), element("td", { class: "mono" }, p.type),
      element("td", { class: "count" }, countText(p.count)),
      element("td", { class: "count" }, bytesText(p.states)),
      element("td", {}, p.optimizer || "fixed"),
      element("td", {}, lineLink(p))))))));
}

// ---- the comparison ----

const verdicts = ["wrong", "skipped", "carried", "good", "same"];

// The launch that leaves what was compared: by operation and layer, since the
// plans may be of different batches, and by the node only among several.
function launchOf(row) {
  const made = o => o.op === row.op && o.path === row.path && o.backward === row.backward;
  const list = launches.filter(l => l.step === data.comparison.step);
  const makers = list.filter(l => l.operations.some(o => made(o) &&
    (o.op === "assign" || l.writes.some(t => t.node === o.node))));
  return makers.find(l => l.operations.some(o => o.node === row.node)) || makers[0];
}

const relativeTo = (error, size) => size > 0 ? error / size : error;
const errorText = v => v === undefined ? "" : v === null ? "NaN" : v === 0 ? "0" : v.toExponential(2);
const orNone = v => v === undefined || v === null ? Infinity : v;

const comparedColumns = [
  ["verdict", r => verdicts.length - verdicts.indexOf(r.verdict), ""],
  ["tensor", r => r.tensor, ""],
  ["kind", r => r.kind, ""],
  ["type", r => r.type, ""],
  ["absolute", r => orNone(r.absolute), "count"],
  ["relative", r => orNone(r.relative), "count"],
  ["error a", r => relativeTo(orNone(r.error_a), r.size), "count"],
  ["error b", r => relativeTo(orNone(r.error_b), r.size), "count"],
  ["from", r => r.line, ""],
];
let comparedBy = 0;

function comparedRow(r) {
  const l = launchOf(r);
  const error = e => errorText(typeof e === "number" ? relativeTo(e, r.size) : e);
  return element("tr", {},
    element("td", { class: `verdict ${r.verdict}` }, r.verdict),
    element("td", { class: "mono" }, l ? element("a", { href: `#${idOf(l)}`, title: l.name },
      r.tensor) : r.tensor),
    element("td", {}, r.kind), element("td", { class: "mono" }, r.type),
    ...[errorText(r.absolute), errorText(r.relative), error(r.error_a), error(r.error_b)]
      .map(text => element("td", { class: "count" }, text)),
    element("td", {}, r.line ? lineLink(r) : ""));
}

function comparedDraw() {
  const list = inOrder(data.comparison.tensors, comparedColumns[comparedBy][1]);
  const heads = headsDraw(comparedColumns, comparedBy, i => {
    comparedBy = i;
    byId("compared").replaceWith(comparedDraw());
  });
  return element("div", { class: "scroll", id: "compared" }, element("table", {},
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...list.map(comparedRow))));
}

function sidesDraw(c) {
  const milliseconds = v => v === null ? "none" : timeText(v / 1e3);
  const ranges = s => s.low_ms === null ? "" : `${milliseconds(s.low_ms)} .. ${milliseconds(s.high_ms)}`;
  const figures = [
    ["launches", s => s.launches, countText],
    ["bytes read and written", s => s.bytes_moved, bytesText],
    ["arena", s => s.arena_bytes, bytesText],
    ["median of a step", s => s.median_ms, milliseconds],
  ];
  const row = cells => element("tr", {}, ...cells.map((text, i) =>
    element("td", { class: i ? "count" : "" }, text)));
  return element("table", {},
    element("thead", {}, element("tr", {}, ...["", "a", "b", "a / b"].map((name, i) =>
      element("th", { class: i ? "count" : "" }, name)))),
    element("tbody", {}, row(["built with", c.a.options, c.b.options, ""]),
      ...figures.map(([name, of, text]) => row([name, text(of(c.a)), text(of(c.b)),
        of(c.b) > 0 ? (of(c.a) / of(c.b)).toFixed(3) : ""])),
      row([`it is in, ${(100 * (c.a.confidence || 0)).toFixed(1)}% sure`, ranges(c.a),
        ranges(c.b), ""])));
}

// The losses of both; b is drawn over a, and what is not finite ends a line.
function lossesDraw(c) {
  const left = 62, top = 10, width = 560, height = 170;
  const until = s => s.loss.includes(null) ? s.loss.slice(0, s.loss.indexOf(null)) : s.loss;
  const a = until(c.a), b = until(c.b);
  const most = Math.max(...a, ...b, 0) || 1, last = Math.max(a.length, b.length, 2) - 1;
  const picture = drawn("svg", { viewBox: `0 0 ${left + width + 12} ${top + height + 26}`,
    class: "chart", role: "img", "aria-label": "losses of both" });
  axis(picture, left, top, height, width, most, shortText);
  for (const [name, list] of [["a", a], ["b", b]])
    picture.append(titled(drawn("path", { class: `line ${name}`, d: path(list.map((v, i) =>
      [left + width * i / last, top + height * (1 - v / most)])) }), `loss of ${name}`));
  picture.append(drawn("text", { x: left, y: top + height + 18 }, "step 1"),
    drawn("text", { x: left + width, y: top + height + 18, "text-anchor": "end" }, String(last + 1)));
  return element("div", {}, picture, element("p", { class: "note" },
    element("span", { class: "key", style: "background:var(--forward)" }), "loss of a",
    element("span", { class: "key", style: "background:var(--arithmetic)" }), "loss of b"));
}

function comparisonDraw() {
  const c = data.comparison;
  const count = verdict => c.tensors.filter(r => r.verdict === verdict).length;
  byId("comparison").replaceChildren(element("h2", {}, "Comparison"),
    element("p", { class: "hint" }, `${c.tensors.length} tensors: ${count("same")} the same to ` +
      `the bit, ${count("good")} as near to right as b, ${count("carried")} off by what their ` +
      `kernels read, ${count("skipped")} by a skipped step, ${count("wrong")} wrong; ` +
      `${c.only_a} only in a, ${c.only_b} only in b. ` +
      `On ${c.device}, data ${c.data}, batch ${c.batch}. ` + (c.double
      ? "Errors are against double, relative to the tensor's root mean square."
      : "Not evaluated in double: a is measured by b.")),
    element("div", { class: "sides" }, sidesDraw(c), lossesDraw(c)), comparedDraw());
}

// ---- all of it ----

// What is below the panes and not drawn yet.
const waiting = new Map([["memory", memoryDraw], ["costs", costsDraw],
  ["recipe", recipeDraw], ["parameters", parametersDraw], ["comparison", comparisonDraw]]);

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
if (!data.comparison) {
  waiting.delete("comparison");
  byId("comparison").remove();
  document.querySelector('nav a[href="#comparison"]').remove();
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
