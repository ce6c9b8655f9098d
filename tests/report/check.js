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

function linksCheck() {
  const links = [...document.querySelectorAll("a")];
  expect(links.length > 20, "a page with few links");
  for (const link of links) {
    const to = (link.getAttribute("href") || "").slice(1);
    expect(byId(to) || placeOf(to) || launchAt.has(to), `a link to nowhere: ${to}`);
  }
}

async function lineCheck(line) {
  await follow(placeOf(`line-${line}`));
  const wanted = launches.filter(l => l.step === step &&
    l.lines.some(p => p.line === line && p.file === data.kernels.file));
  expect(same(ids("#launches .marked"), wanted.map(idOf)), `line ${line} marks others`);
  expect(same(ids("#source .chosen"), [`line-${line}`]), `line ${line} is not chosen`);
}

async function launchCheck(l) {
  await follow(placeOf(idOf(l)));
  const lines = l.lines.filter(p => p.file === data.kernels.file);
  expect(same(ids("#source .marked"), lines.map(p => `line-${p.line}`)),
    `${l.name} marks other lines`);
  const detail = byId("detail").textContent;
  expect(detail.includes(l.name), `${l.name} is not shown`);
  const text = textAt.get(l.text_of);
  expect(!text || byId("detail").querySelector("pre").textContent.includes(text.text),
    `${l.name} has another text`);
  linksCheck();
}

// An operation that is chosen is marked where the text has it, and nothing else.
function operationCheck() {
  const rows = [...byId("detail").querySelectorAll("tr[data-node]")];
  const row = rows.find(r => byId("detail").querySelector(`b[data-node="${r.dataset.node}"]`));
  expect(row, "no operation is in the text");
  row.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  const marked = [...byId("detail").querySelectorAll(".marked")];
  expect(marked.length > 1 && marked.every(e => e.dataset.node === row.dataset.node),
    "an operation marks others");
}

function drawingsCheck() {
  expect(document.querySelectorAll("#memory rect.buffer").length === data.memory.buffers.length,
    "buffers are missing");
  const moving = data.recipe.rows.filter(r => r.values.some(v => v !== r.values[0]));
  expect(document.querySelectorAll("#recipe .line").length === moving.length,
    "schedules are missing");
  expect(document.querySelectorAll("#parameters tbody tr").length === data.parameters.length,
    "parameters are missing");
  for (const shape of document.querySelectorAll("svg *"))
    for (const a of shape.attributes)
      expect(!a.value.includes("NaN"), `${shape.tagName} has ${a.name} ${a.value}`);
}

function costsCheck() {
  [...document.querySelectorAll("#costs th button")][1].click();
  const rows = [...document.querySelectorAll("#costs tbody a")].map(a => a.hash.slice(1));
  const bytes = rows.map(id => launchAt.get(id).bytes);
  expect(bytes.length > 0 && bytes.every((b, i) => i === 0 || b <= bytes[i - 1]),
    "the table is not in order of bytes");
}

// Each tensor that was compared leads to the launch that leaves it, and to its
// line; losses and figures of both are there.
function comparisonCheck() {
  const c = data.comparison;
  expect(!!c === !!document.querySelector("#comparison"), "a comparison without one");
  if (!c)
    return;
  const rows = () => [...document.querySelectorAll("#compared tbody tr")];
  expect(rows().length === c.tensors.length, "compared tensors are missing");
  const first = rows()[0].querySelector(".verdict").textContent;
  expect((first === "wrong") === (c.wrong > 0), "what is wrong is not first");
  for (const row of rows()) {
    const link = row.querySelector("td:nth-child(2) a");
    const l = link && launchAt.get(link.hash.slice(1));
    expect(l && c.tensors.some(r => r.tensor === link.textContent && l.operations.some(o =>
      o.op === r.op && o.path === r.path && o.backward === r.backward)),
    `${row.textContent} has another launch`);
  }
  const line = c.tensors.filter(r => r.file === data.kernels.file).length;
  expect(line > 0 && document.querySelectorAll('#compared a[href^="#line-"]').length === line,
    "lines of compared tensors are missing");
  [...document.querySelectorAll("#compared th button")][4].click();
  const apart = rows().map(r => Number(r.children[4].textContent));
  expect(apart.every((v, i) => i === 0 || v <= apart[i - 1]), "not in order of differences");
  expect(document.querySelectorAll("#comparison .line").length === 2, "losses are missing");
  expect(document.querySelector(".sides table").textContent.includes(countsOf(c)),
    "figures of the comparison are missing");
}

const countsOf = c => `launches${countText(c.a.launches)}${countText(c.b.launches)}`;

// A link far below brings what it shows into view.
async function viewCheck() {
  const link = document.querySelector("#costs tbody a");
  link.scrollIntoView();
  await follow(link);
  expect(byId("launches").getBoundingClientRect().bottom > 0, "panes are out of view");
}

async function pageCheck() {
  linksCheck();
  drawingsCheck();
  costsCheck();
  comparisonCheck();
  expect(document.documentElement.scrollWidth <= window.innerWidth, "the page is too wide");
  const lines = document.querySelectorAll("#source a").length;
  expect(lines === data.source.replace(/\n$/, "").split("\n").length, "lines are missing");
  for (let line = 1; line <= Math.min(lines, 60); line++)
    await lineCheck(line);
  const mine = launches.filter(l => l.step === step);
  for (const l of mine.filter((x, i) => i % Math.ceil(mine.length / 25) === 0))
    await launchCheck(l);
  await follow(placeOf(idOf(mine.find(l => l.text && l.text_of === l.name))));
  operationCheck();
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
