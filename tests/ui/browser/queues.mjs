import { check, end, open, pictures } from "./browser.mjs";

const page = await open("#/queues");
await page.waitForSelector("tbody tr");
const names = () => page.locator("[data-row]").allInnerTexts();
check((await names()).join() === "invoices,mail,reports.daily", `queues: ${await names()}`);
check((await page.locator(".chip-paused").count()) === 1, "the paused queue is not marked");

await page.getByLabel("Name contains").fill("MAI");
await page.waitForFunction(() => document.querySelectorAll("[data-row]").length === 1);
check(page.url().includes("text=MAI"), "the search is not in the address");
await page.getByLabel("Name contains").fill("");
await page.getByLabel("Order").selectOption("failed");
await page.waitForFunction(() => document.querySelector("[data-row]")?.textContent === "mail");
await page.getByRole("link", { name: "mail" }).click();
await page.waitForURL(/#\/queue\/mail/);
await pictures("#/queues", "queues", { ready: "tbody tr" });
await end();
