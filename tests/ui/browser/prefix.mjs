// A reverse proxy that puts /ops/q/ in front of everything, and leads nowhere else.

import { createServer, request } from "node:http";
import { check, end, open, root } from "./browser.mjs";

const target = new URL(root);
const proxy = createServer((asked, answer) => {
  if (!asked.url.startsWith("/ops/q/")) {
    answer.writeHead(404).end();
    return;
  }
  const on = request(
    { host: target.hostname, port: target.port, path: asked.url.slice(6), method: asked.method, headers: asked.headers },
    (from) => {
      answer.writeHead(from.statusCode, from.headers);
      from.pipe(answer);
    },
  );
  asked.pipe(on);
});
await new Promise((ready) => proxy.listen(0, "127.0.0.1", ready));
const at = `http://127.0.0.1:${proxy.address().port}/ops/q/`;

const page = await open();
await page.goto(at + "ui");
await page.waitForSelector(".tile canvas, .tile");
check(page.url().startsWith(at + "ui/"), `the page is at ${page.url()}`);
await page.waitForFunction(() => document.querySelectorAll("canvas").length === 2);
await page.goto(at + "ui/#/queue/mail");
await page.reload(); // a deep link
await page.waitForSelector("tbody tr");
await page.getByRole("button", { name: "Pause" }).click();
await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
await page.waitForSelector("h1 .chip-paused");
await page.getByRole("button", { name: "Resume" }).click();
await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
await page.waitForSelector("h1 .chip-paused", { state: "detached" });
proxy.close();
await end();
