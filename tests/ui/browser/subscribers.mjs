import { check, end, open, pictures, told } from "./browser.mjs";

const page = await open("#/subscribers");
await page.waitForSelector("tbody tr");
const text = await told(page);
for (const part of ["news", "0 of", "round robin", "reading"]) {
  check(text.includes(part), `the subscribers do not show ${part}`);
}
await pictures("#/subscribers", "subscribers", { ready: "tbody tr" });
await end();
