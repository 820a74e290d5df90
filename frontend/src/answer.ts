// Room 1: two records, one answer, the next two.
import { api, type Answer, type Done, type Question, type Reply, type Says, type State } from "./api";
import { active, announce, el, fill, icon, memory, notice, percent, pressed } from "./dom";
import { comparison } from "./record";
import type { Room } from "./room";
import { annotator, attempt, poll, state, take, ticket } from "./store";

/** What an answer is worth; null: as much as other answers turn out to be worth. */
const LEVELS: { name: string; certainty: number | null; hint: string }[] = [
    { name: "a guess", certainty: 0.6, hint: "60 %" },
    { name: "rather", certainty: 0.8, hint: "80 %" },
    { name: "as usual", certainty: null, hint: "learned from all answers" },
    { name: "sure", certainty: 0.97, hint: "97 %" },
    { name: "a fact", certainty: 1, hint: "never overruled" },
];
const USUAL = 2;
/** Answers in the list of the last ones. */
const SHOWN = 8;
const WORDS: Record<Says, string> = { same: "Same", different: "Different", unsure: "Not sure" };
export const SIGNS: Record<Says, string> = { same: "=", different: "≠", unsure: "?" };
/** Milliseconds in which no answer is taken after the question changed without one. */
const PAUSE = 500;

const root = el("section", { class: "room answer", "aria-labelledby": "answer-title" });
const title = el("h1", { id: "answer-title", tabindex: "-1" }, "Do these two belong together?");
const facts = el("p", { class: "facts" });
const pair = el("div", { class: "pair-box" });
const buttons = el("div", { class: "says", role: "group", "aria-label": "Your answer" });
const scale = el("div", { class: "scale", role: "radiogroup", "aria-label": "How sure are you?" });
const undoButton = el(
    "button",
    { type: "button", class: "quiet undo", "aria-keyshortcuts": "z", click: () => void undo() },
    icon("M9 14 4 9l5-5", "M4 9h10a6 6 0 0 1 0 12h-3"),
    "Undo",
    el("kbd", {}, "Z"),
);
const actions = el("div", { class: "actions" }, buttons, el("div", { class: "second-line" }, el("span", { class: "muted ask-sure", "aria-hidden": "true" }, "How sure?"), scale, undoButton));
const card = el("div", { class: "card question" }, el("div", { class: "question-head" }, title, facts), pair, actions);
const progress = el("section", { class: "card", "aria-label": "How good are the clusters?" });
const last = el("section", { class: "card", "aria-label": "Last answers" });
root.append(card, el("aside", {}, progress, last));

let question: Question | Done | null = null;
let shownAt = "";
let asked = 0;
let busy = false;
let deaf = 0;
let deafTimer = 0;
let level = USUAL;
let seen = false;

for (const says of ["same", "unsure", "different"] as Says[]) {
    const key = says.charAt(0);
    buttons.append(
        el(
            "button",
            { type: "button", class: `say ${says}`, "data-says": says, "aria-keyshortcuts": key, click: () => void answer(says) },
            el("span", { class: "sign", "aria-hidden": "true" }, SIGNS[says]),
            el("span", {}, WORDS[says]),
            el("kbd", {}, key.toUpperCase()),
        ),
    );
}
LEVELS.forEach((entry, k) => {
    const radio = el("input", { type: "radio", name: "level", value: k, change: () => setLevel(k) });
    scale.append(
        el("label", { title: entry.hint }, radio, el("span", {}, el("kbd", {}, String(k + 1)), entry.name)),
    );
});

/** The answers in figures: a change that this page did not make comes from another tab. */
const told = (now: State | null): string => (now ? `${now.counts.same} ${now.counts.different} ${now.counts.unsure}` : "");

function setLevel(next: number): void {
    level = Math.min(LEVELS.length - 1, Math.max(0, next));
    const inputs = scale.querySelectorAll("input");
    inputs.forEach((input, k) => (input.checked = k === level));
    if (scale.contains(active())) inputs[level]?.focus();
}

function setBusy(now: boolean): void {
    busy = now;
    const pausing = performance.now() < deaf;
    root.classList.toggle("busy", now || pausing);
    const idle = !now && !pausing && question !== null && !question.done;
    buttons.querySelectorAll("button").forEach((button) => button.setAttribute("aria-disabled", String(!idle)));
    undoButton.setAttribute("aria-disabled", String(now || !state()?.can_undo));
}

