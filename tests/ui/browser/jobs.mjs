import { check, end, given, open, pictures } from "./browser.mjs";

const page = await open("#/jobs");
const rows = page.locator("tbody tr");
await rows.first().waitFor();
check((await rows.count()) === 50, `${await rows.count()} rows on the first page`);
const newest = await rows.first().innerText();
await page.getByRole("button", { name: "Next" }).click();
await page.getByText("page 2").waitFor();
check((await rows.first().innerText()) !== newest, "the second page is the first one");
await page.getByRole("button", { name: "Previous" }).click();
await page.getByText("page 1").waitFor();

const only = async (label, value, count) => {
  const field = page.getByLabel(label, { exact: true });
  await field.fill(value);
  await page.waitForFunction((n) => document.querySelectorAll("tbody tr").length === n, count);
  await field.fill("");
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 50);
};
await only("Id begins with", given.late, 1);
await only("Text in data or error", "REFUSED BY", 10);
await only("Text in data or error", "4711", 3);
await only("Tag", "vip", 36);
await page.getByLabel("State").selectOption("delayed");
await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
check(page.url().includes("state=delayed"), "the state is not in the address");

await page.getByLabel("Queue").fill("none");
await page.getByText("No job fits.").waitFor();
await pictures("#/jobs", "jobs", { ready: "tbody tr" });
await end();
