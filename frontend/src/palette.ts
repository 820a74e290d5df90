// Colours and shapes of clusters. Ten colours that colour-blind eyes tell apart, seven shapes: no two of the
// first seventy clusters look alike. Each colour has a contrast of at least 3 with the background.
import { shell } from "./dom";

const LIGHT = [
    "#0072b2", "#c97700", "#008a64", "#b8508c", "#222222", "#2b8fd0", "#d1495b", "#7a3db8", "#7a4a12", "#8a7d00",
];
const DARK = [
    "#4da3e0", "#f0a830", "#1fc493", "#e79bc6", "#f2f2f2", "#93d5ff", "#ff7f6b", "#bd94ff", "#cf9a62", "#f0e442",
];

export type Shape = "circle" | "triangle" | "square" | "diamond" | "down" | "plus" | "star";
const SHAPES: Shape[] = ["circle", "triangle", "square", "diamond", "down", "plus", "star"];

export function isDark(): boolean {
    const theme = shell.dataset["theme"];
    return theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
}

export function clusterColour(cluster: number, dark = isDark()): string {
    const colours = dark ? DARK : LIGHT;
    return colours[cluster % colours.length] as string;
}

export const clusterShape = (cluster: number): Shape => SHAPES[cluster % SHAPES.length] as Shape;

/** The outline of a shape around the origin; r is about its radius. */
export function outline(shape: Shape, r: number): [number, number][] {
    const turn = (corners: number, start: number, inner = 1): [number, number][] =>
        Array.from({ length: corners }, (_, k) => {
            const angle = start + (2 * Math.PI * k) / corners;
            const radius = k % 2 ? r * inner : r;
            return [radius * Math.cos(angle), radius * Math.sin(angle)];
        });
    switch (shape) {
        case "circle":
            return turn(20, 0).map(([x, y]) => [0.95 * x, 0.95 * y]);
        case "triangle":
            return turn(3, -Math.PI / 2).map(([x, y]) => [1.15 * x, 1.15 * y + 0.2 * r]);
        case "down":
            return turn(3, Math.PI / 2).map(([x, y]) => [1.15 * x, 1.15 * y - 0.2 * r]);
        case "square":
            return turn(4, Math.PI / 4).map(([x, y]) => [1.15 * x, 1.15 * y]);
        case "diamond":
            return turn(4, 0).map(([x, y]) => [1.1 * x, 1.1 * y]);
        case "star":
            return turn(10, -Math.PI / 2, 0.45).map(([x, y]) => [1.2 * x, 1.2 * y]);
        case "plus": {
            const a = 0.36 * r;
            return [[-a, -r], [a, -r], [a, -a], [r, -a], [r, a], [a, a], [a, r], [-a, r], [-a, a], [-r, a], [-r, -a], [-a, -a]];
        }
    }
}

/** A small drawing of a cluster's colour and shape. */
export function swatch(cluster: number): SVGSVGElement {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "-8 -8 16 16");
    svg.setAttribute("class", "swatch");
    svg.setAttribute("aria-hidden", "true");
    const polygon = document.createElementNS("http://www.w3.org/2000/svg", "polygon");
    polygon.setAttribute("points", outline(clusterShape(cluster), 6).map((point) => point.join(",")).join(" "));
    polygon.setAttribute("fill", clusterColour(cluster));
    svg.append(polygon);
    return svg;
}