function show(next: Question | Done, announced: string): void {
    question = next;
    shownAt = told(state());
    setLevel(USUAL);
    if (next.done) {
        title.textContent = state()?.refreshing ? "One moment …" : "Nothing is left to ask";
        fill(facts, `${next.reason.charAt(0).toUpperCase()}${next.reason.slice(1)}.`);
        fill(pair);
        root.dataset["pair"] = "";
        actions.classList.add("done");
        announce(next.reason);
    } else {
        title.textContent = "Do these two belong together?";
        const [a, b] = next.records;
        fill(
            facts,
            el("span", {}, `Question ${((state()?.n_answers ?? 0) + 1).toLocaleString("en")}`),
            el("span", {}, `${next.queue.toLocaleString("en")} more ready`),
            next.reask && el("span", { class: "tag warn" }, "Asked again: an earlier answer is in doubt"),
            next.chance !== null && guess(next.chance),
        );
        fill(pair, comparison(next.records, next.differs, next.hidden));
        root.dataset["pair"] = `${next.i}-${next.j}`;
        actions.classList.remove("done");
        announce(`${announced} ${a.id} and ${b.id}: do they belong together?`.trim());
    }
    setBusy(false);
}

/** What the model thinks: hidden at first, because it would sway the answer. */
function guess(chance: number): HTMLElement {
    const details = el("details", { class: "guess" }, el("summary", {}, "What does the model think?"), `${percent(chance)} same`);
    details.open = memory.get("guess") === "1";
    details.addEventListener("toggle", () => memory.set("guess", details.open ? "1" : "0"));
    return details;
}

async function send(work: () => Promise<Reply>, said: string): Promise<void> {
    setBusy(true);
    asked += 1;
    const drawn = ticket();
    const reply = await attempt(work);
    if (reply) {
        take(reply.state, drawn);
        show(reply.question, said);
        void poll();
    }
    setBusy(false);
}

async function answer(says: Says): Promise<void> {
    if (busy || !question || question.done || performance.now() < deaf) return;
    const { i, j } = question;
    const certainty = LEVELS[level]?.certainty ?? null;
    await send(() => api.answer(i, j, says, says === "unsure" ? null : certainty, annotator()), `${WORDS[says]}.`);
}

async function undo(): Promise<void> {
    if (busy || !state()?.can_undo) return;
    await send(() => api.undo(annotator()), "Taken back.");
}

/** Take an answer back by its place; used by other rooms, too. */
export async function retract(entry: Answer): Promise<boolean> {
    if (busy) return false;
    asked += 1;
    const drawn = ticket();
    const reply = await attempt(() => api.retract(entry, annotator()));
    if (!reply) return false;
    take(reply.state, drawn);
    show(reply.question, "Taken back.");
    notice(`Taken back: ${entry.ids[0]} and ${entry.ids[1]} (${WORDS[entry.says].toLowerCase()}).`, "good");
    return true;
}

/** Somebody else answers from now on, and has a question of their own. */
export async function renamed(): Promise<void> {
    asked += 1;
    setBusy(true);
    const next = await attempt(() => api.question(annotator()));
    if (next) show(next, "");
    setBusy(false);
}

/** Ask for the question; it is the same as before unless another tab answered. */
async function fetchQuestion(): Promise<void> {
    const mine = ++asked;
    const next = await attempt(() => api.question(annotator()));
    if (!next || busy || mine !== asked) return;
    const before = question;
    shownAt = told(state());
    if (before && !before.done && !next.done && before.i === next.i && before.j === next.j) return;
    // The question changes under the eyes of the reader, who may be about to press a key.
    if (before) {
        deaf = performance.now() + PAUSE;
        window.clearTimeout(deafTimer);
        deafTimer = window.setTimeout(() => setBusy(busy), PAUSE + 1);
    }
    show(next, before ? "The question has changed." : "");
}

