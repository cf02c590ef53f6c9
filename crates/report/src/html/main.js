// From the data to the page.
const PART = 40;
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
  ordered.sort((a, b) => worst(a) - worst(b));
  // In parts, so that no part takes long to make.
  return ordered.flatMap(({ entry, findings: all }) => {
    const parts = [];
    for (let from = 0; from < all.length; from += PART) parts.push({ entry, findings: all.slice(from, from + PART), continued: from > 0 });
    return parts;
  });
};

// A group is made when its turn comes; what it stands for is known before.
const groupOf = ({ entry, findings, continued }, index, rules) => {
  const id = `group-${index}`;
  let made = null;
  const group = {
    findings,
    cards: [],
    get element() {
      if (made) return made;
      group.count = h("span", { class: "kind" });
      group.cards = findings.map((finding) => findingCard(finding, rules));
      made = h("section", { class: "group", "aria-labelledby": id },
        h("h2", { id },
          entry ? [h("span", { class: "kind" }, entry.kind), h("span", { class: "name" }, entry.name)] : h("span", { class: "name" }, "No entry point known"),
          group.count,
          continued && h("span", { class: "kind" }, "continued"),
          entry && entry.line > 0 && h("span", { class: "at" }, `${entry.file}:${entry.line}`)),
        group.cards.map((card) => card.element));
      return made;
    },
    // Shows what matches, and says how many that are.
    apply(wanted) {
      const visible = findings.filter(wanted).length;
      if (made) {
        for (const card of group.cards) card.element.hidden = !wanted(card.finding);
        made.hidden = visible === 0;
        group.count.textContent = plural(visible, "finding");
      }
      return visible;
    },
  };
  return group;
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

  const state = readHash();
  const groups = groupsOf(data.findings).map((group, index) => groupOf(group, index, data.rules));
  const list = byId("findings");
  const empty = h("div", { class: "empty", hidden: true }, h("b", null, "Nothing to show"), data.findings.length ? "No finding matches these filters." : "The scan found nothing for this persona.");
  list.append(empty);
  const wanted = (finding) => matches(finding, state) || finding.id === state.finding;
  // The first screens at once, the others while the reader looks at them.
  let ready = 0;
  const more = (count) => {
    const next = groups.slice(ready, ready + count);
    ready += next.length;
    empty.before(...next.map((group) => group.element));
    next.forEach((group) => group.apply(wanted));
  };
  const rest = () => {
    if (ready >= groups.length) return;
    more(40);
    setTimeout(rest);
  };
  const everything = () => more(groups.length - ready);
  const cardOf = (id) => {
    const index = groups.findIndex((group) => group.findings.some((finding) => finding.id === id));
    if (index < 0) return null;
    more(index + 1 - ready);
    return groups[index].cards.find((card) => card.finding.id === id);
  };

  const all = h("button", { type: "button", class: "quiet" }, "Open all");
  const words = h("span", null);
  byId("count").append(words, data.findings.length > 1 ? all : "");
  const shown = () => {
    everything();
    return groups.flatMap((group) => group.cards).filter((card) => !card.element.hidden);
  };
  all.addEventListener("click", () => {
    const cards = shown();
    const open = cards.some((card) => !card.isOpen);
    cards.forEach((card) => card.open(open));
    all.textContent = open ? "Close all" : "Open all";
  });

  const apply = () => {
    const count = groups.reduce((sum, group) => sum + group.apply(wanted), 0);
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

  let here = null;
  const follow = () => {
    if (here) here.element.classList.remove("here");
    here = cardOf(state.finding);
    if (!here) return false;
    here.element.classList.add("here");
    here.open();
    here.element.scrollIntoView({ block: "start" });
    here.focus();
    return true;
  };
  addEventListener("hashchange", () => {
    if (["#findings", "#main"].includes(location.hash)) return;
    Object.assign(state, readHash());
    filters.sync();
    apply();
    follow();
  });
  more(30);
  apply();
  // The worst one open: what the page is about is seen at once.
  if (!follow()) {
    const first = groups.slice(0, ready).flatMap((group) => group.cards).find((card) => !card.element.hidden);
    if (first) first.open();
  }
  setTimeout(rest);

  // On paper there is nothing to open or to play.
  let restore = [];
  addEventListener("beforeprint", () => {
    const cards = shown();
    const closed = cards.filter((card) => !card.isOpen);
    const details = [...document.querySelectorAll("details:not([open])")];
    for (const card of cards) { card.open(); card.whole(); }
    for (const element of details) element.open = true;
    restore = [...closed.map((card) => () => card.open(false)), ...details.map((element) => () => { element.open = false; })];
  });
  addEventListener("afterprint", () => {
    restore.forEach((undo) => undo());
    restore = [];
  });
};
document.addEventListener("DOMContentLoaded", start);
