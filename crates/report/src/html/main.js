// From the data to the page.
const rank = (finding) => SEVERITIES.indexOf(finding.severity);

// A finding stands once, with the first of the entry points that lead to it.
const groupsOf = (findings) => {
  const groups = new Map();
  for (const finding of findings) {
    const [entry] = finding.entries;
    const key = entry ? `${entry.kind} ${entry.name} ${entry.file}` : "";
    if (!groups.has(key)) groups.set(key, { entry, findings: [] });
    groups.get(key).findings.push(finding);
  }
  const worst = (group) => Math.min(...group.findings.map(rank));
  const ordered = [...groups.values()];
  for (const group of ordered) group.findings.sort((a, b) => rank(a) - rank(b));
  return ordered.sort((a, b) => worst(a) - worst(b));
};

const groupSection = (group, index, cards) => {
  const { entry } = group;
  const id = `group-${index}`;
  const count = h("span", { class: "kind" });
  const element = h("section", { class: "group", "aria-labelledby": id },
    h("h2", { id },
      entry ? [h("span", { class: "kind" }, entry.kind), h("span", { class: "name" }, entry.name)] : h("span", { class: "name" }, "No entry point known"),
      count,
      entry && entry.line > 0 && h("span", { class: "at" }, `${entry.file}:${entry.line}`)),
    cards.map((card) => card.element));
  return { element, cards, count };
};

const start = () => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  for (const finding of data.findings) {
    finding.words = [finding.message, finding.rule, finding.file, finding.function, finding.resource.key, finding.fix, finding.severity,
      ...finding.entries.flatMap((entry) => [entry.kind, entry.name, ...entry.via])].join("\n").toLowerCase();
  }
  byId("bar").append(...topBar(data));
  byId("summary").append(...summary(data).filter(Boolean));
  byId("foot").append(...foot(data).filter(Boolean));

  let state = readHash();
  const cards = new Map();
  const groups = groupsOf(data.findings).map((group, index) => groupSection(group, index, group.findings.map((finding) => {
    const card = findingCard(finding, data.rules);
    cards.set(finding.id, card);
    return card;
  })));
  const empty = h("div", { class: "empty", hidden: true }, h("b", null, "Nothing to show"), data.findings.length ? "No finding matches these filters." : "The scan found nothing for this persona.");
  byId("findings").append(...groups.map((group) => group.element), empty);

  const all = h("button", { type: "button", class: "quiet" }, "Open all");
  const words = h("span", null);
  byId("count").append(words, data.findings.length > 1 ? all : "");
  const shown = () => groups.flatMap((group) => group.cards).filter((card) => !card.element.hidden);
  all.addEventListener("click", () => {
    const list = shown();
    const open = list.some((card) => !card.isOpen);
    list.forEach((card) => card.open(open));
    all.textContent = open ? "Close all" : "Open all";
  });

  const apply = () => {
    let count = 0;
    for (const group of groups) {
      let here = 0;
      for (const card of group.cards) {
        const visible = matches(card.finding, state) || card.finding.id === state.finding;
        card.element.hidden = !visible;
        here += visible;
      }
      group.element.hidden = here === 0;
      group.count.textContent = plural(here, "finding");
      count += here;
    }
    empty.hidden = count > 0;
    words.textContent = count === data.findings.length ? plural(count, "finding") : `${count.toLocaleString("en")} of ${plural(data.findings.length, "finding")}`;
  };
  const changed = () => {
    state.finding = "";
    const hash = hashOf(state);
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
    filters.sync();
    apply();
  };
  const filters = filterPanel(data, state, changed);
  byId("filters").append(filters.panel);
  if (data.findings.length < 2) byId("filters").hidden = true;

  const follow = () => {
    const card = cards.get(state.finding);
    for (const other of cards.values()) other.element.classList.toggle("here", other === card);
    if (!card) return;
    card.open();
    card.element.scrollIntoView({ block: "start" });
    card.focus();
  };
  addEventListener("hashchange", () => {
    if (["#findings", "#main"].includes(location.hash)) return;
    Object.assign(state, readHash());
    filters.sync();
    apply();
    follow();
  });
  apply();
  if (cards.has(state.finding)) follow();
  // The worst one open: what the page is about is seen at once.
  else if (shown().length) shown()[0].open();

  // On paper there is nothing to open or to play.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = shown().filter((card) => !card.isOpen);
    for (const card of shown()) { card.open(); card.whole(); }
    for (const details of document.querySelectorAll(".foot details")) details.open = true;
  });
  addEventListener("afterprint", () => {
    opened.forEach((card) => card.open(false));
    opened = [];
  });
};
document.addEventListener("DOMContentLoaded", start);
