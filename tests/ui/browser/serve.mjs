// One browser for many scripts: writes where it listens, and ends with its input.

import { launch } from "./engine.mjs";

const server = await launch("launchServer");
console.log(server.wsEndpoint());
process.stdin.resume();
process.stdin.on("end", () => server.close().then(() => process.exit(0)));
