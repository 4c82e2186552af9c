// Debian's Chromium, driven by playwright-core.

import { createRequire } from "node:module";
import { join } from "node:path";

const env = process.env;
const require = createRequire(join(env.TANDEMQ_INTEROP_NODE, "node_modules", "here.js"));
export const { chromium } = require("playwright-core");

/** Start it: `how` is "launch", or "launchServer" for others to connect to. */
export const launch = (how) => chromium[how]({
  executablePath: env.UI_CHROMIUM,
  args: ["--no-sandbox", "--disable-dev-shm-usage"], // in a container, as root, it starts no other way
});