function drawProgress(now: State): void {
    const { quality } = now;
    const parts: (Node | null)[] = [el("h2", {}, "How good are the clusters?")];
    if (quality) {
        const text = `${percent(quality.value)} of the pairs of rows are right; between ${percent(quality.low)} and ${percent(quality.high)} with 90 % certainty`;
        const band = el("span", { class: "band" });
        band.style.left = `${100 * quality.low}%`;
        band.style.width = `${Math.max(0.8, 100 * (quality.high - quality.low))}%`;
        const mark = el("span", { class: "mark" });
        mark.style.left = `${100 * quality.value}%`;
        parts.push(
            el("p", { class: "big" }, percent(quality.value), el("small", {}, "of pairs right, estimated")),
            el("div", { class: "quality", role: "img", "aria-label": text }, band, mark),
            el("p", { class: "ends", "aria-hidden": "true" }, el("span", {}, `90 % interval: ${percent(quality.low)} to ${percent(quality.high)}`)),
        );
    } else {
        parts.push(el("p", { class: "muted" }, "The estimate comes with the first clusters."));
    }
    if (now.stop?.stop) {
        parts.push(el("p", { class: "hint" }, el("strong", {}, "You may stop: "), `${now.stop.reason}.`));
    }
    const { same, different, unsure } = now.counts;
    parts.push(
        el(
            "dl",
            { class: "figures" },
            el("div", {}, el("dt", {}, "clusters"), el("dd", {}, now.n_clusters.toLocaleString("en"))),
            el("div", {}, el("dt", {}, "answers"), el("dd", {}, now.n_answers.toLocaleString("en"))),
            el("div", {}, el("dt", {}, "rows"), el("dd", {}, now.n_rows.toLocaleString("en"))),
        ),
        el(
            "p",
            { class: "muted split" },
            `${same} same, ${different} different, ${unsure} not sure`,
            now.error_rate !== null && now.n_answers > 0 ? el("span", {}, ` · about ${percent(now.error_rate)} wrong`) : null,
        ),
        el(
            "p",
            { class: "muted working", "data-refreshing": String(now.refreshing) },
            el("span", { class: "pulse", "aria-hidden": "true" }),
            now.refreshing ? "Updating the clusters; you can go on." : "The clusters are up to date.",
        ),
        now.trouble ? el("p", { class: "tag warn block" }, now.trouble) : null,
    );
    fill(progress, ...parts);
}

async function drawLast(): Promise<void> {
    const recent = await attempt(() => api.answers(Math.max(0, (state()?.n_answers ?? 0) - SHOWN)));
    if (!recent) return;
    const list = el("ul", { class: "answers" });
    for (const entry of recent.slice(-SHOWN).reverse()) list.append(answerLine(entry));
    fill(
        last,
        el("h2", {}, "Last answers"),
        recent.length ? list : el("p", { class: "muted" }, "Your answers appear here. Each can be taken back."),
    );
}

/** One answer with a button that takes it back. */
export function answerLine(entry: Answer): HTMLElement {
    const doubtful = entry.wrong !== null && entry.wrong >= 0.5;
    return el(
        "li",
        {},
        el("span", { class: `sign ${entry.says}`, title: WORDS[entry.says] }, SIGNS[entry.says], el("span", { class: "unseen" }, WORDS[entry.says])),
        el(
            "span",
            { class: "ids" },
            el("span", {}, entry.ids[0], el("span", { class: "muted", "aria-hidden": "true" }, " · "), entry.ids[1]),
            entry.source && el("span", { class: "muted by" }, entry.source),
        ),
        doubtful && el("span", { class: "tag warn" }, "in doubt"),
        el(
            "button",
            { type: "button", class: "quiet small", "aria-label": `Take back: ${entry.ids[0]} and ${entry.ids[1]}, ${WORDS[entry.says]}`, click: () => void retract(entry) },
            "Take back",
        ),
    );
}

export const answerRoom: Room = {
    name: "answer",
    root,
    show() {
        seen = true;
        setLevel(level);
        const now = state();
        if (now) drawProgress(now);
        void drawLast();
        void fetchQuestion();
    },
    hide() {
        seen = false;
    },
    update(now, before) {
        drawProgress(now);
        if (!seen) return;
        if (!before || before.version !== now.version || before.model_version !== now.model_version) void drawLast();
        const waits = question?.done && before?.version !== now.version;
        if (!busy && (told(now) !== shownAt || !before || waits)) void fetchQuestion();
    },
    key(event) {
        const key = pressed(event);
        if (key >= "1" && key <= String(LEVELS.length)) setLevel(Number(key) - 1);
        else if (key === "ArrowLeft") setLevel(level - 1);
        else if (key === "ArrowRight") setLevel(level + 1);
        else if (event.repeat) return false;
        else if (key === "s") void answer("same");
        else if (key === "d") void answer("different");
        else if (key === "u") void answer("unsure");
        else if (key === "z") void undo();
        else return false;
        return true;
    },
};

