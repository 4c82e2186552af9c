import { check, end, given, open, told } from "./browser.mjs";

const list = await open("#/dead?queue=large"); // every answer above 200 KB is a fault
await list.waitForSelector("tbody tr");
check((await list.locator("tbody tr").count()) === Math.min(50, given.count), "not every dead letter is listed");
await list.goto(list.url().split("#")[0] + "#/queue/large");
await list.waitForSelector("tbody tr");

const done = await open(`#/job/${given.done}`);
await done.getByText("Load them").waitFor();
check((await told(done)).includes("976.6 KB"), "the size of the result is not told");

// What is asked for is loaded, cut until all of it is asked for, and can be saved.
const job = await open(`#/job/${given.dead}`, { large: true });
await job.getByText("Load them").waitFor();
check((await told(job)).includes("1.9 MB"), "the size of the data is not told");
await job.getByRole("button", { name: "Load them" }).click();
await job.waitForSelector(".data pre");
check((await job.locator(".data pre").innerText()).length < 25_000, "all of the data is shown at once");
const saved = job.waitForEvent("download");
await job.getByRole("button", { name: "Download" }).click();
check((await saved).suggestedFilename() === "data.json", "the data cannot be saved");
await end();
