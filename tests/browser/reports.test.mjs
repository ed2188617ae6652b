// What people see: pages made by the program, opened in headless Chromium.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const mclv = process.env.MCLV;
const folder = mkdtempSync(join(tmpdir(), "mclv-browser-"));
// For whoever wants to see what the tests see.
const pictures = process.env.MCLV_SCREENSHOTS;
const small = ["--n-hidden", "8", "--epochs", "12", "--eval-every", "1"];
let browser;

const run = (...args) => execFileSync(mclv, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });

before(async () => {
  run("train", "digits", ...small, "--gradient", "lvs", "--unfinished", "carry", "--output", "lvs");
  for (const seed of ["1", "2"]) run("train", "digits", ...small, "--gradient", "pcd", "--seed", seed, "--output", "pcd-" + seed);
  run("report", "lvs", "pcd-1", "pcd-2", "-o", "several.html");
  if (pictures) mkdirSync(pictures, { recursive: true });
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

// A page that may not complain, nor ask the network for anything.
async function open(name, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 900 }, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", message => { if (["error", "warning"].includes(message.type())) complaints.push(message.text()); });
  page.on("pageerror", error => complaints.push(String(error)));
  page.on("request", request => { if (!/^(file|data):/.test(request.url())) complaints.push("asks for " + request.url()); });
  await page.goto("file://" + join(folder, name));
  return { page, complaints, close: () => context.close() };
}

async function picture(page, name) {
  if (pictures) await page.screenshot({ path: join(pictures, name + ".png"), fullPage: true });
}

// How many pixels of a chart's canvas have a colour.
const inked = (page, chart, variable) => page.evaluate(([chart, variable]) => {
  const canvas = document.querySelector(`[data-chart="${chart}"] canvas`);
  const probe = document.createElement("span");
  probe.style.color = `var(--${variable})`;
  document.body.append(probe);
  const [r, g, b] = getComputedStyle(probe).color.match(/\d+/g).map(Number);
  probe.remove();
  // A copy, or Chromium grumbles about reading the original.
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
  let n = 0;
  for (let k = 0; k < data.length; k += 4)
    if (data[k + 3] > 200 && Math.abs(data[k] - r) + Math.abs(data[k + 1] - g) + Math.abs(data[k + 2] - b) < 40) n++;
  return n;
}, [chart, variable]);

test("a report loads from a file, draws its charts and says nothing to the console", async () => {
  const { page, complaints, close } = await open("lvs/report.html");
  const charts = await page.locator(".chart.interactive canvas").count();
  assert.ok(charts >= 8, `${charts} charts`);
  assert.ok(await inked(page, "likelihood-0", "series-0") > 200, "the training curve");
  assert.ok(await inked(page, "likelihood-0", "series-1") > 200, "the validation curve");
  assert.ok(await page.locator(".pictures image").count() > 20, "pictures");
  assert.equal(await page.locator(".chart.interactive .static svg:visible").count(), 0, "static twins of interactive charts are hidden");
  await picture(page, "run");
  assert.deepEqual(complaints, []);
  await close();
});

test("hovering shows the recorded value, dragging zooms, a double click shows all", async () => {
  const { page, complaints, close } = await open("lvs/report.html");
  const chart = page.locator('[data-chart="likelihood-0"]');
  const over = chart.locator(".u-over");
  const box = await over.boundingBox();
  const value = () => chart.locator(".u-legend .u-series").nth(1).locator(".u-value").textContent();
  const recorded = await page.evaluate(() => window.mclv.charts["likelihood-0"][0].series[0].y);
  const shows = async (y, when) => assert.ok(Math.abs(parseFloat(await value()) - y) < 1e-3, `${when}: ${await value()} for ${y}`);
  await shows(recorded.at(-1), "the last value without a pointer");
  await page.mouse.move(box.x + 2, box.y + box.height / 2);
  await shows(recorded[0], "the first value");
  await page.mouse.move(box.x + box.width - 2, box.y + box.height / 2);
  await shows(recorded.at(-1), "the last value");
  await page.mouse.move(box.x + box.width / 2, box.y - 60);
  await shows(recorded.at(-1), "the last value again");
  const range = () => page.evaluate(() => {
    const { min, max } = [...window.mclv.drawn.values()][0].plot.scales.x;
    return max - min;
  });
  const whole = await range();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 60, { steps: 5 });
  await page.mouse.up();
  assert.ok(await range() < 0.5 * whole, "zoomed");
  await page.mouse.dblclick(box.x + box.width * 0.5, box.y + 50);
  assert.ok(Math.abs(await range() - whole) < 1e-6, "all again");
  await chart.locator(".tabs button").nth(1).click();
  assert.match(await chart.locator(".u-legend .u-series").first().textContent(), /wall time/);
  assert.deepEqual(complaints, []);
  await close();
});

