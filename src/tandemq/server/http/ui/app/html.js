// Everything that the modules of this page take from the libraries, under one roof.

import htm from "../vendor/htm.js";
import { Fragment, h, render } from "../vendor/preact.js";

export { useEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
export { computed, effect, signal } from "../vendor/signals.js";
export { Fragment, render };

export const html = htm.bind(h); // escapes whatever is put between ${ and }
