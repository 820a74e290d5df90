// The frame of the page: rooms, keys, the name of who answers.
import { answerRoom, fetchQuestion } from "./answer";
import { classesRoom } from "./classes";
import { doubtRoom } from "./doubt";
import { byId, el, fill, icon, memory, typing } from "./dom";
import { applyTheme, keepRoom, keysWanted } from "./keep";
import type { Room } from "./room";
import { seeRoom } from "./see";
import { onState, poll } from "./store";

const ROOMS: { room: Room; text: string; drawing: string[] }[] = [
    { room: answerRoom, text: "Answer", drawing: ["M3 5h7v14H3z", "M14 5h7v14h-7z"] },
    { room: seeRoom, text: "See", drawing: ["M6 8h.01", "M11 5h.01", "M17 9h.01", "M8 14h.01", "M14 16h.01", "M19 18h.01", "M5 19h.01"] },
    { room: doubtRoom, text: "Doubt", drawing: ["M12 4 2.5 20h19z", "M12 10v4", "M12 17h.01"] },
    { room: classesRoom, text: "Classes", drawing: ["M4 4h16v16H4z", "M4 12h16", "M12 4v16"] },
    { room: keepRoom, text: "Keep", drawing: ["M12 4v11", "M7 11l5 5 5-5", "M4 20h16"] },
];

const nav = byId("rooms");
const main = byId("main");
const badges = new Map<string, HTMLElement>();
let here: Room = answerRoom;

for (const [k, { room, text, drawing }] of ROOMS.entries()) {
    const badge = el("span", { class: "badge", hidden: true });
    badges.set(room.name, badge);
    nav.append(
        el("a", { href: `#${room.name}`, "data-room": room.name, "aria-keyshortcuts": `Alt+${k + 1}` }, icon(...drawing), el("span", {}, text), badge),
    );
    room.root.hidden = true;
    main.append(room.root);
}

function go(focus: boolean): void {
    const wanted = ROOMS.find(({ room }) => `#${room.name}` === location.hash)?.room ?? answerRoom;
    here.hide();
    here.root.hidden = true;
    here = wanted;
    here.root.hidden = false;
    for (const link of nav.querySelectorAll("a")) {
        if (link.dataset["room"] === here.name) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
    }
    const heading = here.root.querySelector<HTMLElement>("h1");
    document.title = `${ROOMS.find(({ room }) => room === here)?.text ?? ""} · linkwise`;
    here.show();
    if (focus) {
        window.scrollTo(0, 0);
        heading?.focus({ preventScroll: true });
    }
}

const name = byId("annotator") as HTMLInputElement;
name.value = memory.get("annotator") ?? "";
name.addEventListener("input", () => memory.set("annotator", name.value));
// Each person has a question of their own.
name.addEventListener("change", () => void fetchQuestion());
name.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === "Escape") name.blur();
});
window.addEventListener("storage", (event) => {
    if (event.key === "linkwise.annotator") name.value = event.newValue ?? "";
    if (event.key === "linkwise.theme") applyTheme();
});

document.addEventListener("keydown", (event) => {
    if (event.altKey && !event.ctrlKey && !event.metaKey) {
        const room = ROOMS[Number(event.key) - 1]?.room;
        if (room) {
            event.preventDefault();
            location.hash = room.name;
        }
        return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (!keysWanted() && event.key.length === 1) return;
    if (event.key === "Enter" && event.target instanceof HTMLElement && event.target.matches("button, a, summary")) return;
    if (here.key?.(event)) event.preventDefault();
});
window.addEventListener("hashchange", () => go(true));
document.querySelector(".skip")?.addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
});

onState((now) => {
    byId("data-title").textContent = now.title;
    fill(byId("annotators"), ...now.annotators.map((known) => el("option", { value: known })));
    const doubts = badges.get("doubt");
    const n = now.n_doubts + now.n_contradictions;
    if (doubts) {
        doubts.textContent = String(n);
        doubts.hidden = n === 0;
        doubts.setAttribute("aria-label", `${n} to look at`);
    }
});
for (const { room } of ROOMS) onState((now, before) => room.update(now, before));

applyTheme();
void poll().then(() => go(false));