test("several runs: the table sorts, and runs can be hidden", async () => {
  const { page, complaints, close } = await open("several.html");
  const table = page.locator("#runs table");
  const column = async () => (await table.locator("tbody td:nth-child(7)").allTextContents()).map(Number);
  const rising = xs => xs.every((x, k) => k === 0 || xs[k - 1] <= x);
  const head = table.locator("thead th").nth(6);
  await head.click();
  const up = await column();
  assert.ok(up.length === 3 && rising(up), String(up));
  await head.click();
  assert.deepEqual(await column(), [...up].reverse());
  await table.locator("thead th").nth(1).press("Enter");
  assert.deepEqual(await table.locator("tbody td:nth-child(2)").allTextContents(), ["lvs", "pcd-1", "pcd-2"]);
  await picture(page, "several");
  const tabs = page.locator('[data-chart="likelihood-0"] .tabs button');
  assert.equal(await tabs.first().textContent(), "mean over seeds");
  const names = await page.locator('[data-chart="likelihood-0"] .u-legend .u-series:not(.limit) .u-label').allTextContents();
  assert.deepEqual(names.filter(Boolean).slice(1), ["lvs", "pcd (2 seeds)"]);
  await page.locator('input[data-run="pcd-1"]').uncheck();
  await page.waitForTimeout(200);
  assert.ok(await inked(page, "likelihood-0", "series-1") > 100, "a mean is shown as long as one of its runs is");
  await page.locator('input[data-run="pcd-2"]').uncheck();
  await page.waitForTimeout(200);
  assert.equal(await inked(page, "likelihood-0", "series-1"), 0, "the mean is hidden with its runs");
  for (const run of ["pcd-1", "pcd-2"]) await page.locator(`input[data-run="${run}"]`).check();
  await tabs.nth(1).click();
  assert.equal(await page.evaluate(() => window.mclv.charts["likelihood-0"][1].series.length), 3, "single runs");
  assert.ok(await inked(page, "likelihood-0", "series-0") > 100, "lvs is drawn");
  await page.locator('input[data-run="lvs"]').uncheck();
  await page.waitForTimeout(200);
  assert.equal(await inked(page, "likelihood-0", "series-0"), 0, "lvs is hidden");
  assert.ok(await inked(page, "likelihood-0", "series-1") > 100, "the others are not");
  await page.locator('input[data-run="lvs"]').check();
  await page.waitForTimeout(200);
  assert.ok(await inked(page, "likelihood-0", "series-0") > 100, "lvs is back");
  assert.deepEqual(complaints, []);
  await close();
});

test("terms are explained by pointer and by keyboard, beside their question mark, and not in print", async () => {
  const { page, complaints, close } = await open("lvs/report.html");
  const question = page.locator('#log-z th .what[popovertarget="term-standard-error"]');
  const box = page.locator("#term-standard-error");
  assert.ok(!await box.isVisible());
  await question.click();
  assert.ok(await box.isVisible());
  assert.match(await box.textContent(), /typical size of the random error/);
  const [at, term] = [await question.boundingBox(), await box.boundingBox()];
  assert.ok(Math.abs(term.y - at.y) < 160 && term.x >= 0 && term.x + term.width <= 1100, JSON.stringify([at, term]));
  await page.keyboard.press("Escape");
  assert.ok(!await box.isVisible(), "Escape closes it");
  await question.focus();
  await page.keyboard.press("Enter");
  assert.ok(await box.isVisible(), "the keyboard opens it");
  await page.mouse.click(5, 5);
  assert.ok(!await box.isVisible(), "a click elsewhere closes it");
  assert.ok(await page.locator(".what:visible").count() > 15, "all over the page");
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator(".what:visible").count(), 0);
  assert.deepEqual(complaints, []);
  await close();
});

test("no table is cut off on a screen of 1280 pixels or on paper", async () => {
  const cut = page => page.evaluate(() => [...document.querySelectorAll(".scroll")]
    .filter(e => e.scrollWidth > e.clientWidth + 1 || e.firstElementChild.getBoundingClientRect().right > innerWidth)
    .map(e => `${e.closest("section").id}: ${e.firstElementChild.offsetWidth} in ${e.clientWidth}`));
  for (const name of ["lvs/report.html", "several.html"]) {
    const { page, complaints, close } = await open(name, { viewport: { width: 1280, height: 900 } });
    assert.deepEqual(await cut(page), [], name);
    // A4 with margins of 1 cm has 718 pixels.
    await page.setViewportSize({ width: 718, height: 1000 });
    await page.emulateMedia({ media: "print" });
    assert.deepEqual(await cut(page), [], name + " on paper");
    if (pictures) await page.pdf({ path: join(pictures, name.replace("/", "-") + ".pdf"), format: "A4", margin: { top: "1cm", bottom: "1cm", left: "1cm", right: "1cm" } });
    assert.deepEqual(complaints, []);
    await close();
  }
});

test("samples are compared with the data, as figures that stand still", async () => {
  const { page, complaints, close } = await open("lvs/report.html");
  const section = page.locator("#generated-against-data");
  assert.equal(await section.locator(".chart .static > svg:visible").count(), 4);
  const text = await section.textContent();
  for (const words of ["1000 independent exact samples", "noise alone would give", "95 of 100 cases", "Copies of a training row"])
    assert.ok(text.includes(words), words);
  assert.deepEqual(complaints, []);
  await close();
});

