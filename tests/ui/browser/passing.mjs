import { check, end, open } from "./browser.mjs";

const pages = [await open("#/jobs"), await open("#/overview"), await open("#/queue/passing")];
for (let look = 0; look < 8; look++) {
  await pages[0].waitForTimeout(500);
  for (const page of pages) {
    const rows = await page.locator("tbody tr").count();
    check(rows <= 62, `${rows} rows at ${page.url()}`);
    const elements = await page.locator("*").count();
    check(elements < 1_500, `${elements} elements at ${page.url()}`);
  }
}
await end();
