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
  assert.equal((await value()).trim(), "–");
  await page.mouse.move(box.x + box.width - 2, box.y + box.height / 2);
  const last = await page.evaluate(() => window.mclv.charts["likelihood-0"][0].series[0].y.at(-1));
  assert.ok(Math.abs(parseFloat(await value()) - last) < 1e-3, `${await value()} for ${last}`);
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
        const found = said.match(/http:\/\/127\.0\.0\.1:\d+\//);
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
    await picture(page, "live");
    for (const path of ["config.toml", "../lvs/report.html", "%2e%2e/lvs/config.toml", "metrics.jsonl"])
      assert.equal((await fetch(address + path)).status, 404, path);
    assert.equal((await fetch(address, { method: "POST", body: "x" })).status, 405);
    training.kill("SIGINT");
    await page.waitForFunction(() => document.getElementById("live").classList.contains("done"), null, { timeout: 20000 });
    assert.equal(await ended, 130);
    assert.deepEqual(complaints.filter(text => !/ERR_(CONNECTION_(REFUSED|RESET)|EMPTY_RESPONSE)/.test(text)), []);
    await context.close();
  } finally {
    training.kill("SIGKILL");
  }
});
