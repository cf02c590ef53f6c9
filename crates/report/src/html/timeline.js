// The interleaving, to be stepped through: a lane for each call, the resource between them.
const VERBS = {
  read: "reads", yield: "gives way", write: "writes", delete: "deletes", acquire: "asks for the lock", release: "releases",
  begin: "begins", commit: "commits", open: "opens", close: "closes", send: "sends", outcome: "",
};
// Of a run that was recorded: the text says it all, or nearly.
const RUN_VERBS = { ...VERBS, open: "is called", close: "", yield: "", acquire: "locks", release: "unlocks" };
const STEP_TIME = 1700;
// Code is set as code; words of ours have none of these characters.
const looksLikeCode = (text) => /[(){}[\]=;."'`<>]/.test(text);
const placeOf = (frame) => (frame.line ? `${frame.file.split("/").at(-1)}:${frame.line}` : "");

const sentence = (story, frame, verbs) => {
  if (frame.lane === undefined) return `In the end: ${frame.text}.`.replace(/\.\.$/, ".");
  const code = looksLikeCode(frame.text);
  const parts = [`Call ${story.lanes[frame.lane]} ${code ? verbs[frame.action] : frame.text}`];
  if (frame.value) parts.push(frame.action === "read" ? ` and sees ${frame.value}` : ` ${frame.value}`);
  if (code) parts.push(`: ${frame.text}`);
  if (frame.line) parts.push(` (${placeOf(frame)})`);
  parts.push(".");
  if (frame.stale !== undefined) parts.push(` It trusts what it read at step ${frame.stale + 1}; that has changed since.`);
  if (frame.undoes !== undefined) parts.push(` ${story.frames[frame.undoes].value} of call ${story.lanes[story.frames[frame.undoes].lane]} is lost.`);
  return parts.join("");
};

const stepBox = (story, frame, index, verbs) => {
  const undoer = story.frames.findIndex((other) => other.undoes === index);
  const words = frame.text === verbs[frame.action] ? null : looksLikeCode(frame.text) ? h("code", null, frame.text) : frame.text;
  const wrote = frame.value && [frame.action === "read" ? " and sees " : " ", h("span", { class: "wrote" }, frame.value)];
  // Words of ours already say what is done.
  const verb = words && !looksLikeCode(frame.text) ? null : h("span", { class: "verb" }, verbs[frame.action]);
  return h("div", { class: `box col-${frame.lane} who-${frame.lane}` },
    h("span", { class: "who away" }, `Call ${story.lanes[frame.lane]} `),
    verb, wrote, words && h("span", { class: "what" }, words),
    frame.line > 0 && h("span", { class: "place" }, placeOf(frame)),
    frame.stale !== undefined && h("span", { class: "flag" }, `trusts step ${frame.stale + 1}, which no longer holds`),
    undoer >= 0 && h("span", { class: "flag undone-flag" }, `lost: step ${undoer + 1} writes over it`));
};

const stepSpine = (story, frame) => {
  const left = frame.lane === 0;
  const writes = ["write", "delete", "send"].includes(frame.action);
  const touches = writes || frame.action === "read";
  const undone = frame.undoes !== undefined && story.frames[frame.undoes].value;
  return h("div", { class: `spine who-${frame.lane}` },
    touches && frame.holds && h("span", { class: `arrow from-${left ? "left" : "right"} ${writes ? "to-spine" : "to-box"}` }),
    touches && frame.holds && h("span", { class: `value${frame.exact ? "" : " said"}${writes ? " new" : ""}` },
      h("span", { class: "away" }, "It now holds "), frame.holds),
    undone && h("span", { class: "value gone" }, h("s", null, undone), " lost"));
};

const timeline = (story, resource, onStep, verbs = VERBS) => {
  const last = story.frames.length;
  const hasSpine = story.frames.some((frame) => frame.holds);
  const steps = story.frames.map((frame, index) => (frame.lane === undefined
    ? h("li", { class: "step outcome" }, h("span", null, prose(frame.text)))
    : h("li", { class: "step" }, stepBox(story, frame, index, verbs), hasSpine && stepSpine(story, frame))));
  const heads = h("div", { class: "lane-heads", "aria-hidden": "true" },
    story.lanes.map((lane, index) => h("span", { class: `head-lane col-${index} who-${index}` }, `Call ${lane}`)),
    hasSpine && h("span", { class: "mid" }, resource.kind, h("code", null, resource.key)));
  const lanes = `lanes-${story.lanes.length}${hasSpine ? "" : " no-spine"}`;
  const say = h("p", { class: "say", "aria-live": "polite" });
  const where = h("output", null);
  const slider = h("input", { type: "range", min: 1, max: last, step: 1, value: last, "aria-label": "Step of the timeline" });
  const button = (name, label, act, extra) => h("button", { type: "button", class: extra, "aria-label": label, title: label, onclick: act }, icon(name));
  let at = last;
  let timer = null;
  const show = (next, moving) => {
    at = Math.max(1, Math.min(last, next));
    root.classList.toggle("moving", Boolean(moving));
    steps.forEach((step, index) => {
      step.classList.toggle("later", index + 1 > at);
      step.classList.toggle("now", index + 1 === at);
    });
    story.frames.forEach((frame, index) => {
      if (frame.undoes !== undefined) steps[frame.undoes].classList.toggle("undone", index + 1 <= at);
    });
    slider.value = at;
    where.textContent = `step ${at} of ${last}`;
    const text = sentence(story, story.frames[at - 1], verbs);
    slider.setAttribute("aria-valuetext", `step ${at} of ${last}: ${text}`);
    say.textContent = moving === undefined ? "The whole story. Play it, or step through it." : text;
    back.disabled = at === 1;
    forward.disabled = at === last;
    onStep(moving === undefined ? null : story.frames[at - 1]);
  };
  const stop = () => {
    clearTimeout(timer);
    timer = null;
    play.replaceChildren(icon("play"));
    play.setAttribute("aria-label", "Play");
    play.title = "Play";
  };
  const tick = () => {
    if (at >= last) return stop();
    show(at + 1, true);
    timer = setTimeout(tick, STEP_TIME);
  };
  const start = () => {
    play.replaceChildren(icon("pause"));
    play.setAttribute("aria-label", "Pause");
    play.title = "Pause";
    show(at >= last ? 1 : at + 1, true);
    timer = setTimeout(tick, STEP_TIME);
  };
  const go = (next) => { stop(); show(next, true); };
  const toggle = () => (timer ? stop() : start());
  const play = button("play", "Play", toggle, "play");
  const back = button("back", "Step back", () => go(at - 1));
  const forward = button("next", "Step forward", () => go(at + 1));
  slider.addEventListener("input", () => go(Number(slider.value)));
  const root = h("div", { class: "timeline", role: "group", "aria-label": "Timeline of the interleaving", tabindex: 0 },
    h("div", { class: "controls" }, back, play, forward, slider, where),
    h("div", { class: `board ${lanes}` }, heads, h("ol", null, steps)),
    say);
  root.addEventListener("keydown", (event) => {
    const keys = { ArrowRight: () => go(at + 1), ArrowLeft: () => go(at - 1), Home: () => go(1), End: () => go(last), " ": toggle };
    const act = keys[event.key];
    // A button is pressed by space, and the slider has its own arrows.
    const own = event.target === slider ? event.key !== " " : event.target instanceof HTMLButtonElement && event.key === " ";
    if (!act || own || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act();
  });
  show(last);
  return { root, whole: () => { stop(); show(last); } };
};
