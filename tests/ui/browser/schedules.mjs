import { check, end, open, pictures, told } from "./browser.mjs";

const page = await open("#/schedules");
await page.waitForSelector("tbody tr");
const text = await told(page);
for (const part of ["nightly", "0 6 * * *", "Europe/Rome", "there", "every 1 d"]) {
  check(text.includes(part), `the schedules do not show ${part}`);
}
check(/in \d+ (h|d|min|s)/.test(text), "the next run is not told");
await pictures("#/schedules", "schedules", { ready: "tbody tr" });

await page.locator("tr", { hasText: "often" }).getByRole("button", { name: "Remove" }).click();
await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
await page.locator("tr", { hasText: "often" }).waitFor({ state: "detached" });
await end();
