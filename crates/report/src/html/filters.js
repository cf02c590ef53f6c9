// What is shown: a few sets and a search, kept in the address so that a view can be sent to somebody.
const LISTS = ["severity", "proof", "scope", "confidence", "rule"];

const readHash = () => {
  const hash = new URLSearchParams(location.hash.slice(1));
  const state = { q: hash.get("q") || "", tool: hash.get("tool") || "", finding: hash.get("finding") || "", suppressed: hash.get("suppressed") === "1" };
  for (const list of LISTS) state[list] = new Set((hash.get(list) || "").split(",").filter(Boolean));
  return state;
};
const hashOf = (state) => {
  const hash = new URLSearchParams();
  for (const list of LISTS) if (state[list].size) hash.set(list, [...state[list]].join(","));
  for (const key of ["tool", "q", "finding"]) if (state[key]) hash.set(key, state[key]);
  if (state.suppressed) hash.set("suppressed", "1");
  return hash.toString().replaceAll("%2C", ",");
};

const matches = (finding, state) => {
  const has = (list, values) => state[list].size === 0 || values.some((value) => state[list].has(value));
  return (state.suppressed || finding.suppressed === undefined)
    && has("severity", [finding.severity]) && has("confidence", [finding.confidence]) && has("rule", [finding.rule]) && has("scope", finding.scopes) && has("proof", finding.proof ? [finding.proof.status] : [])
    && (!state.tool || finding.entries.some((entry) => entryName(entry) === state.tool))
    && state.q.toLowerCase().split(/\s+/).every((word) => finding.words.includes(word));
};

const filterPanel = (data, state, changed) => {
  const inputs = [];
  const count = (values) => {
    const counts = new Map();
    for (const finding of data.findings) for (const value of new Set(values(finding))) counts.set(value, (counts.get(value) || 0) + 1);
    return counts;
  };
  const set = (list, title, order, values, words = (value) => value) => {
    const counts = count(values);
    const keys = order ? order.filter((key) => counts.has(key)) : [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || (a < b ? -1 : 1));
    if (keys.length === 0) return null;
    return h("fieldset", { class: "set" }, h("legend", null, title), keys.map((key) => {
      const input = h("input", { type: "checkbox", name: list, value: key });
      input.addEventListener("change", () => {
        if (input.checked) state[list].add(key);
        else state[list].delete(key);
        changed();
      });
      inputs.push(() => { input.checked = state[list].has(key); });
      return h("label", { class: "option" }, input, h("span", { class: `what${list === "rule" ? " mono" : ""}` }, words(key)), h("span", { class: "many" }, String(counts.get(key))));
    }));
  };
  const search = h("input", { type: "search", id: "q", placeholder: "File, function, text", autocomplete: "off", spellcheck: "false" });
  let timer;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => { state.q = search.value.trim(); changed(); }, 120);
  });
  inputs.push(() => { if (search.value.trim() !== state.q) search.value = state.q; });
  const tools = count((finding) => finding.entries.map(entryName));
  const tool = h("select", { id: "tool" }, h("option", { value: "" }, "All"),
    [...tools.keys()].sort().map((name) => h("option", { value: name }, `${name} (${tools.get(name)})`)));
  tool.addEventListener("change", () => { state.tool = tool.value; changed(); });
  inputs.push(() => { tool.value = state.tool; });
  const hidden = data.findings.filter((finding) => finding.suppressed !== undefined).length;
  const suppressed = h("input", { type: "checkbox", id: "suppressed" });
  suppressed.addEventListener("change", () => { state.suppressed = suppressed.checked; changed(); });
  inputs.push(() => { suppressed.checked = state.suppressed; });
  const reset = h("button", { type: "button", class: "quiet reset", onclick: () => {
    for (const list of LISTS) state[list].clear();
    Object.assign(state, { q: "", tool: "", suppressed: false, finding: "" });
    changed();
  } }, "Show all");
  const inside = h("div", { class: "inside" },
    h("div", { class: "set" }, h("label", { class: "name", for: "q" }, "Search"), search),
    set("severity", "Severity", SEVERITIES, (finding) => [finding.severity]),
    set("proof", "When it was tried", Object.keys(STATUS), (finding) => (finding.proof ? [finding.proof.status] : []), (status) => STATUS[status]),
    tools.size > 0 && h("div", { class: "set" }, h("label", { class: "name", for: "tool" }, "Tool or other entry point"), tool),
    set("rule", "Rule", null, (finding) => [finding.rule]),
    set("scope", "Races with", Object.keys(SCOPES), (finding) => finding.scopes, (scope) => SCOPES[scope]),
    set("confidence", "Confidence", ["high", "medium", "low"], (finding) => [finding.confidence]),
    hidden > 0 && h("div", { class: "set" }, h("label", { class: "option" }, suppressed, h("span", { class: "what" }, "Show suppressed"), h("span", { class: "many" }, String(hidden)))),
    reset);
  // On a wide screen the panel is a column and always open.
  const narrow = matchMedia("(max-width: 860px)");
  const panel = h("details", null, h("summary", null, "Filter"), inside);
  const fit = () => { panel.open = !narrow.matches; };
  narrow.addEventListener("change", fit);
  fit();
  const sync = () => {
    inputs.forEach((input) => input());
    reset.hidden = hashOf({ ...state, finding: "" }) === "";
  };
  sync();
  return { panel, sync };
};
