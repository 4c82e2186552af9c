import { check, end, given, open, shot, told } from "./browser.mjs";

const quiet = ["401", "403"]; // the browser tells of these by itself
const page = await open("#/queues", { quiet });
await page.waitForSelector(".login");
await shot(page, "login-1280-light");

await page.getByLabel("Token").fill("wrong");
await page.getByRole("button", { name: "Sign in" }).click();
await page.getByText("did not accept").waitFor();
await page.getByLabel("Token").fill(given.token);
await page.getByRole("button", { name: "Sign in" }).click();
await page.waitForSelector("tbody tr");
check(!(await page.content()).includes(given.token), "the token stands in the page");
check(!page.url().includes(given.token), "the token stands in the address");

await page.reload();
await page.waitForSelector("tbody tr"); // it is kept for this tab
await page.getByRole("button", { name: "Sign out" }).click();
await page.waitForSelector(".login");
check((await page.evaluate(() => sessionStorage.length)) === 0, "the token is still kept");

await page.getByRole("button", { name: "Password" }).click();
await page.getByLabel("User", { exact: true }).fill("ann");
await page.getByLabel("Password").fill("battery staple");
await page.getByRole("button", { name: "Sign in" }).click();
await page.waitForSelector("tbody tr");
check((await page.locator(".who").innerText()).includes("ann"), "the page does not know who it is");
check((await page.evaluate(() => sessionStorage.length)) === 0, "the password is kept");

// Whoever may only look finds no button that does something.
const reader = await open("#/overview", { quiet, token: given.reader });
await reader.waitForSelector(".tile");
for (const hash of ["queues", "queue/mail", `job/${given.dead}`, "jobs", "dead?queue=mail", "schedules", "workers", "subscribers"]) {
  await reader.goto(reader.url().split("#")[0] + "#/" + hash);
  await reader.waitForSelector("h1");
  if (!["workers", "subscribers"].includes(hash)) await reader.waitForSelector("tbody tr, .timeline li");
  const buttons = await reader.locator("main button").allInnerTexts();
  const doing = buttons.filter((text) => !["Previous", "Next", "Copy", "Download", "Show all"].includes(text));
  check(doing.length === 0, `who may only look sees at ${hash}: ${doing}`);
}
await reader.goto(reader.url().split("#")[0] + "#/workers");
await reader.getByText("Superuser access required").waitFor();
check(!(await told(reader)).includes("mailer"), "who may only look sees workers");
await end();
