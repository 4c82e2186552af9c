import { check, end, open, pictures, told } from "./browser.mjs";

const page = await open("#/queue/mail");
await page.waitForSelector("tbody tr");
const text = await told(page);
for (const part of ["Waiting", "Ends a minute", "Newest jobs", "later"]) {
  check(text.includes(part), `the queue does not show ${part}`);
}

// What changes something asks first, and no means no.
await page.getByRole("button", { name: "Drain" }).click();
const yes = page.getByRole("dialog").getByRole("button", { name: "Drain" });
check(await yes.isDisabled(), "draining does not ask for the name");
await page.getByRole("button", { name: "Cancel" }).click();
await page.getByRole("dialog").waitFor({ state: "detached" });

await page.getByRole("button", { name: "Pause" }).click();
await page.getByRole("dialog").waitFor();
await page.keyboard.press("Escape");
await page.getByRole("dialog").waitFor({ state: "detached" });
check((await page.locator("h1 .chip").count()) === 0, "Escape paused the queue");

await page.getByRole("button", { name: "Pause" }).click();
await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
await page.waitForSelector("h1 .chip-paused");
await pictures("#/queue/mail", "queue", { ready: "tbody tr" });
await end();
