// One finding: a head that is always there, and a body that is made when it is opened.
const entryName = (entry) => `${entry.kind} ${entry.name}`;

const callPath = (finding) => {
  const one = (entry) => h("li", null, h("ol", { class: "path" },
    h("li", null, h("span", { class: "stop entry", title: `${entry.file}:${entry.line}` }, entryName(entry))),
    entry.via.map((name) => h("li", null, h("span", { class: "stop" }, name))),
    h("li", null, h("span", { class: "stop end" }, `${finding.file.split("/").at(-1)}:${finding.line}`))));
  const over = finding.more_entries > 0 && h("li", { class: "over" }, `and ${finding.more_entries} more`);
  return h("ul", { class: "paths" }, finding.entries.map(one), over);
};

const snippet = (what, text) => h("div", { class: "snippet" },
  h("span", { class: "for" }, prose(what)), copyButton("Copy", text),
  h("pre", { tabindex: 0, role: "group", "aria-label": what.replaceAll("`", "") }, text));

const snippets = (finding) => {
  const comment = /\.py$/.test(finding.file) ? "#" : "//";
  return [
    snippet("Prove: run the server, and drive two calls through this window", `toctou scan . --output json=scan.json\ntoctou prove --from scan.json -- COMMAND`),
    finding.guard && snippet("Guard: an entry for `guard.toml`; `toctou guard --policy guard.toml -- COMMAND` then keeps these calls apart", finding.guard),
    snippet("Learn more about the rule", `toctou explain ${finding.rule}`),
    snippet("Ignore: above the line, with your reason", `${comment} toctou: ignore[${finding.rule}] why it cannot happen`),
  ];
};

const STATUS = { proved: "proved", "not-reproduced": "not reproduced", inconclusive: "inconclusive" };

// What happened when the server was run: the calls as recorded, and what they left behind.
const proofPart = (finding) => {
  const { status, schedules, reason, run } = finding.proof;
  if (!run) {
    return h("section", null, h("h4", null, "When it was tried"),
      h("p", { class: "because" }, h("span", { class: "chip" }, STATUS[status] || status), ` ${plural(schedules, "schedule")}. `, reason ? prose(reason) : ""));
  }
  const cell = (text) => (text === null ? h("td", null, h("i", null, "nothing")) : h("td", null, h("code", null, text)));
  return h("section", null, h("h4", null, "It happened: the real run"),
    h("p", { class: "because" }, h("span", { class: "chip proved" }, `proved, ${run.replays[0]} of ${run.replays[1]}`), " ", prose(run.headline),
      `. ${run.scope === "cross-process" ? "Two processes" : "One process"}, by ${run.strategy}`, run.held && [": held ", prose(run.held)], "."),
    run.story && timeline(run.story, finding.resource, () => {}, RUN_VERBS).root,
    run.differences.length > 0 && h("div", { class: "differences", tabindex: 0, role: "group", "aria-label": "What is left behind" }, h("table", null,
      h("thead", null, h("tr", null, ["What is left behind", "one after the other", "here"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", null, run.differences.map(([place, serial, found]) => h("tr", null, h("th", { scope: "row" }, h("code", null, place)), cell(serial), cell(found)))))));
};

const findingBody = (finding, rule) => {
  const body = h("div", { class: "body" });
  const part = (title, ...content) => h("section", null, h("h4", null, title), content);
  const races = finding.scopes.map((scope) => (scope === "in-process" ? "another call in the same process" : "another server process"));
  const made = finding.story && timeline(finding.story, finding.resource, (frame) => pointAt(body, frame));
  body.append(...[
    finding.suppressed !== undefined && h("p", { class: "because" }, h("span", { class: "chip" }, "suppressed"), ` ${finding.suppressed}`),
    finding.aside && h("p", { class: "because" }, h("span", { class: "chip" }, "not counted"), " This file is an example or a script."),
    h("p", { class: "because" }, "Reporting because ", prose(finding.because), races.length > 0 && `. Races with ${races.join(", or ")}.`),
    finding.copies && h("p", { class: "because" }, "The same code stands at ", h("code", null, finding.copies.join(", ")), "."),
    made && h("section", null, h("h4", null, "How it happens"), made.root,
      h("p", { class: "keys" }, h("kbd", null, "←"), " ", h("kbd", null, "→"), " step, ", h("kbd", null, "space"), " plays, when the timeline has the focus")),
    finding.proof && proofPart(finding),
    finding.excerpts.length > 0 && part("Source", source(finding)),
    finding.entries.length > 0 && part("Who gets here, by which calls", callPath(finding)),
    finding.fix && h("section", { class: "fix" }, h("h4", null, "Fix"), h("p", null, prose(finding.fix))),
    part("To copy", h("div", { class: "snippets" }, snippets(finding))),
    rule && rule.about && h("p", { class: "because" }, h("b", null, `${finding.rule}: `), prose(rule.about)),
    h("div", { class: "row" }, copyButton("Copy a link to this finding", () => `${location.href.split("#")[0]}#finding=${finding.id}`, "link")),
  ].filter(Boolean));
  if (made) made.whole();
  return { body, whole: made ? made.whole : () => {} };
};

const findingCard = (finding, rules) => {
  const id = `finding-${finding.id}`;
  const head = h("button", { type: "button", class: "head", "aria-expanded": "false" },
    h("span", { class: "dot" }),
    h("span", { class: "title" }, prose(finding.message)),
    h("span", { class: "facts" },
      h("span", { class: "sev" }, finding.severity),
      h("span", { class: "mono" }, finding.rule),
      h("span", { class: "mono" }, `${finding.file}:${finding.line}`),
      h("span", null, finding.scopes.map((scope) => SCOPES[scope]).join(", ")),
      finding.confidence !== "high" && h("span", null, `${finding.confidence} confidence`),
      finding.proof && h("span", { class: `chip ${finding.proof.status}` }, STATUS[finding.proof.status] || finding.proof.status),
      finding.suppressed !== undefined && h("span", { class: "chip" }, "suppressed")),
    h("span", { class: "turn" }, icon("turn")));
  const element = h("article", { class: `finding sev-${finding.severity}`, id, "aria-labelledby": `${id}-title` }, h("h3", { id: `${id}-title` }, head));
  let made = null;
  const card = {
    finding,
    element,
    get isOpen() { return made !== null && !made.body.hidden; },
    open(open = true) {
      if (open && !made) {
        made = findingBody(finding, rules[finding.rule]);
        made.body.id = `${id}-body`;
        head.setAttribute("aria-controls", made.body.id);
        element.append(made.body);
      }
      if (made) {
        made.body.hidden = !open;
        if (!open) made.whole();
      }
      element.classList.toggle("open", open);
      head.setAttribute("aria-expanded", String(open));
    },
    whole() { if (made) made.whole(); },
    focus() { head.focus({ preventScroll: true }); },
  };
  head.addEventListener("click", () => card.open(!card.isOpen));
  return card;
};
