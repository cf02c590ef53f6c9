// Source, lightly coloured. The marks come with the text; colours are a help and never exact.
const TOKEN = /(\/\/.*|\/\*.*?\*\/|#(?![[!{]).*)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)|\b(async|await|break|case|catch|class|const|continue|def|defer|del|elif|else|except|export|extends|finally|fn|for|from|func|function|go|if|impl|import|in|interface|let|loop|match|mut|new|not|pass|pub|raise|return|select|self|static|struct|switch|this|throw|try|type|use|var|while|with|yield)\b|\b(\d[\d_.]*)\b/g;
const KINDS = ["com", "str", "key", "num"];

// [start, end, kind] of what is coloured in a line.
const tokens = (text, hashComments) => {
  const found = [];
  for (const match of text.matchAll(TOKEN)) {
    const kind = KINDS[match.slice(1).findIndex((group) => group !== undefined)];
    if (kind === "com" && match[0][0] === "#" && !hashComments) continue;
    found.push([match.index, match.index + match[0].length, kind]);
  }
  return found;
};

const NOTES = { read: "call A reads", gap: "call B can run here", act: "call A acts, trusting the read" };

const sourceLine = (line, hashComments, said) => {
  if (line.number === 0) return h("span", { class: "ln cut" }, h("span", { class: "no", "aria-hidden": "true" }, "⋮"), "\n");
  const text = line.pieces.map(([piece]) => piece).join("");
  const coloured = tokens(text, hashComments);
  let from = 0;
  const parts = line.pieces.map(([piece, role]) => {
    const to = from + piece.length;
    const inside = [];
    let at = from;
    for (const [start, end, kind] of coloured) {
      const [a, b] = [Math.max(start, at), Math.min(end, to)];
      if (a >= b) continue;
      if (a > at) inside.push(text.slice(at, a));
      inside.push(h("span", { class: `tok-${kind}` }, text.slice(a, b)));
      at = b;
    }
    if (at < to) inside.push(text.slice(at, to));
    from = to;
    return role === "plain" ? inside : h("mark", { class: role }, inside);
  });
  const roles = [...new Set(line.pieces.map(([, role]) => role))].filter((role) => role !== "plain" && !said.has(role));
  roles.forEach((role) => said.add(role));
  return h("span", { class: "ln", "data-line": line.number },
    h("span", { class: "no", "aria-hidden": "true" }, String(line.number)), parts,
    roles.map((role) => h("span", { class: `note ${role}` }, `← ${NOTES[role]}`)), "\n");
};

const source = (finding) => {
  const said = new Set(finding.excerpts.some((excerpt) => excerpt.lines.some((line) => line.pieces.some(([, role]) => role === "read"))) ? [] : ["act"]);
  return finding.excerpts.map((excerpt) => {
    const hashComments = excerpt.file.endsWith(".py");
    return h("figure", { class: "code", "data-file": excerpt.file },
      h("figcaption", null, excerpt.file),
      h("pre", { tabindex: 0, role: "group", "aria-label": `Source of ${excerpt.file}` },
        h("code", null, excerpt.lines.map((line) => sourceLine(line, hashComments, said)))));
  });
};

// Shows in the source where a frame of the timeline is.
const pointAt = (body, frame) => {
  for (const line of body.querySelectorAll(".ln.now-0, .ln.now-1")) line.classList.remove("now-0", "now-1");
  if (!frame || !frame.line || frame.lane === undefined) return;
  for (const figure of body.querySelectorAll("figure.code")) {
    if (figure.dataset.file !== frame.file) continue;
    const line = figure.querySelector(`[data-line="${frame.line}"]`);
    if (line) line.classList.add(`now-${Math.min(frame.lane, 1)}`);
  }
};
