// What is asked of a report in a browser.  It is appended to the page; what it
// finds is left in the document for whoever reads it.
"use strict";

const faults = [];

function expect(holds, text) {
  if (!holds && faults.length < 20)
    faults.push(text);
}

// Follows a link as a person does.
async function follow(link) {
  if (link.getAttribute("href") !== location.hash) {
    const moved = new Promise(done =>
      window.addEventListener("hashchange", done, { once: true }));
    link.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
    await moved;
  }
}

const ids = selector => [...document.querySelectorAll(selector)].map(e => e.id.slice(3));
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

function linksCheck(part) {
  for (const link of part.querySelectorAll("a")) {
    const to = (link.getAttribute("href") || "").slice(1);
    expect(byId(to) || placeOf(to) || launchAt.has(to), `a link to nowhere: ${to}`);
  }
}

async function lineCheck(line, file) {
  const name = file ? `line-${line}-of-${file}` : `line-${line}`;
  await follow(placeOf(name));
  const wanted = launches.filter(l => l.step === step && [...l.lines, ...l.charges]
    .some(p => p.line === line && p.file === data.sources[file].file));
  expect(same(ids("#launches .marked"), wanted.map(idOf)), `${name} marks others`);
  expect(same(ids("#source .chosen"), [name]), `${name} is not chosen`);
}

async function launchCheck(l) {
  if (l.step !== step)
    stepChoose(l.step);
  await follow(placeOf(idOf(l)));
  const lines = [...l.lines, ...l.charges].filter(isShown).map(lineOf);
  expect(same(ids("#source .marked").sort(), [...new Set(lines)].sort()),
    `${l.name} marks other lines`);
  const detail = byId("detail").textContent;
  expect(detail.includes(l.name), `${l.name} is not shown`);
  const text = textAt.get(l.text_of), texts = [...byId("detail").querySelectorAll("pre")];
  expect(!text || texts[0].textContent.includes(text.text), `${l.name} has another text`);
  expect(!text || text === l ||
    byId("detail").querySelector(`h3 a[href="#${idOf(text)}"]`), `${l.name} hides whose text it has`);
  expect([...byId("detail").querySelectorAll("td")].filter(e => e.textContent.includes("because "))
    .length === Math.min(ROWS, l.reads.filter(t => t.reason).length), `${l.name} reads for no reason`);
  const merged = merges.filter(j => j.step === l.step && j.name === l.merged_launch);
  expect(!merged.length === !l.merged_launch, `${l.name} is merged into nothing`);
  expect(texts.length === (text ? 1 : 0) + (merged.length ? 1 : 0), `${l.name} has no merged text`);
  expect(!merged.length || texts[1].textContent.includes(`MERGED(256) ${l.merged_launch}(`),
    `${l.name} has another merged text`);
  linksCheck(byId("detail"));
}

// Each name in a shared text stands for an operation of the launch that is shown
// that does what it does for the launch that the text is written for.
async function sharedCheck() {
  const what = (l, node) => {
    const is = t => String(t.node) === node;
    const made = l.operations.find(is) || [...l.reads, ...l.writes].find(is);
    return `${made.op} ${made.type}`;
  };
  for (const l of launches.filter(x => x.text_nodes.length > 0).slice(0, 10)) {
    const own = textAt.get(l.text_of);
    const named = x => [...textDraw(own.text, x).querySelectorAll("b")]
      .map(e => e.textContent + what(x, e.dataset.node));
    await launchCheck(l);
    expect(same(named(own), named(l)), `${l.name} of ${l.step} names others`);
    operationCheck();
  }
}

// An operation that is chosen is marked where the text has it, and nothing else.
function operationCheck() {
  const rows = [...byId("detail").querySelectorAll("tr[data-node]")];
  const row = rows.find(r => byId("detail").querySelector(`b[data-node="${r.dataset.node}"]`));
  expect(row, "no operation is in the text");
  row.querySelector("button").click();
  const marked = [...byId("detail").querySelectorAll(".marked")];
  expect(marked.length > 1 && marked.every(e => e.dataset.node === row.dataset.node),
    "an operation marks others");
  const name = byId("detail").querySelector("pre b.marked").getBoundingClientRect();
  const pane = byId("detail").getBoundingClientRect();
  expect(name.top >= pane.top && name.bottom <= pane.bottom, "the text is out of view");
}

// A long table has its other rows when they are asked for.
async function rowsCheck() {
  const l = launches.filter(x => x.step === step)
    .reduce((a, b) => b.operations.length > a.operations.length ? b : a);
  await follow(placeOf(idOf(l)));
  const rows = () => byId("detail").querySelectorAll("tr[data-node]").length;
  expect(rows() === Math.min(ROWS, l.operations.length), `${rows()} operations at first`);
  const last = l.operations[l.operations.length - 1].node;
  nodeMark(last, "tr");
  expect(rows() === l.operations.length && byId("detail").querySelector("tr.marked").dataset.node
    === String(last), "an operation is not found");
}

