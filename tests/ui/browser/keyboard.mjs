import { check, end, open } from "./browser.mjs";

const page = await open();
await page.waitForSelector(".tile");
const press = async (...keys) => {
  for (const key of keys) await page.keyboard.press(key);
};
await press("?");
await page.getByRole("dialog").getByText("Next and previous row").waitFor();
await press("Enter");
await page.getByRole("dialog").waitFor({ state: "detached" });

await press("g", "q");
await page.waitForSelector("tbody tr");
await press("j", "j", "k");
check((await page.evaluate(() => document.activeElement.textContent)) === "invoices", "j and k do not move");
await press("Enter");
await page.waitForURL(/#\/queue\/invoices/);

await press("g", "j");
await page.waitForSelector("tbody tr");
await press("/");
check(await page.evaluate(() => document.activeElement.matches(".filters input")), "/ does not lead to the search");
await page.keyboard.type("jg?/");
check((await page.evaluate(() => document.activeElement.value)) === "jg?/", "keys act while one writes");
await page.getByText("No job fits.").waitFor();
await press("Escape");
check(await page.evaluate(() => document.activeElement === document.body), "Escape does not leave the field");

// A button is reached, asked and left with the keyboard; the focus is back where it was.
await press("g", "q");
await page.waitForSelector("tbody tr");
await press("j", "Enter");
const button = page.getByRole("button", { name: "Resume" });
await button.focus();
await press("Enter");
await page.getByRole("dialog").waitFor();
await press("Escape");
await page.getByRole("dialog").waitFor({ state: "detached" });
await page.waitForFunction(() => document.activeElement.textContent === "Resume");

// The first Tab offers the way past the navigation.
await page.goto(page.url().split("#")[0] + "#/workers");
await page.reload();
await page.waitForSelector("h1");
await press("Tab", "Enter");
check(await page.evaluate(() => document.activeElement.id === "main"), "the way past the navigation is missing");
await end();
