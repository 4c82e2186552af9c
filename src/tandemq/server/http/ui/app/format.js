// Numbers, sizes and moments as people read them.

const whole = new Intl.NumberFormat("en");
const brief = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const UNITS = [["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1_000]];

export const number = (n) => whole.format(n ?? 0);
export const short = (n) => (Math.abs(n ?? 0) < 10_000 ? whole.format(n ?? 0) : brief.format(n));

export const rate = (n) => (n < 10 && n % 1 ? n.toFixed(1) : short(Math.round(n)));

export function bytes(n) {
  const unit = ["B", "KB", "MB", "GB"].findIndex((_, i) => n < 1024 ** (i + 1) || i === 3);
  return `${unit ? (n / 1024 ** unit).toFixed(1) : n} ${["B", "KB", "MB", "GB"][unit]}`;
}

/** A span of ms in its two largest units. */
export function span(ms) {
  const left = Math.abs(ms);
  const at = UNITS.findIndex(([, size]) => left >= size);
  if (at < 0) return `${Math.round(left)} ms`;
  const [unit, size] = UNITS[at];
  const rest = UNITS[at + 1];
  const parts = [`${Math.floor(left / size)} ${unit}`];
  if (rest && left < size * 10) {
    const more = Math.floor((left % size) / rest[1]);
    if (more) parts.push(`${more} ${rest[0]}`);
  }
  return parts.join(" ");
}

/** A moment as seen from now: "3 min ago", "in 2 h". */
export function ago(ms, now = Date.now()) {
  if (!ms) return "–";
  const off = now - ms;
  if (Math.abs(off) < 1_000) return "now";
  return off > 0 ? `${span(off)} ago` : `in ${span(off)}`;
}

export function moment(ms, zone) {
  if (!ms) return "–";
  const options = { dateStyle: "medium", timeStyle: "medium", timeZone: zone ?? undefined };
  try {
    return new Intl.DateTimeFormat("en-GB", options).format(ms);
  } catch {
    return new Date(ms).toISOString(); // a zone that the browser does not know
  }
}

export const cut = (text, most) => (text.length > most ? text.slice(0, most) + "…" : text);
