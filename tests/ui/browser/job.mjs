import { check, end, given, open, pictures, told } from "./browser.mjs";

const page = await open(`#/job/${given.dead}`);
await page.waitForSelector(".timeline li");
await page.waitForSelector(".log li");
const text = await told(page);
for (const part of ["failed", "RetryDlq", "connection refused by", "mail.js:12", '"order": 47', "try 2"]) {
  check(text.includes(part), `the job does not show ${part}`);
}
check((await page.locator(".timeline li").count()) >= 3, "the timeline is too short");
check((await page.locator(".log li").count()) === 3, "the log is not there");
await pictures(`#/job/${given.dead}`, "job", { ready: ".log li" });

await page.goto(page.url().replace(given.dead, given.late));
await page.getByText("delayed").first().waitFor();
await page.getByRole("button", { name: "Run now" }).click();
await page.getByRole("dialog").getByRole("button", { name: "Run now" }).click();
await page.waitForSelector("h1 .chip-waiting");

await page.goto(page.url().replace(given.late, "no%2Fsuch%3Cjob%3E"));
await page.getByText("No job has this id").waitFor();
await end();
