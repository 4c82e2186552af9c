// A page of the server under test in Debian's Chromium, watched for everything that goes wrong.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "./engine.mjs";

const env = process.env;

export const root = env.UI_ROOT; // where the page is, with a slash at the end
export const given = JSON.parse(env.UI_GIVEN ?? "{}"); // what the test has prepared
const SHOTS = env.UI_SHOTS;
const LARGEST = 200_000; // bytes of an answer
const WAIT = 40_000; // ms: a busy machine fails no test

export const faults = []; // what a page may not do

process.on("uncaughtException", (error) => {
  for (const fault of [...faults, error.stack]) console.error(fault);
  process.exit(1);
});

const browser = await chromium.connect(env.UI_BROWSER);

/**
 * Open a page of the application; `width` and `dark` are how its window is, `quiet` what its console
 * may say. Answers may be as long as they like on one that is `large`.
 */
export async function open(hash = "#/", { width = 1280, dark = false, token, quiet = [], large } = {}) {
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme: dark ? "dark" : "light",
    locale: "en-GB",
    timezoneId: "Europe/Berlin",
  });
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT);
  const expected = (text) => quiet.some((part) => text.includes(part));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !expected(message.text())) {
      faults.push(`console: ${message.text()}`);
    }
  });
  page.on("pageerror", (error) => faults.push(`error: ${error.stack}`));
  page.on("dialog", (dialog) => (faults.push(`a dialog: ${dialog.message()}`), dialog.dismiss()));
  page.on("response", async (response) => {
    const body = await response.body().catch(() => "");
    if (body.length > LARGEST && !large) faults.push(`${response.url()} is ${body.length} bytes long`);
  });
  if (token) {
    await page.addInitScript(
      (held) => sessionStorage.setItem("tandemq-token", held), `Bearer ${token}`,
    );
  }
  await page.goto(root + hash);
  return page;
}

/** Keep a picture of a page under a name. */
export async function shot(page, name) {
  if (!SHOTS) return;
  mkdirSync(SHOTS, { recursive: true });
  await page.waitForTimeout(300); // what fades has faded, what is loaded at once is there
  await page.screenshot({ path: join(SHOTS, `${name}.png`) });
}

const USUAL = [[1280, false], [360, true]];
const EVERY = [...USUAL, [1280, true], [360, false]];

/** Pictures of a page in two widths and themes, each looked at for what it may not be. */
export async function pictures(hash, name, { token, ready = "main h1" } = {}) {
  for (const [width, dark] of given.all ? EVERY : USUAL) {
    const page = await open(hash, { width, dark, token });
    await page.waitForSelector(ready);
    await shot(page, `${name}-${width}-${dark ? "dark" : "light"}`);
    const look = `${name} at ${width} px, ${dark ? "dark" : "light"}`;
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (wide > 0) faults.push(`${look} is ${wide} px too wide`);
    for (const pale of await page.evaluate(faint)) faults.push(`${look}: ${pale}`);
    await page.context().close();
  }
}

/** Texts whose contrast against what is behind them is below 4.5 (WCAG 2.1, level AA). */
function faint() {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const over = (top, under) => {
    const alpha = top[3] / 255;
    return [0, 1, 2].map((i) => top[i] * alpha + under[i] * (1 - alpha)).concat(255);
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const layer = rgba(getComputedStyle(at).backgroundColor);
      layers.push(layer);
      if (layer[3] === 255) break;
    }
    return layers.reduceRight((under, top) => over(top, under), [255, 255, 255, 255]);
  };
  const light = (color) => {
    const [r, g, b] = color.map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = new Set();
  for (const element of document.querySelectorAll("#app *")) {
    const text = [...element.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data).join("").trim();
    if (!text || element.closest(":disabled, .skip") || !element.checkVisibility()) continue;
    const ground = behind(element);
    const [a, b] = [light(over(rgba(getComputedStyle(element).color), ground)), light(ground)];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) found.add(`"${text.slice(0, 30)}" has a contrast of ${contrast.toFixed(2)}`);
  }
  return [...found].slice(0, 8);
}

export function check(is, what) {
  if (!is) faults.push(what);
}

export const told = (page) => page.locator("main").innerText();

/** Close the browser and tell of every fault. */
export async function end() {
  await browser.close();
  for (const fault of faults) console.error(fault);
  process.exit(faults.length ? 1 : 0);
}
