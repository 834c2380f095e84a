'use strict';
// The page of `kilter report --html` and `kilter top --serve`. The data is described at KL_PAGE_COLUMNS in src/report/report.h.
(() => {
const $ = id => document.getElementById(id), root = document.documentElement;
const colour = name => getComputedStyle(root).getPropertyValue('--' + name).trim();
const clamp = (x, low, high) => Math.max(low, Math.min(high, x));
const known = x => x !== null && x !== undefined && Number.isFinite(x);
const COLUMNS = ['gap', 'length', 'idle', 'tasks', 'rank', 'skip', 'run', 'state', 'units'], SIGNED = new Set(['gap', 'skip', 'run']);

/* ---- words ---- */

function digits(x) {
  if (!known(x)) return '–';
  const size = Math.abs(x);
  return size !== 0 && (size < 0.001 || size >= 1e9) ? x.toExponential(2) : String(+x.toPrecision(4));
}
function time(s) {
  if (!known(s)) return '–';
  const size = Math.abs(s);
  return size >= 7200 ? `${Math.trunc(s / 3600)} h ${Math.trunc(size % 3600 / 60)} min` : size >= 120 ? `${Math.trunc(s / 60)} min ${Math.trunc(size % 60)} s`
    : size >= 1 || size === 0 ? `${s.toFixed(2)} s` : size >= 1e-3 ? `${digits(s * 1e3)} ms` : `${digits(s * 1e6)} µs`;
}
const percent = x => known(x) ? `${(100 * x).toFixed(1)} %` : '–';

/* ---- data ---- */

async function inflate(bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'))).arrayBuffer());
}
function fromBase64(text) {
  const binary = atob(text), bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
function sections(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), found = [];
  for (let at = 0; at + 4 <= bytes.length;) {
    const size = view.getUint32(at, true);
    found.push(bytes.subarray(at + 4, at + 4 + size));
    at += 4 + size;
  }
  return found;
}
function numbers(bytes, count, signed) {
  const out = new Float64Array(count);
  for (let i = 0, at = 0; i < count && at < bytes.length; i++) {
    let value = 0, scale = 1, byte;
    do { byte = bytes[at++]; value += (byte & 127) * scale; scale *= 128; } while (byte & 128);
    out[i] = !signed ? value : value % 2 ? -(value + 1) / 2 : value / 2;
  }
  return out;
}
// Decode the sections into one object: the report's tables and the columns of all chunks, in seconds.
function decode(bytes) {
  const parts = sections(bytes), text = part => new TextDecoder().decode(part);
  const d = JSON.parse(text(parts[0])), count = d.lanes.reduce((sum, lane) => sum + lane[1], 0), raw = {};
  COLUMNS.forEach((name, i) => { raw[name] = numbers(parts[1 + i], count, SIGNED.has(name)); });
  const prediction = parts[1 + COLUMNS.length];
  d.predicted = prediction?.length ? JSON.parse(text(prediction)) : null;
  d.weighted = parts[COLUMNS.length].length > 0;
  const c = d.chunks = { count, began: new Float64Array(count), ended: new Float64Array(count), busy: new Float64Array(count), reach: new Float64Array(count),
    run: new Float64Array(count), tasks: raw.tasks, state: raw.state, units: new Float64Array(count) };
  const names = new Map(d.report.workers.map(w => [w.worker, w])), known_ = new Set(d.lanes.map(l => l[0]));
  const all = d.lanes.concat(d.report.workers.filter(w => !known_.has(w.worker)).map(w => [w.worker, 0])).sort((a, b) => a[0] - b[0]);
  let from = 0;
  const starts = new Map(d.lanes.map(([worker, n]) => { const at = from; from += n; return [worker, at]; }));
  d.lanes = all.map(([worker, n]) => ({ worker, from: starts.get(worker) ?? 0, to: (starts.get(worker) ?? 0) + n, of: names.get(worker) || { host: '', joined_s: 0, left_s: null } }));
  for (const lane of d.lanes) {
    let tick = 0, run = 0, reach = 0;
    for (let i = lane.from; i < lane.to; i++) {
      const began = tick + raw.gap[i];
      tick = began + raw.length[i];
      c.began[i] = began * d.tick_s;
      c.ended[i] = tick * d.tick_s;
      c.busy[i] = (raw.length[i] - raw.idle[i]) * d.tick_s;
      c.reach[i] = reach = Math.max(reach, c.ended[i]);
      c.run[i] = run += raw.run[i];
      c.units[i] = d.weighted ? raw.units[i] * d.unit : raw.tasks[i];
    }
  }
  d.firstOf = firsts(c, raw.rank, raw.skip);
  d.marks = marksOf(d);
  return d;
}
// Return a function that gives the first task of a chunk. The first call of this function sorts the chunks.
function firsts(c, ranks, skips) {
  let made = null;
  return i => made ? made[i] : (made = firstTasks(c, ranks, skips))[i];
}
// Find the first task of each chunk. Put the chunks of each run into the order of their tasks, with one place for each chunk. The chunks take their places in the order in which they began. A chunk's rank in the data is the number of places before its own that are then still free.
function firstTasks(c, ranks, skips) {
  const first = new Float64Array(c.count), left = new Map(), runs = new Map(), order = Array.from(first.keys());
  for (const i of order) { if (!runs.has(c.run[i])) runs.set(c.run[i], []); runs.get(c.run[i]).push(-1); }
  for (const [run, chunks] of runs) left.set(run, Array.from(chunks.keys()).reverse()); // places are taken from the end, which is fast
  order.sort((a, b) => c.began[a] - c.began[b] || a - b).forEach((i, k) => {
    const places = left.get(c.run[i]);
    runs.get(c.run[i])[places.splice(places.length - 1 - ranks[k], 1)[0]] = i;
  });
  let k = 0;
  for (const run of [...runs.keys()].sort((a, b) => a - b)) {
    let end = 0;
    for (const i of runs.get(run)) { first[i] = end + skips[k++]; end = first[i] + c.tasks[i]; }
  }
  return first;
}
// Decisions and failures, in order of time.
function marksOf(d) {
  const marks = d.report.decided.map(x => ({ ...x, lane: -1 }));
  const laneOf = worker => d.lanes.findIndex(l => l.worker === worker);
  for (const [kind, at_s, run, subject, count, forecast_s, ended_s, reason] of d.about)
    if (kind !== 'deal') marks.push({ kind, at_s, run, subject, count, forecast_s, ended_s, reason, lane: laneOf(subject) });
  for (const [at_s, run, task, attempt, worker, lost, reason] of d.failures || [])
    marks.push({ kind: 'failure', failure: true, at_s, run, subject: worker, task, attempt, reason: reason || (lost ? 'its worker was lost' : ''), lane: laneOf(worker) });
  return marks.filter(m => known(m.at_s)).sort((a, b) => a.at_s - b.at_s);
}

/* ---- timeline ---- */

const GUTTER = 118, TOP = 44, canvas = $('timeline');
let data = null, view = { from: 0, to: 1 }, chosen = -1, drawn = null;

// For each pixel column p, add up which part of the column the chunks of a lane (a worker's row) cover. Lost chunks count in lost[p]. The work of other chunks counts in full[p], and a chunk's idle time is spread evenly over the chunk.
function cover(lane, width, full, lost, edge) {
  const c = data.chunks, k = width / (view.to - view.from);
  let low = lane.from, high = lane.to;
  while (low < high) { const middle = low + high >> 1; if (c.reach[middle] < view.from) low = middle + 1; else high = middle; }
  for (let i = low; i < lane.to && c.began[i] < view.to; i++) {
    const x = Math.max(0, (c.began[i] - view.from) * k), end = Math.min(width, (c.ended[i] - view.from) * k);
    if (end <= x) continue;
    const is_lost = c.state[i] % 2 === 1, density = is_lost ? 1 : c.busy[i] / (c.ended[i] - c.began[i]), to = is_lost ? lost : full;
    let p = Math.floor(x);
    if (end <= p + 1) { to[p] += density * (end - x); continue; }
    to[p] += density * (p + 1 - x);
    for (p++; p + 1 <= end; p++) to[p] += density;
    if (p < width) to[p] += density * (end - p);
    if (end - x >= 12) edge[Math.min(width - 1, Math.floor(end - 0.5))] = 1;
  }
}
function rgb(text) {
  const context = rgb.context ||= document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  context.fillStyle = text;
  context.fillRect(0, 0, 1, 1);
  return context.getImageData(0, 0, 1, 1).data;
}
function blend(a, b, part) {
  const mix = i => Math.round(a[i] + (b[i] - a[i]) * part);
  return (255 << 24 | mix(2) << 16 | mix(1) << 8 | mix(0)) >>> 0;
}
const shades = (from, to) => Uint32Array.from({ length: 256 }, (_, i) => blend(from, to, i / 255));
function palette() {
  const now = colour('bg');
  if (palette.of !== now) {
    const [bg, present, busy, lost] = ['bg', 'present', 'busy', 'lost'].map(name => rgb(colour(name)));
    palette.made = { away: blend(bg, bg, 0), busy: shades(present, busy), lost: shades(present, lost), gone: shades(bg, busy), bg };
    palette.of = now;
  }
  return palette.made;
}
// If there are very many workers, several of them share a row, which shows their mean.
function layout() {
  const scale = window.devicePixelRatio || 1, width = Math.max(50, canvas.clientWidth - GUTTER), most = 560;
  const rows = Math.min(data.lanes.length, Math.floor(most / 2)) || 1, group = Math.ceil(data.lanes.length / rows) || 1;
  const count = Math.ceil(data.lanes.length / group) || 1, height = clamp(Math.floor(most / count), 2, 26);
  return { scale, width, group, rows: count, height, pixels: Math.round(width * scale) };
}
// The browser compiles this function after a few rows; as a loop inside paintRows() it would run uncompiled for most of a picture.
function shade(out, line, lanes, edges, p) {
  const { full, lost, edge, there } = line, scale = 255 / lanes;
  for (let x = 0; x < out.length; x++) {
    const part = Math.min(255, full[x] * scale + 0.5 | 0), gone = Math.min(255, lost[x] * scale + 0.5 | 0);
    out[x] = gone > part ? p.lost[gone] : !there[x] && part === 0 ? p.away : p.busy[edges && edge[x] ? part - (part >> 2) : part];
  }
}
function paintRows(l) {
  const image = new ImageData(l.pixels, l.rows), out = new Uint32Array(image.data.buffer), p = palette(), k = l.pixels / (view.to - view.from);
  const line = { full: new Float32Array(l.pixels), lost: new Float32Array(l.pixels), edge: new Uint8Array(l.pixels), there: new Uint8Array(l.pixels) };
  for (let row = 0; row < l.rows; row++) {
    const lanes = data.lanes.slice(row * l.group, (row + 1) * l.group);
    for (const values of Object.values(line)) values.fill(0);
    for (const lane of lanes) {
      cover(lane, l.pixels, line.full, line.lost, line.edge);
      const seen = data.report.loop && lane.to > lane.from ? data.chunks.reach[lane.to - 1] : data.end_s; // a loop's record does not tell what came after its last round
      const x = Math.round(clamp(((lane.of.joined_s || 0) - view.from) * k, 0, l.pixels)), end = Math.min(seen, lane.of.left_s ?? Infinity);
      line.there.fill(1, x, Math.round(clamp((end - view.from) * k, x, l.pixels)));
    }
    shade(out.subarray(row * l.pixels, (row + 1) * l.pixels), line, lanes.length, l.group === 1, p);
  }
  return image;
}
function ticks(from, to, wanted) {
  const raw = (to - from) / wanted, power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].find(m => m * power >= raw) * power, out = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) out.push(t);
  return { out, decimals: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}
function drawAxis(g, l, height) {
  const { out, decimals } = ticks(view.from, view.to, l.width / 90), k = l.width / (view.to - view.from);
  g.strokeStyle = colour('line');
  g.fillStyle = colour('soft');
  g.textAlign = 'center';
  for (const t of out) {
    const x = GUTTER + (t - view.from) * k;
    g.fillText(`${t.toFixed(decimals)} s`, clamp(x, GUTTER + 12, GUTTER + l.width - 20), 14);
    g.beginPath();
    g.moveTo(x, 20);
    g.lineTo(x, height);
    g.globalAlpha = 0.6;
    g.stroke();
    g.globalAlpha = 1;
  }
}
function nameOf(lane) {
  return `${data.report.loop ? 'rank' : 'worker'} ${lane.worker}${lane.of.host ? ' ' + lane.of.host : ''}`;
}
function drawNames(g, l) {
  g.textAlign = 'left';
  g.fillStyle = colour('fg');
  const every = Math.max(1, Math.ceil(14 / l.height));
  for (let row = 0; row < l.rows; row += every) {
    const last = Math.min(data.lanes.length, (row + 1) * l.group) - 1, lane = data.lanes[row * l.group];
    if (lane) g.fillText(l.group > 1 ? `${lane.worker} – ${data.lanes[last].worker}` : nameOf(lane).slice(0, 18), 4, TOP + row * l.height + Math.min(l.height, 14) / 2 + 4);
  }
}
// Draw one mark in place of marks that would overlap. This mark shows how many they are.
function drawMarks(g, l) {
  const k = l.width / (view.to - view.from), last = new Map();
  drawn.marks = [];
  data.marks.forEach((m, index) => {
    const x = GUTTER + (m.at_s - view.from) * k, row = m.lane < 0 ? -1 : Math.floor(m.lane / l.group);
    if (x < GUTTER - 4 || x > GUTTER + l.width + 4) return;
    const before = last.get(row);
    if (before && x - before.x < 14 && index !== chosen && before.failure === !!m.failure) { before.count++; before.ids.push(index); return; }
    const mark = { x, y: row < 0 ? 32 : TOP + (row + 0.5) * l.height, index, ids: [index], count: 1, failure: !!m.failure };
    last.set(row, mark);
    drawn.marks.push(mark);
  });
  for (const m of drawn.marks) {
    g.fillStyle = colour(m.failure ? 'lost' : 'mark');
    g.strokeStyle = colour(m.ids.includes(chosen) ? 'fg' : 'bg');
    g.lineWidth = m.ids.includes(chosen) ? 2.5 : 1;
    g.beginPath();
    g.arc(m.x, m.y, m.y > TOP && !m.ids.includes(chosen) ? 3.5 : m.count > 1 ? 6 : 4.5, 0, 7);
    g.fill();
    g.stroke();
    if (m.count > 1 && m.y < TOP) { g.fillStyle = colour('bg'); g.textAlign = 'center'; g.fillText(m.count > 9 ? '+' : m.count, m.x, m.y + 4); }
  }
  g.lineWidth = 1;
}
function draw() {
  if (!data) return;
  const began = performance.now(), l = layout(), height = TOP + l.rows * l.height + 6;
  canvas.style.height = `${height}px`;
  if (canvas.width !== Math.round((l.width + GUTTER) * l.scale) || canvas.height !== Math.round(height * l.scale)) {
    canvas.width = Math.round((l.width + GUTTER) * l.scale);
    canvas.height = Math.round(height * l.scale);
  }
  drawn = { l, marks: [], ms: 0 };
  const g = canvas.getContext('2d'), off = draw.off ||= document.createElement('canvas');
  off.width = l.pixels;
  off.height = l.rows;
  off.getContext('2d').putImageData(paintRows(l), 0, 0);
  g.setTransform(l.scale, 0, 0, l.scale, 0, 0);
  g.font = '12px system-ui, sans-serif';
  g.fillStyle = colour('bg');
  g.fillRect(0, 0, l.width + GUTTER, height);
  drawAxis(g, l, height);
  g.imageSmoothingEnabled = false;
  g.drawImage(off, GUTTER, TOP, l.width, l.rows * l.height);
  g.fillStyle = colour('bg');
  for (let row = 0; row < l.rows && l.height >= 6; row++) g.fillRect(GUTTER, TOP + (row + 1) * l.height - 2, l.width, 2);
  drawNames(g, l);
  drawMarks(g, l);
  $('range').textContent = `${digits(view.from)} s to ${digits(view.to)} s`;
  drawn.ms = performance.now() - began;
}
let waiting = false;
function soon() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}
function show(from, to) {
  const span = clamp(to - from, data.tick_s * 20, data.end_s), at = clamp(from, 0, data.end_s - span);
  view = { from: at, to: at + span };
  soon();
}
function zoom(by, at = (view.from + view.to) / 2) { show(at - (at - view.from) * by, at + (view.to - at) * by); }
const move = by => show(view.from + by * (view.to - view.from), view.to + by * (view.to - view.from));
const actions = { in: () => zoom(0.5), out: () => zoom(2), left: () => move(-0.25), right: () => move(0.25), all: () => show(0, data.end_s) };

