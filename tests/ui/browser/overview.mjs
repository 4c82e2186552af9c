import { check, end, open, pictures, told } from "./browser.mjs";

const page = await open();
await page.waitForSelector(".tile");
const first = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
check(first < 10_000, `the first paint took ${first} ms`); // a busy machine fails no test
console.log(`first paint after ${Math.round(first)} ms`);
await page.waitForSelector("canvas");
const text = await told(page);
for (const part of ["Jobs a second", "Fullest queues", "invoices", "Server", "Memory"]) {
  check(text.includes(part), `the overview does not show ${part}`);
}
const tiles = await page.locator(".tile").allInnerTexts();
check(tiles.some((tile) => /Dead letters\s+10/.test(tile)), `dead letters: ${tiles}`);

// The rates live: a chart grows while one looks.
await page.waitForFunction(() => document.querySelectorAll("canvas").length === 2);
await page.getByRole("link", { name: "Dead letters" }).first().click();
await page.waitForURL(/#\/dead/);
await pictures("#/overview", "overview");
await end();
