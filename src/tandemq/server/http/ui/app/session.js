// Who uses this page, and what that person may do.

import { credentials, get, refused } from "./api.js";
import { computed, effect, signal, useEffect, useState } from "./html.js";

export const me = signal(null); // as WhoAmI tells it

// null until it is known; then whether the page can be shown
export const signedIn = computed(() => (refused.value ? false : me.value ? true : null));

effect(() => {
  const held = credentials.value;
  if (refused.value) return;
  me.value = null;
  get("whoami")
    .then((told) => held === credentials.peek() && (me.value = told))
    .catch(() => {});
});

/** What may be done with one queue: a function from an operation to yes or no. */
export function useRights(queue) {
  const [held, setHeld] = useState([]);
  const who = me.value;
  useEffect(() => {
    if (!who || who.superuser || !queue) return;
    let gone = false;
    get("whoami", { queue }).then((told) => gone || setHeld(told.may)).catch(() => {});
    return () => (gone = true);
  }, [who, queue]);
  return (operation) => Boolean(who?.superuser) || held.includes(operation);
}

/** Whether something may be done with any queue at all. */
export const mayAnywhere = (operation) => Boolean(me.value?.may.includes(operation));
