"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  let charts = JSON.parse(document.getElementById("charts").textContent);
  const drawn = new Map();      // element → {plot, tab}
  const hidden = new Set();     // runs that are not shown
  const css = name => getComputedStyle(root).getPropertyValue("--" + name).trim();
  const tiny = x => Math.abs(x) < 1e-4 || Math.abs(x) >= 1e6;
  const text = x => x == null || !isFinite(x) ? "–" : x === 0 ? "0" : tiny(x) ? x.toExponential(3)
    : String(+x.toPrecision(6));
  const powers = [..."⁰¹²³⁴⁵⁶⁷⁸⁹"];
  const power = e => "10" + (e < 0 ? "⁻" : "") + [...String(Math.abs(e))].map(d => powers[+d]).join("");
  const isPower = x => Math.abs(Math.log10(x) - Math.round(Math.log10(x))) < 1e-9;
  const tick = log => (u, ticks) => ticks.map(x => {
    if (x == null) return "";
    if (!log) return tiny(x) && x !== 0 ? x.toExponential(1).replace("-", "−") : String(+x.toPrecision(8)).replace("-", "−");
    const e = Math.log10(x);
    return !isPower(x) ? String(+x.toPrecision(2)) : e >= -2.1 && e <= 3.1 ? String(+x.toPrecision(1)) : power(Math.round(e));
  });

  const lastOf = column => { for (let k = column.length - 1; k >= 0; k--) if (column[k] != null) return k; return null; };

  // One table with all x of all series: the value, and its limits if there are any.
  function table(chart) {
    const tables = [];
    for (const s of chart.series) {
      const columns = [s.x, s.y];
      if (s.low) columns.push(s.low, s.high);
      tables.push(columns);
    }
    return uPlot.join(tables, tables.map(t => t.map(() => 2)));
  }

  // A curve of several runs is shown as long as one of them is.
  const isShown = runs => runs.length === 0 || runs.some(run => !hidden.has(run));

  function options(chart, width) {
    const ink = css("ink"), grid = css("grid"), faint = css("faint");
    const steps = uPlot.paths.stepped({ align: 1 });
    const series = [{ label: chart.x.label || "x", value: (u, x) => x == null ? text(u.data[0].at(-1)) : text(x) }], bands = [];
    for (const s of chart.series) {
      const colour = css("series-" + s.colour), at = series.length;
      const show = isShown(s.runs);
      // Without a pointer over the chart, the legend shows the last value.
      const value = (u, y, i, k) => {
        if (k == null) { k = lastOf(u.data[at]); y = k == null ? null : u.data[at][k]; }
        if (y == null) return "–";
        const limits = s.low ? ` (${text(u.data[at + 1][k])} … ${text(u.data[at + 2][k])})` : "";
        return text(y) + limits;
      };
      series.push({ label: s.name || chart.title, stroke: colour, width: 2, dash: s.dashed ? [6, 4] : undefined,
        show, spanGaps: true, value, paths: s.mark === "step" ? steps : undefined,
        points: { show: s.mark === "line" && !s.dashed && s.x.length < 40, size: 5, fill: colour }, runs: s.runs });
      if (s.low) {
        const limit = { label: "", class: "limit", stroke: colour, width: 0, show, spanGaps: true,
          points: { show: false }, runs: s.runs, paths: s.mark === "step" ? steps : undefined };
        series.push(limit, { ...limit });
        bands.push({ series: [at + 2, at + 1], fill: colour + "2e" });
      }
    }
    const axis = (side, a) => ({ label: a.label, labelSize: 20, labelFont: "12px system-ui", font: "12px system-ui", stroke: faint,
      grid: { stroke: grid, width: 1, filter: a.log ? decades : all }, ticks: { stroke: grid, width: 1, size: 5 },
      size: side ? 62 : 34, gap: 4, values: tick(a.log), filter: a.log ? decades : all });
    const scale = a => a.log ? { distr: 3, log: 10, range: logRange } : {};
    return { title: chart.title, width, height: Math.max(220, Math.min(380, Math.round(width * 0.46))), series, bands,
      scales: { x: { time: false, ...scale(chart.x) }, y: scale(chart.y) }, axes: [axis(0, chart.x), axis(1, chart.y)],
      cursor: { points: { size: (u, k) => u.series[k].class === "limit" ? 0 : 7 }, drag: { x: true, y: false } }, legend: { live: true }, padding: [8, 14, 0, 0] };
  }

  const all = (u, splits) => splits;
  // Powers of ten; if there are fewer than two of them, also 2 and 5 times a power.
  const isRound = x => [1, 2, 5].some(m => isPower(x / m));
  const decades = (u, splits) => {
    const keep = splits.filter(isPower).length < 2 ? isRound : isPower;
    return splits.map(x => keep(x) ? x : null);
  };

  function logRange(u, low, high) {
    if (low == null || !(low > 0)) return [1, 10];
    return low === high ? [low / 2, high * 2] : [low * 0.95, high * 1.05];
  }

  function draw(element, zoom) {
    const tabs = charts[element.dataset.chart];
    if (!tabs || tabs.some(t => t.still)) return;
    const old = drawn.get(element);
    const tab = old ? Math.min(old.tab, tabs.length - 1) : 0;
    if (old) old.plot.destroy();
    element.classList.add("interactive");
    const room = element.querySelector(".plot");
    const width = Math.max(240, element.clientWidth - 22);
    const plot = new uPlot(options(tabs[tab], width), table(tabs[tab]), room);
    if (zoom) plot.setScale("x", zoom);
    drawn.set(element, { plot, tab, width });
  }

  function drawAll() {
    for (const element of document.querySelectorAll(".chart")) draw(element, null);
  }

  document.addEventListener("click", event => {
    const tab = event.target.closest(".tabs button");
    if (tab) {
      const element = tab.closest(".chart"), all = [...tab.parentNode.children];
      all.forEach(b => b.setAttribute("aria-selected", b === tab));
      drawn.get(element).tab = all.indexOf(tab);
      draw(element, null);
    }
    const question = event.target.closest(".what");
    if (question) return explain(question);
    const head = event.target.closest(".sortable th[tabindex]");
    if (head) sort(head);
  });
  document.addEventListener("keydown", event => {
    if (event.key === "Enter" && event.target.matches(".sortable th[tabindex]")) sort(event.target);
  });
  document.addEventListener("change", event => {
    const run = event.target.dataset.run;
    if (run === undefined) return;
    event.target.checked ? hidden.delete(run) : hidden.add(run);
    for (const { plot } of drawn.values())
      plot.series.forEach((s, k) => { if (k > 0 && s.runs.includes(run)) plot.setSeries(k, { show: isShown(s.runs) }); });
  });

  // Puts the explanation of a term beside its question mark. Without this, it is in the corner.
  function explain(question) {
    const box = document.getElementById(question.getAttribute("popovertarget"));
    const at = question.getBoundingClientRect(), below = at.bottom + 6;
    const left = Math.min(at.left - 8, innerWidth - box.offsetWidth - 12);
    box.style.left = Math.max(12, left) + "px";
    box.style.top = (below + box.offsetHeight < innerHeight ? below : Math.max(6, at.top - box.offsetHeight - 6)) + "px";
  }

  function sort(head) {
    const column = [...head.parentNode.children].indexOf(head), body = head.closest("table").tBodies[0];
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const h of head.parentNode.children) if (h.hasAttribute("aria-sort")) h.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = row => { const c = row.cells[column]; return c.dataset.sort === undefined ? c.textContent : +c.dataset.sort; };
    const order = (a, b) => {
      const x = key(a), y = key(b);
      if (typeof x === "number" && typeof y === "number") return x - y;
      if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
      return x.localeCompare(y, undefined, { numeric: true });
    };
    const rows = [...body.rows].sort(order);
    (up ? rows : rows.reverse()).forEach(row => body.append(row));
  }

  let waiting;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      for (const [element, { width }] of drawn) if (Math.abs(element.clientWidth - 22 - width) > 2) draw(element, null);
    }, 120);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  drawAll();

  // While training runs: ask for updates, show them, keep zoom and choices.
  if (document.body.dataset.live) {
    let version = "", heard = new Date();
    const badge = document.getElementById("live"), [said, when] = badge.children;
    const clock = time => time.toLocaleTimeString();
    const poll = async () => {
      try {
        const answer = await fetch("state?since=" + version, { cache: "no-store" });
        heard = new Date();
        let done = false;
        if (answer.status === 200) {
          const state = await answer.json();
          version = state.version;
          charts = state.charts;
          update(state.main);
          said.textContent = state.text;
          done = state.done;
        }
        when.textContent = done ? "at " + clock(heard) + ". This page stays as it is." : "last heard at " + clock(heard);
        if (done) badge.classList.add("done");
        else setTimeout(poll, 1000);
      } catch {
        said.textContent = "no answer";
        when.textContent = "since " + clock(heard) + ": the training was stopped, or the connection was lost";
        badge.classList.add("done");
      }
    };
    setTimeout(poll, 500);
  }

  function update(html) {
    const zooms = new Map(), open = new Set();
    for (const [element, { plot, tab }] of drawn) {
      const { min, max } = plot.scales.x, x = plot.data[0], zoomed = min > x[0] || max < x[x.length - 1];
      zooms.set(element.dataset.chart, { tab, zoom: zoomed ? { min, max } : null });
      plot.destroy();
    }
    document.querySelectorAll("details[open]>summary").forEach(s => open.add(s.textContent));
    drawn.clear();
    const place = scrollY;
    document.querySelector("main").innerHTML = html;
    const link = section => Object.assign(document.createElement("a"), { href: "#" + section.id, textContent: section.dataset.title });
    document.querySelector("nav").replaceChildren(...[...document.querySelectorAll("section")].map(link));
    for (const summary of document.querySelectorAll("summary")) summary.parentNode.open = open.has(summary.textContent);
    for (const element of document.querySelectorAll(".chart")) {
      const kept = zooms.get(element.dataset.chart);
      draw(element, null);
      const now = drawn.get(element);
      if (!kept || !now) continue;
      if (kept.tab !== now.tab || kept.zoom) {
        now.tab = kept.tab;
        element.querySelectorAll(".tabs button").forEach((b, k) => b.setAttribute("aria-selected", k === kept.tab));
        draw(element, kept.zoom);
      }
    }
    scrollTo(0, place);
  }
  window.mclv = { drawn, get charts() { return charts; } };
})();
