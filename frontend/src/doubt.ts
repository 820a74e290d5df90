// Room 3: answers that contradict the others, and answers that cannot all be right.
import { api, type Answer, type Contradiction } from "./api";
import { retract, SIGNS } from "./answer";
import { announce, byId, count, el, fill, percent } from "./dom";
import { comparison } from "./record";
import type { Room } from "./room";
import { showRows } from "./see";
import { attempt } from "./store";

const chains = el("div", { class: "stack" });
const list = el("div", { class: "stack" });
const root = el(
    "section",
    { class: "room doubt", "aria-labelledby": "doubt-title" },
    el("h1", { id: "doubt-title", tabindex: "-1" }, "Doubt"),
    el("p", { class: "lead" }, "These answers may be wrong. If you take one back, the clusters are computed again."),
    chains,
    list,
);
let seen = false;
let turn = 0;

const who = (entry: Answer): string => (entry.source ? `${entry.source} said` : "You said");
const WORDS = { same: "are the same", different: "are different", unsure: "are unclear" };

const badge = (n: number): HTMLElement => el("span", { class: n ? "badge" : "badge zero" }, String(n));

async function takeBack(entry: Answer): Promise<void> {
    if (await retract(entry)) {
        await draw();
        byId("doubt-title").focus();
    }
}

function takeBackButton(entry: Answer, first: boolean): HTMLElement {
    return el(
        "button",
        {
            type: "button",
            class: first ? "primary small" : "small",
            "aria-label": `Take back: ${entry.ids[0]} and ${entry.ids[1]} ${WORDS[entry.says]}`,
            "data-answer": entry.answer,
            click: () => void takeBack(entry),
        },
        "Take back",
    );
}

function chain(found: Contradiction): HTMLElement {
    const worst = Math.max(...found.answers.map((entry) => entry.wrong ?? 0));
    return el(
        "article",
        { class: "card chain" },
        el("h3", {}, found.text),
        el(
            "ol",
            {},
            ...found.answers.map((entry) =>
                el(
                    "li",
                    {},
                    el("span", { class: `sign ${entry.says}`, "aria-hidden": "true" }, SIGNS[entry.says]),
                    el(
                        "span",
                        { class: "ids" },
                        el("span", {}, `${who(entry)}: ${entry.ids[0]} and ${entry.ids[1]} ${WORDS[entry.says]}`),
                        entry.wrong !== null && el("span", { class: "muted by" }, `${percent(entry.wrong)} likely wrong`),
                    ),
                    entry.wrong !== null && entry.wrong === worst && worst > 0 && el("span", { class: "tag warn" }, "most doubtful"),
                    takeBackButton(entry, entry.wrong === worst),
                ),
            ),
        ),
        el(
            "button",
            { type: "button", class: "quiet small", click: () => showRows([...new Set(found.answers.flatMap((entry) => [entry.i, entry.j]))]) },
            "Show these rows in the plane",
        ),
    );
}

function doubt(entry: Answer): HTMLElement {
    const [a, b] = entry.records ?? [];
    return el(
        "article",
        { class: "card doubtful" },
        el(
            "div",
            { class: "doubt-head" },
            el("span", { class: `sign ${entry.says}`, "aria-hidden": "true" }, SIGNS[entry.says]),
            el("h3", {}, `${who(entry)}: ${entry.ids[0]} and ${entry.ids[1]} ${WORDS[entry.says]}`),
            el("span", { class: "tag warn" }, `${percent(entry.wrong ?? 0)} likely wrong`),
        ),
        a && b && comparison([a, b], entry.differs ?? [], 0, true),
        el(
            "div",
            { class: "row-of-buttons" },
            takeBackButton(entry, true),
            el("button", { type: "button", class: "quiet small", click: () => showRows([entry.i, entry.j]) }, "Show in the plane"),
        ),
    );
}

async function draw(): Promise<void> {
    const mine = ++turn;
    const found = await attempt(async () => Promise.all([api.contradictions(), api.doubts()]));
    if (!found || mine !== turn) return;
    const [contradictions, doubts] = found;
    fill(
        chains,
        el("h2", {}, "Answers that cannot all be right", badge(contradictions.length)),
        ...contradictions.map(chain),
        contradictions.length === 0 && el("p", { class: "card muted" }, "None: your answers agree with each other."),
    );
    fill(
        list,
        el("h2", {}, "Answers that contradict the others", badge(doubts.length)),
        ...doubts.map(doubt),
        doubts.length === 0 && el("p", { class: "card muted" }, "None so far. Answers are compared with the data and with each other."),
    );
    announce(`${count(contradictions.length, "contradiction")}, ${count(doubts.length, "doubtful answer")}`);
}

export const doubtRoom: Room = {
    name: "doubt",
    root,
    show() {
        seen = true;
        void draw();
    },
    hide() {
        seen = false;
    },
    update(now, before) {
        if (seen && (!before || before.version !== now.version || before.model_version !== now.model_version)) void draw();
    },
};
