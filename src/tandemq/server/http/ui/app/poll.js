// Asking again and again while somebody looks.

import { useEffect, useRef, useState } from "./html.js";

/**
 * Load something now, whenever `deps` change, and then every `ms` (0: never) while the page is
 * visible and what was loaded is not `dear`. Returns what was loaded last, why it could not be, and
 * a way to load it at once.
 */
export function usePoll(load, deps, ms = 0, dear = () => false) {
  const [state, set] = useState({ data: null, error: null, busy: true });
  const again = useRef(() => {});
  useEffect(() => {
    let timer, control;
    const run = async (quiet) => {
      clearTimeout(timer);
      control?.abort();
      const mine = (control = new AbortController());
      let next = ms;
      if (!quiet) set((before) => ({ ...before, busy: true }));
      try {
        const data = await load(mine.signal);
        if (dear(data)) next = 0;
        if (!mine.signal.aborted) set({ data, error: null, busy: false });
      } catch (error) {
        if (!mine.signal.aborted) set((before) => ({ ...before, error, busy: false }));
      }
      if (next && !mine.signal.aborted) timer = setTimeout(tick, ms);
    };
    const tick = () => (document.hidden ? (timer = setTimeout(tick, ms)) : run(true));
    again.current = () => run(true);
    set({ data: null, error: null, busy: true });
    run(false);
    return () => {
      clearTimeout(timer);
      control?.abort();
    };
  }, deps);
  return { ...state, reload: () => again.current() };
}
