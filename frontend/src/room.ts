import type { State } from "./api";

/** One room of the page. `key` tells whether it used the key. */
export interface Room {
    name: string;
    root: HTMLElement;
    show(): void;
    hide(): void;
    update(now: State, before: State | null): void;
    key?(event: KeyboardEvent): boolean;
}

/** Go to a room by its name; how depends on where the page is shown. */
export const walk = { to: (_name: string): void => {} };
