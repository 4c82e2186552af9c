import { check, end, open, pictures, told } from "./browser.mjs";

const page = await open("#/workers");
await page.waitForSelector("tbody tr");
const text = await told(page);
for (const part of ["mailer-0", "node-1", "4002", "0 of 8", "active"]) {
  check(text.includes(part), `the workers do not show ${part}`);
}
await pictures("#/workers", "workers", { ready: "tbody tr" });
await end();
