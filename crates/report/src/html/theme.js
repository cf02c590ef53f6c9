// Runs in the head, before anything is drawn: the theme first, so that nothing flashes.
const store = {
  get(key) { try { return localStorage.getItem(key); } catch { return null; } },
  set(key, value) { try { localStorage.setItem(key, value); } catch { /* a page that may not remember still works */ } },
};
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const theme = {
  chosen: store.get("toctou-theme"),
  current() { return this.chosen === "dark" || this.chosen === "light" ? this.chosen : prefersDark.matches ? "dark" : "light"; },
  apply() { document.documentElement.dataset.theme = this.current(); },
  toggle() {
    this.chosen = this.current() === "dark" ? "light" : "dark";
    store.set("toctou-theme", this.chosen);
    this.apply();
  },
};
theme.apply();
prefersDark.addEventListener("change", () => theme.apply());
