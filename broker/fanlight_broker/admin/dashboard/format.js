// Numbers for people: four digits at most, with a unit where there is one.

const LETTERS = ["", "k", "M", "G", "T"];
const SIZES = ["B", "KiB", "MiB", "GiB", "TiB"];

function scaled(value, step, units) {
  let at = 0;
  while (Math.abs(value) >= step && at < units.length - 1) {
    value /= step;
    at += 1;
  }
  const digits = Math.abs(value) >= 100 || (at === 0 && Number.isInteger(value)) ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return [value.toFixed(digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, ""), units[at]];
}

export function count(value) {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) < 100_000) return Number.isInteger(value) ? value.toLocaleString("en") : scaled(value, 1000, LETTERS)[0];
  return scaled(value, 1000, LETTERS).join(" ").trim();
}

export function short(value) {
  return value === null || value === undefined ? "–" : scaled(value, 1000, LETTERS).join(" ").trim();
}

export function bytes(value) {
  return value === null || value === undefined ? "–" : scaled(value, 1024, SIZES).join(" ");
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1e-3) return `${Math.round(value * 1e6)} µs`;
  if (value < 1) return `${scaled(value * 1e3, 1e9, [""])[0]} ms`;
  if (value < 60) return `${scaled(value, 1e9, [""])[0]} s`;
  const whole = Math.round(value);
  const [days, hours, minutes] = [Math.floor(whole / 86_400), Math.floor(whole / 3_600) % 24, Math.floor(whole / 60) % 60];
  if (days) return `${days} d ${hours} h`;
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

export function clock(milliseconds, withSeconds = false) {
  return new Date(milliseconds).toLocaleTimeString("en-GB", {hour: "2-digit", minute: "2-digit", ...(withSeconds && {second: "2-digit"})});
}

export function percent(part) {
  return `${part > 0 && part < 0.1 ? (100 * part).toFixed(1) : Math.round(100 * part)} %`;
}

// A name of the API as words: "queue_waiting" -> "queue waiting".
export function words(name) {
  return name.replaceAll("_", " ");
}
