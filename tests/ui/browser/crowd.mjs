import { check, end, given, open, shot } from "./browser.mjs";

const rows = (page) => page.locator("tbody tr").count();
const total = new Intl.NumberFormat("en").format;

const workers = await open("#/workers");
await workers.waitForSelector("tbody tr");
check((await rows(workers)) === 100, `${await rows(workers)} workers on a page`);
check((await workers.locator("main").innerText()).includes(`of ${total(given.workers)}`), "how many workers?");
await shot(workers, "crowd-workers");

const jobs = await open("#/jobs?queue=crowd&state=active");
await jobs.waitForSelector("tbody tr");
check((await rows(jobs)) === 50, `${await rows(jobs)} jobs on a page`);

const queues = await open("#/queues?text=many-");
await queues.waitForSelector("tbody tr");
check((await rows(queues)) === 50, `${await rows(queues)} queues on a page`);
await queues.getByRole("button", { name: "Next" }).click();
await queues.waitForFunction(() => document.querySelector("[data-row]")?.textContent === "many-00050");
check((await queues.locator("main").innerText()).includes(`of ${total(given.queues)}`), "how many queues?");
check((await queues.locator("*").count()) < 1_500, "the page is full of elements");
await end();
