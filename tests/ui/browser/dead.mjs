import { check, end, given, open, pictures } from "./browser.mjs";

await pictures("#/dead?queue=mail", "dead", { ready: "tbody tr" });
const page = await open("#/dead");
await page.waitForSelector("tbody tr");
const row = (id) => page.locator("tr", { hasText: id });
check((await page.locator("tbody tr").count()) === 10, "not every dead letter is there");
check((await page.getByRole("button", { name: "Purge all" }).count()) === 0, "all of which queue?");

await row(given.retried).getByRole("button", { name: "Retry", exact: true }).click();
await page.getByRole("dialog").getByRole("button", { name: "Retry" }).click();
await row(given.retried).waitFor({ state: "detached" });

await row(given.edited).getByRole("button", { name: "Edit and retry" }).click();
const field = page.getByLabel("Data as JSON");
check((await field.inputValue()).includes('"order"'), "the data is not in the editor");
await field.fill('{"to": ');
check(await page.getByRole("button", { name: "Run the copy" }).isDisabled(), "broken JSON can be sent");
await field.fill('{"to": "edited-in-the-browser", "big": 12345678901}');
await page.getByRole("button", { name: "Run the copy" }).click();
await page.waitForURL(/#\/job\//);
await page.getByText("edited-in-the-browser").waitFor();
await end();
