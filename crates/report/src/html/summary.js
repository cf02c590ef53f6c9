// The head of the page: the grade, how it is made up, what was looked at.
const tone = (grade) => (grade === "A" || grade === "B" ? "tone-good" : grade === "C" || grade === "D" ? "tone-fair" : "tone-bad");

const gradeRing = (data) => {
  const round = 2 * Math.PI * 54;
  const ring = { cx: 60, cy: 60, r: 54, fill: "none", "stroke-width": 9 };
  return h("div", { class: `grade ${tone(data.grade)}` },
    drawing("svg", { viewBox: "0 0 120 120", "aria-hidden": "true" },
      drawing("circle", { class: "track", ...ring }),
      data.score > 0 && drawing("circle", { class: "arc", ...ring, "stroke-dasharray": `${(round * data.score) / 100} ${round}` })),
    h("div", { class: "letter" },
      h("b", null, h("span", { class: "away" }, "Grade "), data.grade),
      h("small", null, `${data.score} of 100`)));
};

// To be recomputed by hand: what each rule takes, for its first and for its second finding.
const scoreSum = (data) => {
  const line = (name, points, extra = "") => h("li", { class: extra || undefined },
    h("span", { class: `of${extra ? " plain" : ""}` }, name), h("span", { class: "dots" }), h("span", { class: "points" }, points));
  const lost = data.deductions.reduce((sum, deduction) => sum + deduction.first + deduction.second, 0);
  return h("section", { class: "made", "aria-labelledby": "made" },
    h("h2", { id: "made" }, "How the score is made up"),
    h("ul", { class: "sum" },
      line("start", "100", "start"),
      data.deductions.map((deduction) => line(deduction.findings > 1 ? `${deduction.rule} ×${deduction.findings}` : deduction.rule,
        h("span", { class: "minus" }, deduction.second ? `−${deduction.first} −${deduction.second}` : `−${deduction.first}`))),
      line(`score${lost > 100 ? ", never below 0" : ""}, grade ${data.grade}`, String(data.score), "total")),
    h("p", { class: "cap" }, "The first finding of a rule takes its points, the second half of them, more take nothing. Counted is what the regular persona sees in product files, unless it is suppressed. A from 90, B from 80, C from 70, D from 60.",
      data.capped && " A critical finding of high confidence keeps the grade at D or below."));
};

const summary = (data) => {
  const active = data.findings.filter((finding) => !finding.suppressed);
  const tools = new Set(active.flatMap((finding) => finding.entries.map((entry) => `${entry.kind} ${entry.name} ${entry.file}`)));
  const title = active.length === 0 ? "No races found" : `${plural(active.length, "race")} in ${data.roots.length === 1 && data.roots[0] !== "." ? data.roots[0] : "this server"}`;
  const counts = SEVERITIES.map((severity) => [severity, active.filter((finding) => finding.severity === severity).length]).filter(([, count]) => count);
  const looked = `${plural(data.files, "file")}, ${plural(data.functions, "function")} and ${plural(data.entry_points, "entry point")} were scanned for the ${data.persona} persona`;
  const left = data.skipped_files ? `; ${plural(data.skipped_files, "file")} skipped` : "";
  return [
    gradeRing(data),
    h("div", null,
      h("h1", { id: "headline" }, title),
      h("p", { class: "lead" },
        active.length === 0 ? "Nothing in the source that was read lets two calls corrupt each other. That is not a proof that there is no race. "
          : `${tools.size ? `${plural(tools.size, "entry point")} can corrupt what they share when calls run at the same time. ` : ""}`,
        `${looked}${left}.`),
      h("ul", { class: "tally", "aria-label": "Findings by severity" },
        counts.map(([severity, count]) => h("li", { class: `sev-${severity}` }, h("span", { class: "dot" }), h("span", null, h("b", null, String(count)), ` ${severity}`))))),
    scoreSum(data),
  ];
};

const topBar = (data) => {
  const label = h("span", { class: "label" });
  const button = h("button", { type: "button", class: "quiet", id: "theme" }, icon("theme"), label);
  const show = () => {
    const other = theme.current() === "dark" ? "light" : "dark";
    label.textContent = other === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Switch to the ${other} theme`);
  };
  button.addEventListener("click", () => { theme.toggle(); show(); });
  prefersDark.addEventListener("change", show);
  show();
  const mark = drawing("svg", { viewBox: "0 0 24 24", width: 22, height: 22, "aria-hidden": "true" },
    drawing("path", { d: "M6 3v18M18 3v18", stroke: "currentColor", "stroke-width": 2.4, "stroke-linecap": "round" }),
    drawing("path", { d: "M6 8c6 0 6 8 12 8M18 8c-6 0-6 8-12 8", stroke: "currentColor", "stroke-width": 2, fill: "none", opacity: 0.55 }));
  return [
    h("span", { class: "brand" }, mark, "toctou"),
    h("span", { class: "target", title: data.roots.join(", ") }, data.roots.join(", ")),
    h("span", { class: "tools" }, button),
  ];
};

const foot = (data) => {
  const part = (title, items) => items.length > 0 && h("details", { class: "more" }, h("summary", null, title), h("ul", null, items));
  const [pedantic, auditor, filtered] = data.hidden;
  const hidden = [
    pedantic && `${pedantic} more with --persona pedantic`,
    auditor && `${auditor} more with --persona auditor`,
    filtered && `${plural(filtered, "finding")} left out by --rule or --min-severity`,
  ].filter(Boolean);
  const faults = data.skipped.filter((skipped) => skipped.fault);
  const rest = data.skipped.filter((skipped) => !skipped.fault);
  const file = (skipped) => h("li", null, h("code", null, skipped.file), `: ${skipped.reason}`);
  return [
    part(`Could not be analysed (${faults.length})`, faults.map(file)),
    part(`Skipped (${rest.length}${data.skipped.length < data.skipped_files ? " places" : ""})`, rest.map(file)),
    part(`Notes of the scan (${data.notes.length})`, data.notes.map((note) => h("li", null, prose(note)))),
    part("Not shown here", hidden.map((text) => h("li", null, text))),
    h("p", { class: "more" }, `Made by toctou ${data.version}. A finding says that nothing in the code prevents the interleaving; no finding does not mean that there is no race.`),
  ];
};
