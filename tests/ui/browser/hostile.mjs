import { check, end, given, open, shot } from "./browser.mjs";

// What a page of ours never holds, in any place that users can reach.
const planted = () => ({
  elements: document.querySelectorAll("main img, main script, main svg, [onerror], [onload]").length,
  scripts: document.scripts.length,
});

const job = "job/" + encodeURIComponent(given.id);
const search = "jobs?text=" + encodeURIComponent(given.evil);
const page = await open("#/", { quiet: ["400"] }); // no queue can have such a name
for (const [hash, ready] of [
  ["overview", ".tile"],
  ["queues", "tbody tr"],
  [`queue/${given.queue}`, "tbody tr"],
  ["jobs", "tbody tr"],
  [search, "tbody tr"],
  [job, ".log li"],
  [`dead?queue=${given.queue}`, "tbody tr"],
  ["schedules", "tbody tr"],
  ["workers", "tbody tr"],
  ["subscribers", "tbody tr"],
  ["queue/" + encodeURIComponent(given.evil), ".note, .tile"],
  [encodeURIComponent(given.evil), "h1"],
]) {
  await page.goto(page.url().split("#")[0] + "#/" + hash);
  await page.reload();
  await page.waitForSelector(ready);
  await page.waitForTimeout(100); // for what would be run
  const { elements, scripts } = await page.evaluate(planted);
  check(elements === 0, `${elements} elements of a user stand in ${hash}`);
  check(scripts === 1, `${scripts} scripts in ${hash}`);
}
await page.goto(page.url().split("#")[0] + "#/" + job);
await page.waitForSelector(".log li");
const text = await page.locator("#app").innerText();
check(text.split("<img src=x onerror=alert(1)>").length > 6, "what users wrote is not shown as it is");
await shot(page, "hostile-1280-light");

// A dialog, a toast and the editor show it as text too.
await page.getByRole("button", { name: "Edit and retry" }).click();
await page.getByLabel("Data as JSON").waitFor();
check((await page.evaluate(planted)).elements === 0, "the editor holds elements of a user");
await page.getByRole("button", { name: "Cancel" }).click();
await page.getByRole("button", { name: "Retry", exact: true }).click();
await page.getByRole("dialog").getByText("onerror").waitFor();
await end();
