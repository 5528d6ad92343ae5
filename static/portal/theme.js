// Loaded in <head> without defer, so that it runs before the first paint. The server writes the chosen theme into
// <html>; only "auto" has to be decided here, because only the browser knows what the system prefers.
(() => {
  const root = document.documentElement;
  root.dataset.js = "";
  if (root.dataset.theme !== "auto") return;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => { root.dataset.bsTheme = dark.matches ? "dark" : "light"; };
  dark.addEventListener("change", apply);
  apply();
})();