test("dark and light follow the system, also while the page is open", async () => {
  const { page, complaints, close } = await open("lvs/report.html", { colorScheme: "dark" });
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const brightness = text => text.match(/\d+/g).slice(0, 3).map(Number).reduce((a, b) => a + b) / 3;
  assert.ok(brightness(await ground()) < 60, await ground());
  assert.ok(await inked(page, "likelihood-0", "series-0") > 200, "curves in dark colours");
  await picture(page, "dark");
  await page.emulateMedia({ colorScheme: "light" });
  await page.waitForTimeout(200);
  assert.ok(brightness(await ground()) > 240, await ground());
  assert.ok(await inked(page, "likelihood-0", "series-0") > 200, "curves drawn anew in light colours");
  assert.deepEqual(complaints, []);
  await close();
});

test("a phone shows all of it without scrolling sideways; print and no scripts show static charts", async () => {
  const phone = await open("lvs/report.html", { viewport: { width: 375, height: 800 }, deviceScaleFactor: 2 });
  const [content, screen] = await phone.page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(content <= screen, `${content} > ${screen}`);
  await picture(phone.page, "phone");
  await phone.page.emulateMedia({ media: "print" });
  assert.ok(await phone.page.locator(".static svg:visible").count() >= 8, "print");
  assert.equal(await phone.page.locator(".chart canvas:visible").count(), 0, "print");
  assert.deepEqual(phone.complaints, []);
  await phone.close();
  const still = await open("lvs/report.html", { javaScriptEnabled: false });
  assert.ok(await still.page.locator(".static svg:visible").count() >= 8, "without scripts");
  await picture(still.page, "no-scripts");
  await still.close();
});

test("the live page grows while training runs, hears of the end, and shows no other file", async () => {
  const args = ["train", "digits", "--n-hidden", "12", "--epochs", "100000", "--eval-every", "50", "--live", "--port", "0", "--output", "live"];
  const training = spawn(mclv, args, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise(resolve => training.on("exit", resolve));
  try {
    let said = "";
    const address = await new Promise((resolve, reject) => {
      training.stderr.on("data", data => {
        said += data;
        const found = said.match(/http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\//);
        if (found) resolve(found[0]);
      });
      training.on("exit", () => reject(new Error(said)));
    });
    const context = await browser.newContext();
    const page = await context.newPage();
    const complaints = [];
    page.on("console", message => { if (message.type() === "error") complaints.push(message.text()); });
    page.on("pageerror", error => complaints.push(String(error)));
    page.on("request", request => { if (!request.url().startsWith(address) && !request.url().startsWith("data:")) complaints.push(request.url()); });
    await page.goto(address);
    const points = () => page.evaluate(() => window.mclv.charts["likelihood-0"]?.[0].series[0].x.length ?? 0);
    await page.waitForFunction(() => (window.mclv.charts["likelihood-0"]?.[0].series[0].x.length ?? 0) >= 2, null, { timeout: 30000 });
    const first = await points();
    await page.waitForFunction(n => window.mclv.charts["likelihood-0"][0].series[0].x.length > n, first, { timeout: 30000 });
    assert.ok(await inked(page, "likelihood-0", "series-0") > 100, "drawn");
    assert.ok(await page.locator(".pictures image").count() > 0, "pictures of the last checkpoint");
    const status = () => page.locator("#live").textContent();
    assert.match(await status(), /^training, epoch \d+ of 100000 last heard at \d/);
    assert.ok((await page.locator("nav a").allTextContents()).includes("Likelihood"), "sections that came later are in the navigation");
    assert.ok(!(await page.locator("main").textContent()).includes("--resume"), "a running training needs no resumption");
    await picture(page, "live");
    for (const path of ["config.toml", "../lvs/report.html", "%2e%2e/lvs/config.toml", "metrics.jsonl"])
      assert.equal((await fetch(address + path)).status, 404, path);
    assert.equal((await fetch(address, { method: "POST", body: "x" })).status, 405);
    for (const other of [new URL("/", address), new URL("/state", address), address.replace(/.\/$/, "x/")])
      assert.equal((await fetch(other)).status, 404, "without the token: " + other);
    assert.match((await fetch(address)).headers.get("content-security-policy"), /frame-ancestors 'none'/);
    training.kill("SIGINT");
    await page.waitForFunction(() => document.getElementById("live").classList.contains("done"), null, { timeout: 20000 });
    assert.match(await status(), /^training ended after \d+ of 100000 epochs at \d/);
    assert.match(await page.locator("main").textContent(), /Training is not finished.*--resume/, "an interrupted one does");
    assert.equal(await ended, 130);
    await page.waitForTimeout(2500);
    assert.match(await status(), /^training ended after/, "it does not ask any more");
    assert.deepEqual(complaints.filter(text => !/ERR_(CONNECTION_(REFUSED|RESET)|EMPTY_RESPONSE)/.test(text)), []);
    await context.close();
  } finally {
    training.kill("SIGKILL");
  }
});
