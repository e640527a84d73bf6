// Light or dark: what the system prefers, until somebody chooses. The choice is kept in this browser.

const KEY = "fanlight-theme";
const NAMES = {auto: "Theme: system", light: "Theme: light", dark: "Theme: dark"};
const system = matchMedia("(prefers-color-scheme: dark)");

function chosen() {
  try {
    return localStorage.getItem(KEY) ?? "auto";
  } catch {
    return "auto"; // storage is turned off in this browser
  }
}

export function theme(button) {
  let choice = chosen();
  function apply() {
    document.documentElement.dataset.theme = choice === "auto" ? (system.matches ? "dark" : "light") : choice;
    button.textContent = NAMES[choice];
  }
  button.addEventListener("click", () => {
    const all = Object.keys(NAMES);
    choice = all[(all.indexOf(choice) + 1) % all.length];
    try {
      localStorage.setItem(KEY, choice);
    } catch { /* it lasts until the page is closed */ }
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}