// A list is one stop of the tab key; arrow keys choose in it.
async function keysCheck() {
  for (const pane of [byId("source"), byId("launches")]) {
    const stops = pane.querySelectorAll('a[tabindex="0"]'), all = pane.querySelectorAll("a");
    expect(stops.length === 1, `${stops.length} stops in ${pane.id}`);
    all[0].focus();
    const moved = new Promise(done => window.addEventListener("hashchange", done, { once: true }));
    all[0].dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
    await moved;
    expect(document.activeElement === all[1] && all[1].classList.contains("chosen") &&
      all[1].tabIndex === 0 && all[0].tabIndex === -1, `keys do not go down ${pane.id}`);
  }
}

// Words are read against what is behind them: WCAG 2.1 asks for 4.5.
function contrastCheck() {
  const channels = color => color.match(/[\d.]+/g).map(Number);
  const light = color => channels(color).slice(0, 3).map(c => c / 255)
    .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((all, c, i) => all + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => {
    const color = getComputedStyle(e).backgroundColor, alpha = channels(color)[3];
    return alpha === 0 && e.parentElement ? behind(e.parentElement) : color;
  };
  const seen = new Set();
  for (const e of document.querySelectorAll("body *:not(svg *, script)")) {
    const kind = [e, e.parentElement].map(x => `${x.tagName}.${x.className}`).join(" in ");
    if (seen.has(kind) || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
      continue;
    seen.add(kind);
    const two = [light(getComputedStyle(e).color), light(behind(e))].sort((a, b) => b - a);
    const ratio = (two[0] + 0.05) / (two[1] + 0.05);
    expect(ratio >= 4.5, `${kind} has a contrast of ${ratio.toFixed(2)}`);
  }
}

function drawingsCheck() {
  expect(document.querySelectorAll("#memory rect.buffer").length === data.memory.buffers.length,
    "buffers are missing");
  const peak = sum(data.memory.buffers.filter(b => b.from <= data.memory.peak &&
    data.memory.peak <= b.to), b => b.bytes);
  expect(peak === data.memory.live[data.memory.peak], "the peak is another");
  const live = data.memory.buffers.filter(b => b.from <= data.memory.peak &&
    data.memory.peak <= b.to && b.call_file);
  expect(document.querySelectorAll("#peak tr").length >= new Set(live.map(b =>
    `${b.call_file}:${b.call_line}`)).size, "lines of the peak are missing");
  const moving = data.recipe.rows.filter(r => r.values.some(v => v !== r.values[0]));
  expect(document.querySelectorAll("#recipe .line").length === moving.length,
    "schedules are missing");
  expect(document.querySelectorAll("#parameters tbody tr").length === data.parameters.length,
    "parameters are missing");
  for (const shape of document.querySelectorAll("svg *"))
    for (const a of shape.attributes)
      expect(!a.value.includes("NaN"), `${shape.tagName} has ${a.name} ${a.value}`);
}

// Every launch of the step has a dot within the drawing, which links to it; its
// place is on or below every roof.
function rooflineCheck() {
  const mine = launches.filter(l => l.step === step);
  const dots = [...document.querySelectorAll("#roofline a")];
  expect(same(dots.map(a => a.getAttribute("href").slice(1)).sort(), mine.map(idOf).sort()),
    "the roofline has other launches");
  const box = byId("roofline").viewBox.baseVal;
  for (const a of dots) {
    const l = launchAt.get(a.getAttribute("href").slice(1)), dot = a.querySelector("circle");
    const x = Number(dot.getAttribute("cx")), y = Number(dot.getAttribute("cy"));
    expect(x > 0 && x < box.width && y > 0 && y < box.height, `${l.name} is outside the roofline`);
    expect(dot.textContent.startsWith(`${l.name}\n`), `${l.name} has another name`);
    expect(rateOf(l) <= intensityOf(l) * device.bytes_per_second * (1 + 1e-6) &&
      rateOf(l) <= device.f16_flops * (1 + 1e-6), `${l.name} is above its roof`);
  }
  expect(document.querySelectorAll("#roofline .roof").length === 3, "roofs are missing");
}

// Costs are charged once: to lines of the body, or to layers, they add up to
// those of the step.
function chargesCheck() {
  const mine = launches.filter(l => l.step === step), bytes = sum(mine, l => l.bytes);
  for (const l of mine)
    expect(sum(l.charges, c => c.bytes) === l.bytes && sum(l.charges, c => c.flops) === l.flops,
      `the charges of ${l.name} do not add up`);
  expect(sum(layersOf(mine), x => x.bytes) === bytes, "layers have other bytes");
  const shown = sum(mine, l => sum(l.charges.filter(isShown), c => c.bytes));
  expect(sum([...lineBytes().values()], of => of.charged) === shown, "lines have other bytes");
  const inside = sum(mine, l => sum(l.charges.filter(c => isCall(c) && isShown(ownPlace(c))),
    c => c.bytes));
  expect(sum([...lineBytes().values()], of => of.called) === inside, "functions have other bytes");
  expect(document.querySelectorAll("#layers tbody tr").length === layersOf(mine).length,
    "layers are missing");
}

// Each name of a launch is there to its last letter, and each colour has a key.
function wholeCheck() {
  for (const row of document.querySelectorAll("#launches .row")) {
    const name = row.querySelector(".name"), l = launchAt.get(row.id.slice(3));
    expect(name.textContent === l.name && name.scrollWidth <= name.clientWidth + 1,
      `${l.name} is cut off`);
  }
  const keys = kind => [...document.querySelectorAll(`.legend .key.${kind}`)];
  for (const kind of ["charged", "called"])
    expect(keys(kind).length === 1 && (!document.querySelector(`.heat .${kind}`) ||
      getComputedStyle(keys(kind)[0]).backgroundColor ===
      getComputedStyle(document.querySelector(`.heat .${kind}`)).backgroundColor),
    `bars of bytes ${kind} have no key`);
  for (const dot of document.querySelectorAll("#launches circle"))
    expect(keys(dot.getAttribute("class")).some(e =>
      getComputedStyle(e).backgroundColor === getComputedStyle(dot).fill), "a dot has no key");
}

function costsCheck() {
  [...document.querySelectorAll("#launch-costs th button")][1].click();
  const rows = [...document.querySelectorAll("#launch-costs tbody a")].map(a => a.hash.slice(1));
  const bytes = rows.map(id => launchAt.get(id).bytes);
  expect(bytes.length > 0 && bytes.every((b, i) => i === 0 || b <= bytes[i - 1]),
    "the table is not in order of bytes");
}

// A link far below brings what it shows into view.
async function viewCheck() {
  const link = document.querySelector("#costs tbody a");
  link.scrollIntoView();
  await follow(link);
  expect(byId("launches").getBoundingClientRect().bottom > 0, "panes are out of view");
}

// An address that nobody wrote chooses nothing.
function addressCheck() {
  const before = byId("detail").textContent;
  for (const address of ["#%", "#line-0", "#none", ""]) {
    location.hash = address;
    addressFollow();
  }
  expect(byId("detail").textContent === before, "a wrong address chooses something");
}

// What a name in the text is linked to is an operation or a tensor of the kernel;
// what stands for an element of a row with a margin is linked, too.
function namesCheck() {
  const margin = /^ *const float (x(\d+)) = /m;
  const texts = launches.filter(l => l.text);
  const each = Math.ceil(texts.length / 25);
  for (const l of texts.filter((x, i) => i % each === 0 || margin.test(x.text))) {
    const linked = [...textDraw(l.text, l).querySelectorAll("b")];
    const nodes = new Set([...l.operations, ...l.reads, ...l.writes].map(x => String(x.node)));
    expect(linked.every(e => nodes.has(e.dataset.node)), `${l.name} links what is no node`);
    const name = margin.exec(l.text)?.[1];
    expect(!name || linked.some(e => e.textContent === name), `${l.name} does not link ${name}`);
  }
}

async function pageCheck() {
  while (waiting.size)
    await new Promise(done => setTimeout(done, 5));
  expect(document.querySelectorAll("a").length > 20, "a page with few links");
  linksCheck(document);
  contrastCheck();
  drawingsCheck();
  costsCheck();
  rooflineCheck();
  chargesCheck();
  wholeCheck();
  expect(document.documentElement.scrollWidth <= window.innerWidth, "the page is too wide");
  const lines = data.sources.map(s => s.text.replace(/\n$/, "").split("\n").length);
  expect(document.querySelectorAll("#source a").length === sum(lines, n => n),
    "lines are missing");
  for (let file = 0; file < lines.length; file++)
    for (let line = 1; line <= Math.min(lines[file], 60); line++)
      await lineCheck(line, file);
  const mine = launches.filter(l => l.step === step);
  for (const l of mine.filter((x, i) => i % Math.ceil(mine.length / 25) === 0))
    await launchCheck(l);
  await follow(placeOf(idOf(mine.find(l => l.text && l.text_of === l.name))));
  operationCheck();
  await sharedCheck();
  for (const j of merges.slice(0, 5))
    await launchCheck(launchAt.get(`${j.step}-${j.index}`));
  stepChoose(mine[0].step);
  addressCheck();
  namesCheck();
  contrastCheck();
  await keysCheck();
  await rowsCheck();
  await viewCheck();
  for (const name of steps) {
    const choice = document.querySelector("#launches select");
    choice.value = name;
    choice.dispatchEvent(new Event("change"));
    expect(document.querySelectorAll("#launches .row").length ===
      launches.filter(l => l.step === name).length, `launches of ${name} are missing`);
  }
}

window.addEventListener("error", e => faults.push(e.message));
const loaded = performance.now();
pageCheck().catch(e => faults.push(String(e))).then(() => {
  const result = document.createElement("pre");
  result.id = "result";
  result.textContent = `paper ${getComputedStyle(document.body).backgroundColor}\n` +
    `loaded ${loaded.toFixed(0)}\n` + (faults.length ? faults.join("\n") : "as it should be");
  document.body.append(result);
});
