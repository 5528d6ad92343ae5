// Runs before the scripts of each page. Adds up layout shifts, keeps long tasks, and notes when the first visible change
// follows a real click or key, also if that is the first paint of the next page.
(() => {
  const probe = { shift: 0, moved: [], longTasks: [] };
  window.probe = probe;
  const describe = (node) => (node?.nodeType === 1 ? `${node.tagName.toLowerCase()}#${node.id}.${node.className}` : String(node?.nodeName));
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (entry.hadRecentInput) continue;
      probe.shift += entry.value;
      probe.moved.push([Math.round(entry.value * 1e4) / 1e4, entry.sources.map(({ node }) => describe(node)).join(" ")]);
    }
  }).observe({ type: "layout-shift", buffered: true });
  new PerformanceObserver((list) => probe.longTasks.push(...list.getEntries().map(({ duration }) => duration)))
    .observe({ type: "longtask", buffered: true });

  const BEGAN = "probe-began", SEEN = "probe-seen";
  const wall = (at) => performance.timeOrigin + at;
  const see = (at) => { if (sessionStorage[BEGAN] && !sessionStorage[SEEN]) sessionStorage[SEEN] = at; };
  const begin = (event) => {
    if (!event.isTrusted || !sessionStorage["probe-armed"]) return;
    delete sessionStorage["probe-armed"];
    delete sessionStorage[SEEN];
    sessionStorage[BEGAN] = wall(event.timeStamp);
  };
  for (const name of ["click", "keydown"]) addEventListener(name, begin, true);

  // What htmx writes into `class` of elements has no look of its own; a text that only ages is no answer.
  const plain = (text) => (text ?? "").replace(/\bhtmx-\S+/g, "").trim();
  const isSeen = (record) => {
    const element = record.target.nodeType === 1 ? record.target : record.target.parentElement;
    if (!element || element.closest("time, .visually-hidden, head") || !element.checkVisibility()) return false;
    if (record.type !== "attributes") return true;
    const now = element.getAttribute(record.attributeName);
    return record.attributeName === "class" ? plain(now) !== plain(record.oldValue) : now !== record.oldValue;
  };
  new MutationObserver((records) => {
    if (!sessionStorage[BEGAN] || sessionStorage[SEEN] || !records.some(isSeen)) return;
    // A task after the frame that shows it.
    requestAnimationFrame(() => setTimeout(() => see(wall(performance.now()))));
  }).observe(document, {
    subtree: true, childList: true, characterData: true, attributeOldValue: true,
    attributeFilter: ["class", "aria-busy", "aria-pressed", "disabled", "hidden", "open", "data-bs-theme"],
  });
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (entry.name === "first-contentful-paint") see(wall(entry.startTime));
  }).observe({ type: "paint", buffered: true });
})();