/* ---- details ---- */

function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (key in e && key !== 'role') e[key] = value; else e.setAttribute(key, value);
  e.append(...children);
  return e;
}
function tell(title, pairs) {
  const list = element('dl');
  for (const [name, value] of pairs) if (value !== null && value !== undefined && value !== '') list.append(element('dt', {}, name), element('dd', {}, String(value)));
  $('detail').replaceChildren(element('strong', {}, title), list);
}
const runOf = run => data.report.iterations.find(it => it.run === run);
const outcomes = new Set(['workers', 'assign', 'grain', 'organise']); // kinds of decisions that forecast when the run ends
function outcomeOf(m) {
  if (m.refused) return 'refused: a rank had no memory';
  if (known(m.came_s)) return `${m.came_s < 0 ? 'lost' : 'saved'} ${time(Math.abs(m.came_s))}${known(m.spent_s) ? `; moving took ${time(m.spent_s)}` : ''}`;
  const it = outcomes.has(m.kind) ? runOf(m.run) : null, ended = it ? (it.ended ? it.began_s + it.elapsed_s : null) : m.ended_s;
  return known(ended) && known(m.forecast_s) ? `ended at ${time(ended)}, ${time(Math.abs(ended - m.forecast_s))} ${ended > m.forecast_s ? 'later' : 'earlier'} than forecast` : null;
}
function openMark(index) {
  const m = data.marks[index];
  chosen = index;
  if (m.at_s < view.from || m.at_s > view.to) show(m.at_s - (view.to - view.from) / 2, m.at_s + (view.to - view.from) / 2);
  if (m.failure)
    tell(`Failure of task ${m.task}, attempt ${m.attempt}`, [['at', time(m.at_s)], ['worker', m.subject], ['reason', m.reason]]);
  else
    tell(`Decision: ${m.kind}`, [['at', time(m.at_s)], ['about', known(m.subject) ? `worker ${m.subject}` : 'all workers'], ['number', m.count || null], ['reason', m.reason],
      ['forecast', known(m.forecast_s) ? `ends at ${time(m.forecast_s)}` : m.gain_s ? `saves ${time(m.gain_s)}${m.cost_s ? `, costs ${time(m.cost_s)}` : ''}` : null], ['outcome', outcomeOf(m)]]);
  soon();
}
function openChunk(lane, i) {
  const c = data.chunks, deal = data.about.find(a => a[0] === 'deal' && a[3] === lane.worker && known(a[6]) && Math.abs(a[6] - c.ended[i]) <= data.tick_s * 1.5);
  if (data.report.loop)
    tell(nameOf(lane), [['from', time(c.began[i])], ['to', time(c.ended[i])], ['iterations of the rank', data.firstOf(i)], ['iterations done', c.tasks[i]], ['computing', percent(c.busy[i] / (c.ended[i] - c.began[i]))]]);
  else
    tell(c.tasks[i] === 1 ? `Task ${data.firstOf(i)}` : `Tasks ${data.firstOf(i)} to ${data.firstOf(i) + c.tasks[i] - 1}`, [['worker', `${lane.worker} ${lane.of.host || ''}`], ['run', c.run[i]], ['began', time(c.began[i])], ['took', time(c.ended[i] - c.began[i])],
      ['tasks ran', percent(c.busy[i] / (c.ended[i] - c.began[i]))], ['failed tasks', Math.floor(c.state[i] / 2) || null], ['state', c.state[i] % 2 ? 'lost with its worker' : null],
      ['reason for its size', deal && deal[7]], ['forecast', deal && known(deal[5]) ? `${time(Math.abs(deal[6] - deal[5]))} ${deal[6] > deal[5] ? 'later' : 'earlier'} than forecast` : null]]);
}
function openAt(x, y) {
  const { l, marks } = drawn, mark = marks.filter(m => Math.hypot(m.x - x, m.y - y) < 9).pop();
  if (mark) return openMark(mark.ids[(mark.ids.indexOf(chosen) + 1) % mark.ids.length]);
  const row = Math.floor((y - TOP) / l.height), at = view.from + (x - GUTTER) / l.width * (view.to - view.from), c = data.chunks;
  if (row < 0 || x < GUTTER) return;
  for (const lane of data.lanes.slice(row * l.group, (row + 1) * l.group))
    for (let i = lane.from; i < lane.to && c.began[i] <= at; i++)
      if (c.ended[i] >= at) return openChunk(lane, i);
  $('detail').replaceChildren();
}
function step(by) {
  if (data.marks.length === 0) return;
  const next = chosen >= 0 ? chosen + by : by > 0 ? data.marks.findIndex(m => m.at_s >= view.from) : data.marks.findLastIndex(m => m.at_s <= view.to);
  openMark(clamp(next < 0 ? 0 : next, 0, data.marks.length - 1));
}
const keys = { '+': actions.in, '=': actions.in, '-': actions.out, ArrowLeft: actions.left, ArrowRight: actions.right, '0': actions.all, Home: actions.all, n: () => step(1), p: () => step(-1), Enter: () => chosen >= 0 ? openMark(chosen) : step(1) };
function listen() {
  canvas.addEventListener('keydown', e => { const act = keys[e.key] || keys[e.key.toLowerCase()]; if (act && data && !e.ctrlKey && !e.metaKey && !e.altKey) { e.preventDefault(); act(); } });
  canvas.addEventListener('wheel', e => { e.preventDefault(); if (data) zoom(e.deltaY > 0 ? 1.25 : 0.8, view.from + clamp((e.offsetX - GUTTER) / drawn.l.width, 0, 1) * (view.to - view.from)); }, { passive: false });
  let drag = null;
  canvas.addEventListener('pointerdown', e => { drag = { x: e.offsetX, view, moved: false }; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener('pointermove', e => {
    if (!drag) return;
    const by = (drag.x - e.offsetX) / drawn.l.width * (drag.view.to - drag.view.from);
    drag.moved ||= Math.abs(drag.x - e.offsetX) > 3;
    if (drag.moved) show(drag.view.from + by, drag.view.to + by);
  });
  canvas.addEventListener('pointerup', e => { if (drag && !drag.moved && data) openAt(e.offsetX, e.offsetY); drag = null; });
  canvas.addEventListener('dblclick', e => data && zoom(0.5, view.from + clamp((e.offsetX - GUTTER) / drawn.l.width, 0, 1) * (view.to - view.from)));
  document.querySelectorAll('[data-do]').forEach(b => b.addEventListener('click', () => data && actions[b.dataset.do]()));
  const again = () => { draw(); plots.forEach(p => p.draw()); };
  new ResizeObserver(again).observe($('main'));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', again);
  addEventListener('beforeprint', again);
  addEventListener('afterprint', again);
}

/* ---- tables and plots ---- */

const ROWS_MOST = 500;
// A table is made when it is opened, so that a large record does not delay the page.
function table(summary, head, rows, open = false) {
  const box = element('details', { open }), fill = () => {
    if (box.querySelector('table')) return;
    const number = head.map((_, i) => rows.every(r => typeof r[i] !== 'string' || r[i] === '–' || /^-?[\d.]/.test(r[i])));
    const cells = (row, name) => row.map((x, i) => element(name, { className: number[i] ? 'n' : '', ...(name === 'th' ? { scope: 'col' } : {}) }, x instanceof Node ? x : typeof x === 'number' ? digits(x) : x ?? '–'));
    box.append(element('div', { className: 'scroll', tabIndex: 0, role: 'region', 'aria-label': summary }, element('table', {}, element('caption', {}, summary), element('thead', {}, element('tr', {}, ...cells(head, 'th'))),
      element('tbody', {}, ...rows.slice(0, ROWS_MOST).map(r => element('tr', {}, ...cells(r, 'td')))))));
    if (rows.length > ROWS_MOST) box.append(element('p', { className: 'more' }, `The first ${ROWS_MOST} of ${rows.length} rows; kilter report --csv writes all.`));
  };
  box.append(element('summary', {}, `${summary} (table, ${rows.length} row${rows.length === 1 ? '' : 's'})`));
  box.addEventListener('toggle', fill);
  if (open) fill();
  return box;
}
function section(id, title, hint) {
  const heading = element('h2', { id: `h-${id}` }, title), made = element('section', { id, 'aria-labelledby': `h-${id}` }, heading);
  if (hint) made.append(element('p', { className: 'hint' }, hint));
  $('main').append(made);
  return made;
}
const plots = [];
// series: {name, values, style: 'line' | 'dash' | 'dot' | 'step', colour}. Without uPlot, only the table is shown.
function plot(into, title, x, series, xName, yName) {
  const rows = Array.from(x, (at, i) => [at, ...series.map(s => s.values[i])]), has = typeof uPlot === 'function';
  const head = [xName, ...series.map(s => s.name)], listed = table(title, head, rows.filter(r => r.slice(1).some(known)), !has);
  into.append(...(has ? [element('div', { className: 'plot', role: 'img', 'aria-label': `${title}: ${series.map(s => s.name).join(', ')} over ${xName}. The table below has the numbers.` })] : []), listed);
  if (!has) return;
  const box = into.querySelector('.plot:last-of-type'), columns = [Float64Array.from(x), ...series.map(s => Array.from(s.values, v => known(v) ? v : null))];
  const wide = x[0] > 0 && x[x.length - 1] > 30 * x[0] && xName === 'workers'; // true: the axis of x is logarithmic
  let made = null;
  const make = () => {
    const axis = { stroke: colour('soft'), grid: { stroke: colour('line'), width: 1 }, ticks: { stroke: colour('line') } };
    made?.destroy();
    made = new uPlot({ width: Math.max(200, into.clientWidth), height: 230, scales: { x: { time: false, distr: wide ? 3 : 1 } }, legend: { live: true },
      axes: [{ ...axis, label: xName, labelSize: 18 }, { ...axis, label: yName, size: 70, labelSize: 18, values: (_, v) => v.map(digits) }],
      series: [{ label: xName, value: (_, v) => known(v) ? digits(v) : '–' }, ...series.map((s, i) => ({ label: s.name, stroke: colour(s.colour || `s${i % 8}`), width: s.style === 'dot' ? 0 : 1.75, dash: s.style === 'dash' ? [6, 4] : undefined, spanGaps: false, paths: s.style === 'step' ? uPlot.paths.stepped({ align: 1 }) : undefined,
        points: { show: s.style === 'dot', size: 8, fill: colour(s.colour || `s${i % 8}`) }, value: (_, v) => known(v) ? digits(v) : '–' }))] }, columns, box);
  };
  let width = -1, scheme = '';
  const entry = { draw: () => { if (into.clientWidth !== width || colour('bg') !== scheme) { width = into.clientWidth; scheme = colour('bg'); make(); } } };
  plots.push(entry);
  entry.draw();
}

/* ---- the page's sections ---- */

const SLICES = 160, LINES_MOST = 8;
// Mean speed of a lane in each slice of the time: units over seconds of work; null where it did not work.
function speedsOf(lane) {
  const c = data.chunks, slice = data.end_s / SLICES, units = new Float64Array(SLICES), busy = new Float64Array(SLICES);
  for (let i = lane.from; i < lane.to; i++) {
    const length = c.ended[i] - c.began[i];
    for (let s = Math.floor(c.began[i] / slice); s < SLICES && s * slice < c.ended[i]; s++) {
      const part = (Math.min(c.ended[i], (s + 1) * slice) - Math.max(c.began[i], s * slice)) / length;
      if (part > 0) { units[s] += c.units[i] * part; busy[s] += c.busy[i] * part; }
    }
  }
  return Array.from(units, (u, s) => busy[s] > 0 && u > 0 ? u / busy[s] : null);
}
function speeds() {
  const lanes = data.lanes.filter(l => l.to > l.from), x = Array.from({ length: SLICES }, (_, s) => (s + 0.5) * data.end_s / SLICES), unit = data.report.loop ? 'iterations' : data.weighted ? 'units' : 'tasks';
  if (lanes.length === 0) return;
  const all = lanes.map(speedsOf), into = section('speeds', 'Speeds', `${unit} that a worker does in a second of work, averaged over slices of ${time(data.end_s / SLICES)}.`);
  const rank = part => x.map((_, s) => { const v = all.map(a => a[s]).filter(known).sort((a, b) => a - b); return v.length ? v[Math.round(part * (v.length - 1))] : null; });
  const series = lanes.length <= LINES_MOST ? lanes.map((l, i) => ({ name: nameOf(l), values: all[i] })) : [{ name: 'fastest', values: rank(1) }, { name: 'median', values: rank(0.5) }, { name: 'slowest', values: rank(0) }];
  plot(into, 'Speeds over time', x, series, 'seconds', `${unit}/s`);
}
// For each moment in x, return when the run would end if it went on at its mean speed so far.
function atSpeedSoFar(it, x) {
  const c = data.chunks, running = new Float64Array(x.length), ended = new Float64Array(x.length + 1);
  for (let i = 0; i < c.count; i++) {
    if (c.run[i] !== it.run || c.state[i] % 2 === 1) continue;
    let low = 0, high = x.length;
    while (low < high) { const middle = low + high >> 1; if (x[middle] <= c.began[i]) low = middle + 1; else high = middle; }
    for (; low < x.length && x[low] < c.ended[i]; low++) running[low] += c.units[i] * (x[low] - c.began[i]) / (c.ended[i] - c.began[i]);
    ended[low] += c.units[i];
  }
  let done = 0;
  return x.map((t, k) => { done += ended[k]; const now = done + running[k]; return now > 0.01 * it.units ? it.began_s + (t - it.began_s) * it.units / now : null; });
}
function forecasts() {
  const its = data.report.iterations.filter(it => it.ended && it.elapsed_s > 0), last = its[its.length - 1];
  if (!last) return;
  const into = section('forecast', 'Forecast of the end against the real end', 'Dots are the forecasts that Kilter recorded. The line shows when the run would end at its mean speed so far.');
  const grid = Array.from({ length: 101 }, (_, i) => last.began_s + last.elapsed_s * i / 100), said = data.marks.filter(m => outcomes.has(m.kind) && m.run === last.run && known(m.forecast_s));
  const x = grid.concat(said.map(m => clamp(m.at_s, last.began_s, last.began_s + last.elapsed_s))).sort((a, b) => a - b);
  const at = new Map(said.map(m => [clamp(m.at_s, last.began_s, last.began_s + last.elapsed_s), m.forecast_s])), end = last.began_s + last.elapsed_s;
  plot(into, `Forecast end of run ${last.run}`, x, [{ name: 'real end', values: x.map(() => end), style: 'dash', colour: 's3' }, { name: 'at the speed so far', values: atSpeedSoFar(last, x), colour: 's0' },
    { name: 'forecast by Kilter', values: x.map(t => at.get(t) ?? null), style: 'dot', colour: 's1' }], 'seconds', 'end, s');
  if (its.length < 3) return;
  const first = new Map();
  for (const m of data.marks) if (outcomes.has(m.kind) && known(m.forecast_s) && !first.has(m.run)) first.set(m.run, m.forecast_s);
  plot(into, 'Forecast and real time of each run', its.map(it => it.run), [{ name: 'real time', values: its.map(it => it.elapsed_s), colour: 's3' },
    { name: 'forecast by Kilter', values: its.map(it => first.has(it.run) ? first.get(it.run) - it.began_s : null), style: 'dot', colour: 's1' }, { name: 'bound', values: its.map(it => it.bound_s), style: 'dash', colour: 's2' }], 'run', 'seconds');
}
function workers() {
  const p = data.predicted;
  if (!p) return;
  const rows = p.asynchronous.rows.filter(r => r.workers > 0), used = runOf(p.run)?.worker_count, into = section('workers', 'Time against the number of workers', `The model's forecast for run ${p.run}. It expects 90 % of such runs to end between the dashed lines.`);
  const x = [...new Set(rows.map(r => r.workers).concat(used || []))].sort((a, b) => a - b), by = new Map(rows.map(r => [r.workers, r])), of = name => x.map(n => by.get(n)?.[name]);
  const measured = new Map(p.measured.map(m => [m.workers, m.time_s])), rounds = rows.some(r => known(r.rounds_time_s));
  const series = [{ name: 'forecast', values: of(rounds ? 'rounds_time_s' : 'time_s'), colour: 's0' }, { name: 'low', values: of('low_s'), style: 'dash', colour: 's7' }, { name: 'high', values: of('high_s'), style: 'dash', colour: 's7' },
    { name: 'measured', values: x.map(n => measured.get(n)), style: 'dot', colour: 's1' }];
  if (used) series.push({ name: `used: ${used}`, values: x.map(n => n === used ? by.get(n)?.[rounds ? 'rounds_time_s' : 'time_s'] ?? measured.get(n) : null), style: 'dot', colour: 's3' });
  plot(into, 'Time against the number of workers', x, series, 'workers', 'seconds');
}
// Return for each worker how long it computed, communicated and waited, in the last run of a farm or in the whole loop.
function partsOf() {
  const loop = data.report.loop, c = data.chunks, it = data.report.iterations[data.report.iterations.length - 1];
  if (loop) return (loop.ranks || []).map((r, i) => ({ lane: data.lanes.find(l => l.worker === r.rank) || data.lanes[i], all: r.elapsed_s, useful: r.elapsed_s - r.waited_s - r.moving_s, talk: r.moving_s })).filter(p => p.lane && known(p.all));
  if (!it || !known(it.elapsed_s)) return [];
  return data.lanes.map(lane => {
    const from = Math.max(it.began_s, lane.of.joined_s || 0), to = Math.min(it.began_s + it.elapsed_s, lane.of.left_s ?? Infinity), p = { lane, all: to - from, useful: 0, talk: 0 };
    for (let i = lane.from; i < lane.to; i++) if (c.run[i] === it.run) { p.useful += c.busy[i]; p.talk += c.ended[i] - c.began[i] - c.busy[i]; }
    return p;
  }).filter(p => p.all > 0);
}
function shares() {
  const parts = partsOf(), loop = data.report.loop, talk = loop ? 'moving rows' : 'between tasks of a chunk';
  if (parts.length === 0) return;
  const into = section('shares', 'What the time was spent on', loop ? 'The time of each rank.' : 'The time of each worker in the last run. Between the tasks of a chunk, a worker handles messages and results.');
  const row = p => {
    const useful = clamp(p.useful / p.all, 0, 1), talked = clamp(p.talk / p.all, 0, 1 - useful), bar = element('div', { className: 'bar', 'aria-hidden': 'true' });
    for (const [name, part] of [['useful', useful], ['talk', talked]]) { const span = element('span', { className: name }); span.style.width = `${100 * part}%`; bar.append(span); }
    return [nameOf(p.lane), percent(useful), percent(talked), percent(1 - useful - talked), bar];
  };
  into.append(table('Shares of the time', ['', 'useful', talk, 'waiting', ''], parts.map(row), true));
}
function loopPlots() {
  const loop = data.report.loop, rounds = loop?.rounds || [];
  if (rounds.length < 2) return;
  const x = rounds.map(r => r.at_s), into = section('rounds', 'Shares and the time of a sweep', 'Values at each round that is in the record.');
  plot(into, 'Forecast time of a sweep', x, [{ name: 'with the present shares', values: rounds.map(r => r.now_s) }, { name: 'with the shares considered', values: rounds.map(r => r.then_s), style: 'dash' }], 'seconds', 'seconds');
  if (loop.ranks.length <= LINES_MOST) plot(into, 'Iterations of each rank', x, loop.ranks.map((r, i) => ({ name: `rank ${r.rank}`, values: rounds.map(q => q.counts?.[i]), style: 'step' })), 'seconds', 'iterations');
}
function tables() {
  const r = data.report, open = i => { const b = element('button', {}, 'show'); b.addEventListener('click', () => { openMark(i); canvas.focus(); }); return b; };
  const decided = data.marks.map((m, i) => [m, i]).filter(([m]) => !m.failure), failed = data.marks.map((m, i) => [m, i]).filter(([m]) => m.failure);
  $('timeline-tables').replaceChildren();
  if (decided.length) $('timeline-tables').append(table('Decisions', ['at', 'kind', 'about', 'reason', 'outcome', ''], decided.map(([m, i]) => [time(m.at_s), m.kind, known(m.subject) ? `worker ${m.subject}` : 'all', m.reason, outcomeOf(m), open(i)])));
  if (failed.length) $('timeline-tables').append(table('Failures', ['at', 'task', 'attempt', 'worker', 'reason', ''], failed.map(([m, i]) => [time(m.at_s), m.task, m.attempt, m.subject, m.reason, open(i)])));
  $('timeline-tables').append(table(r.loop ? 'Ranks' : 'Workers', ['number', 'host', 'bound to', 'joined', 'left', 'why'], r.workers.map(w => [w.worker, w.host, w.binding, time(w.joined_s), time(w.left_s), w.why || ''])));
  if (r.iterations.length) $('timeline-tables').append(table('Runs', ['run', 'tasks', 'workers', 'chunks', 'failed', 'took', 'bound', 'efficiency', 'status', 'decision'],
    r.iterations.map(it => [it.run, it.tasks, it.worker_count, it.chunks, it.failed, time(it.elapsed_s), time(it.bound_s), percent(it.efficiency), it.ended ? it.status || '' : 'did not end', it.decision || ''])));
}
function about() {
  const r = data.report.run, when = new Date(1000 * r.began_unix_s);
  $('about').textContent = `${r.program}, process ${r.pid} on ${r.host}, Kilter ${r.version}; began ${Number.isNaN(+when) ? 'at an unknown time' : when.toLocaleString()}; ${r.ended ? `ended after ${time(r.ended_s)}` : 'had not ended when this was written'}. ${r.dropped_rows ? `${r.dropped_rows} rows are missing in the record.` : ''} ${data.tick_s > 2e-6 ? `Times of chunks are rounded to ${time(data.tick_s)}.` : ''}`;
}
function take(decoded) {
  const whole = !data || view.from === 0 && view.to >= data.end_s;
  data = decoded;
  if (whole) view = { from: 0, to: data.end_s };
  if (chosen >= data.marks.length) chosen = -1;
  draw();
}
function rest() {
  const opened = new Set([...document.querySelectorAll('details[open] > summary')].map(s => s.textContent.split(' (')[0]));
  plots.length = 0;
  document.querySelectorAll('main > section:not(:first-of-type)').forEach(s => s.remove());
  $('story').replaceChildren(...data.story.map(s => element('p', {}, s)));
  about();
  tables();
  shares();
  speeds();
  forecasts();
  loopPlots();
  workers();
  document.querySelectorAll('details > summary').forEach(s => { if (opened.has(s.textContent.split(' (')[0])) s.parentNode.open = true; });
}

/* ---- a run that goes on ---- */

function live() {
  let asked = false, again = false;
  const fetchData = async () => {
    if (asked) { again = true; return; }
    asked = true;
    try {
      const answer = await fetch('data');
      if (answer.ok) { take(decode(await inflate(await answer.arrayBuffer()))); rest(); }
    } catch { /* the next event tries again */ }
    asked = false;
    if (again) { again = false; fetchData(); }
  };
  const events = new EventSource('events');
  events.addEventListener('record', fetchData);
  events.addEventListener('state', e => { $('now').textContent = e.data; });
  events.addEventListener('end', e => { $('now').textContent = e.data; events.close(); fetchData(); });
  // The server ends each answer after some events, and the browser then asks again. So only a missing answer is an error.
  let heard = performance.now();
  for (const name of ['record', 'state']) events.addEventListener(name, () => { heard = performance.now(); });
  events.onerror = () => { if (performance.now() - heard > 5000) $('now').textContent = 'The connection to kilter top is lost; this is the last state.'; };
}

const page = window.kilterPage = { decode, inflate, fromBase64, get data() { return data; }, get view() { return view; }, get drawn() { return drawn; }, show, draw, zoom, step, times: {} };
page.ready = (async () => {
  listen();
  if (typeof DecompressionStream !== 'function') {
    $('now').textContent = 'This browser cannot unpack the data of this page, so the pictures and tables are missing. Open it in Chrome or Edge 103, Firefox 113, Safari 16.4, or a later version.';
    $('main').hidden = true;
    return;
  }
  if (root.dataset.live) { live(); return; }
  const began = performance.now(), decoded = decode(await inflate(fromBase64($('data').textContent)));
  page.times.decode = performance.now() - began;
  take(decoded);
  page.times.first = drawn.ms;
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  const then = performance.now();
  rest();
  page.times.rest = performance.now() - then;
  page.times.all = performance.now() - began;
})();
})();
