// The state of the session as the server tells it. The page keeps no state of its own that a reload could lose.
import { api, Away, Refused, type State } from "./api";
import { byId, memory, notice } from "./dom";

type Listener = (state: State, before: State | null) => void;

const listeners: Listener[] = [];
let current: State | null = null;
let timer = 0;
let away = false;
let tickets = 0;
let taken = 0;

export const state = (): State | null => current;

export function onState(listener: Listener): void {
    listeners.push(listener);
}

/** Drawn before a request; `take` drops a reply to a request that began before the last one taken. */
export const ticket = (): number => ++tickets;

export function take(next: State, drawn: number): void {
    if (drawn < taken) return;
    taken = drawn;
    const before = current;
    current = next;
    for (const listener of listeners) listener(next, before);
}

/** The name of who answers, as typed into the head of the page. */
export function annotator(): string | null {
    return (memory.get("annotator") ?? "").trim() || null;
}

function setAway(now: boolean, text = ""): void {
    const banner = byId("away");
    if (now) banner.textContent = text;
    banner.hidden = !now;
    away = now;
}

/** Run a request and show what went wrong. Returns null then. */
export async function attempt<T>(work: () => Promise<T>): Promise<T | null> {
    try {
        const result = await work();
        if (away) void poll();
        return result;
    } catch (error) {
        report(error);
        return null;
    }
}

function report(error: unknown): void {
    if (error instanceof Away) {
        const kept = current?.session ? " What you answered so far is on disk." : "";
        setAway(true, `${error.message}${kept} Trying again …`);
        schedule(1000);
    } else if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
        setAway(true, "This page is not signed in any more. Open the address that the terminal shows.");
    } else if (error instanceof Error) {
        notice(error.message);
    } else {
        throw error;
    }
}

function schedule(delay: number): void {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => void poll(), delay);
}

/** Ask for the state, and again later: soon while the clusters are updated, seldom in a hidden tab. */
export async function poll(): Promise<void> {
    window.clearTimeout(timer);
    const drawn = ticket();
    try {
        const next = await api.state();
        // A server that was away may be another one now: everything is fetched anew.
        if (away) current = null;
        setAway(false);
        take(next, drawn);
    } catch (error) {
        report(error);
    }
    schedule(document.hidden ? 15000 : away ? 1500 : current?.refreshing ? 500 : 2500);
}

document.addEventListener("visibilitychange", () => {
    if (!document.hidden) void poll();
});
