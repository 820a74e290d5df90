// The points of the plane, painted into a buffer of pixels: 100,000 of them take a few milliseconds, with or
// without a graphics card. Every point is drawn in every frame; far away it is a few pixels, near it is a shape.
import { clusterColour, clusterShape, isDark, outline } from "./palette";

export interface View {
    /** Middle of the canvas in data coordinates, and pixels (of the device) per unit. */
    x: number;
    y: number;
    scale: number;
}

/** The alpha of each pixel of a shape, and of a rim around it that separates neighbours. */
interface Sprite {
    half: number;
    side: number;
    body: Uint8Array;
    rim: Uint8Array;
}

const SAMPLES = 4;

function makeSprite(shape: ReturnType<typeof clusterShape>, radius: number): Sprite {
    const half = Math.ceil(radius * 1.35) + 1;
    const side = 2 * half + 1;
    const paint = (r: number): Uint8Array => {
        const corners = outline(shape, r);
        const alpha = new Uint8Array(side * side);
        for (let py = 0; py < side; py++) {
            for (let px = 0; px < side; px++) {
                let hits = 0;
                for (let sy = 0; sy < SAMPLES; sy++) {
                    for (let sx = 0; sx < SAMPLES; sx++) {
                        const x = px - half + (sx + 0.5) / SAMPLES - 0.5;
                        const y = py - half + (sy + 0.5) / SAMPLES - 0.5;
                        if (inside(corners, x, y)) hits++;
                    }
                }
                alpha[py * side + px] = Math.round((255 * hits) / (SAMPLES * SAMPLES));
            }
        }
        return alpha;
    };
    return { half, side, body: paint(radius), rim: paint(radius + Math.min(1.2, 0.35 * radius)) };
}

/** Whether a point lies within a closed line. */
export function inside(corners: ArrayLike<[number, number]>, x: number, y: number): boolean {
    let within = false;
    for (let k = 0, before = corners.length - 1; k < corners.length; before = k++) {
        const [ax, ay] = corners[k] as [number, number];
        const [bx, by] = corners[before] as [number, number];
        if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) within = !within;
    }
    return within;
}

const parse = (hex: string): [number, number, number] => [
    parseInt(hex.slice(1, 3), 16),
    parseInt(hex.slice(3, 5), 16),
    parseInt(hex.slice(5, 7), 16),
];

/** Rows sorted into square cells, so that a view visits only those near it. */
class Grid {
    readonly cells: number;
    readonly starts: Int32Array;
    readonly rows: Int32Array;

    constructor(
        readonly positions: Float32Array,
        readonly n: number,
    ) {
        this.cells = Math.max(1, Math.min(160, Math.round(Math.sqrt(n / 4))));
        const place = new Int32Array(n);
        const starts = new Int32Array(this.cells * this.cells + 1);
        for (let row = 0; row < n; row++) {
            const cell = this.cell(positions[2 * row] as number) + this.cells * this.cell(positions[2 * row + 1] as number);
            place[row] = cell;
            (starts[cell + 1] as number)++;
        }
        for (let k = 0; k < starts.length - 1; k++) starts[k + 1] = (starts[k + 1] as number) + (starts[k] as number);
        const next = starts.slice();
        this.rows = new Int32Array(n);
        for (let row = 0; row < n; row++) {
            const cell = place[row] as number;
            this.rows[next[cell] as number] = row;
            next[cell] = (next[cell] as number) + 1;
        }
        this.starts = starts;
    }

    cell(value: number): number {
        return Math.min(this.cells - 1, Math.max(0, Math.floor(((value + 1) / 2) * this.cells)));
    }

    /** The cells of a box, as pieces of `rows`: one for each line of cells. */
    *pieces(x0: number, x1: number, y0: number, y1: number): Generator<[number, number]> {
        if (x1 < -1 || x0 > 1 || y1 < -1 || y0 > 1) return;
        const [left, right] = [this.cell(x0), this.cell(x1)];
        for (let line = this.cell(y0); line <= this.cell(y1); line++) {
            yield [this.starts[line * this.cells + left] as number, this.starts[line * this.cells + right + 1] as number];
        }
    }
}

export class Scatter {
    positions: Float32Array = new Float32Array(0);
    labels: Uint16Array = new Uint16Array(0);
    /** Group of each row: 0 none, 1 or 2. */
    groups = new Uint8Array(0);
    /** The cluster to set off from the others, or -1. */
    loud = -1;
    view: View = { x: 0, y: 0, scale: 1 };
    n = 0;
    /** Milliseconds that the last painting took. */
    took = 0;
    private grid = new Grid(new Float32Array(0), 0);
    private pixels: ImageData | null = null;
    private sprites = new Map<string, Sprite>();
    private anyGroup = false;
    private most = 0;

    constructor(readonly canvas: HTMLCanvasElement) {}

    setPositions(positions: Float32Array): void {
        this.positions = positions;
        this.n = positions.length / 2;
        this.grid = new Grid(positions, this.n);
        if (this.groups.length !== this.n) this.groups = new Uint8Array(this.n);
        if (this.labels.length !== this.n) this.setLabels(new Uint16Array(this.n));
    }

    setLabels(labels: Uint16Array): void {
        this.labels = labels;
        this.most = labels.reduce((most, label) => Math.max(most, label), 0);
    }

    setGroup(which: 1 | 2, rows: ArrayLike<number>): void {
        for (let k = 0; k < rows.length; k++) this.groups[rows[k] as number] = which;
        this.anyGroup = this.groups.some((group) => group > 0);
    }

    clearGroup(which: 1 | 2): void {
        for (let row = 0; row < this.n; row++) if (this.groups[row] === which) this.groups[row] = 0;
        this.anyGroup = this.groups.some((group) => group > 0);
    }

    rowsOf(which: 1 | 2): number[] {
        const rows: number[] = [];
        for (let row = 0; row < this.n; row++) if (this.groups[row] === which) rows.push(row);
        return rows;
    }

    /** Show everything. */
    fit(): void {
        const { width, height } = this.canvas;
        this.view = { x: 0, y: 0, scale: 0.46 * Math.min(width, height) };
        // The picture is wide: use the width that the points need, not that of a square.
        let [right, top] = [0.01, 0.01];
        for (let row = 0; row < this.n; row++) {
            right = Math.max(right, Math.abs(this.positions[2 * row] as number));
            top = Math.max(top, Math.abs(this.positions[2 * row + 1] as number));
        }
        this.view.scale = 0.46 * Math.min(width / right, height / top);
    }

    toScreen(x: number, y: number): [number, number] {
        const { view, canvas } = this;
        return [canvas.width / 2 + (x - view.x) * view.scale, canvas.height / 2 - (y - view.y) * view.scale];
    }

    toData(px: number, py: number): [number, number] {
        const { view, canvas } = this;
        return [view.x + (px - canvas.width / 2) / view.scale, view.y - (py - canvas.height / 2) / view.scale];
    }

    at(row: number): [number, number] {
        return this.toScreen(this.positions[2 * row] as number, this.positions[2 * row + 1] as number);
    }

    /** The row nearest to a place of the canvas, at most so many pixels away, or -1. */
    nearest(px: number, py: number, reach: number): number {
        const [x, y] = this.toData(px, py);
        const far = reach / this.view.scale;
        let best = far * far;
        let found = -1;
        for (const [start, end] of this.grid.pieces(x - far, x + far, y - far, y + far)) {
            for (let k = start; k < end; k++) {
                const row = this.grid.rows[k] as number;
                const dx = (this.positions[2 * row] as number) - x;
                const dy = (this.positions[2 * row + 1] as number) - y;
                const distance = dx * dx + dy * dy;
                if (distance <= best) [best, found] = [distance, row];
            }
        }
        return found;
    }

    /** The rows within a closed line of data coordinates. */
    within(line: [number, number][]): number[] {
        let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
        for (const [x, y] of line) {
            [x0, x1] = [Math.min(x0, x), Math.max(x1, x)];
            [y0, y1] = [Math.min(y0, y), Math.max(y1, y)];
        }
        const rows: number[] = [];
        for (const [start, end] of this.grid.pieces(x0, x1, y0, y1)) {
            for (let k = start; k < end; k++) {
                const row = this.grid.rows[k] as number;
                if (inside(line, this.positions[2 * row] as number, this.positions[2 * row + 1] as number)) rows.push(row);
            }
        }
        return rows;
    }

    /** Mean place and size of each cluster. */
    centres(): { cluster: number; size: number; x: number; y: number }[] {
        const sums: { cluster: number; size: number; x: number; y: number }[] = [];
        const n = Math.min(this.n, this.labels.length);
        for (let row = 0; row < n; row++) {
            const cluster = this.labels[row] as number;
            const sum = (sums[cluster] ??= { cluster, size: 0, x: 0, y: 0 });
            sum.size++;
            sum.x += this.positions[2 * row] as number;
            sum.y += this.positions[2 * row + 1] as number;
        }
        return sums.filter(Boolean).map((sum) => ({ ...sum, x: sum.x / sum.size, y: sum.y / sum.size }));
    }

    /** Radius of a point in pixels of the device: the fewer are in view, the larger. */
    radius(pixelRatio: number): number {
        const { width, height } = this.canvas;
        const [x0, y1] = this.toData(0, 0);
        const [x1, y0] = this.toData(width, height);
        let visible = 0;
        for (const [start, end] of this.grid.pieces(x0, x1, y0, y1)) visible += end - start;
        const free = Math.sqrt((0.02 * width * height) / Math.max(1, visible));
        return Math.min(6.5 * pixelRatio, Math.max(1.1 * pixelRatio, 0.95 * free));
    }

    draw(pixelRatio: number): void {
        const { canvas, positions, labels, groups, view } = this;
        const { width, height } = canvas;
        const context = canvas.getContext("2d");
        if (!context || !width || !height) return;
        const began = performance.now();
        if (!this.pixels || this.pixels.width !== width || this.pixels.height !== height) {
            this.pixels = context.createImageData(width, height);
        }
        const dark = isDark();
        const paper = parse(dark ? "#16191e" : "#ffffff");
        const out = new Uint32Array(this.pixels.data.buffer);
        const packed = ([r, g, b]: number[]): number => ((255 << 24) | ((b as number) << 16) | ((g as number) << 8) | (r as number)) >>> 0;
        const fade = (colour: number[]): number[] => colour.map((value, k) => Math.round(0.2 * value + 0.8 * (paper[k] as number)));
        out.fill(packed(paper));

        const { most } = this;
        const plain: number[][] = [];
        for (let cluster = 0; cluster <= most; cluster++) plain.push(parse(clusterColour(cluster, dark)));
        const faded = plain.map(fade);
        const marks = [paper, parse(dark ? "#ffffff" : "#000000"), parse(dark ? "#ff9ad5" : "#c2007a")];

        const radius = this.radius(pixelRatio);
        const tiny = radius < 2.2;
        const sprites: Sprite[] = [];
        if (!tiny) for (let cluster = 0; cluster <= Math.min(most, 6); cluster++) sprites.push(this.sprite(cluster, radius));
        const dot = Math.max(1, Math.round(1.6 * radius));
        const halfDot = dot >> 1;
        const [x0, y1] = this.toData(-2 * radius, -2 * radius);
        const [x1, y0] = this.toData(width + 2 * radius, height + 2 * radius);
        const midX = width / 2 - view.x * view.scale;
        const midY = height / 2 + view.y * view.scale;
        const selecting = this.anyGroup || this.loud >= 0;
        const packedPlain = Uint32Array.from(plain, packed);
        const packedFaded = Uint32Array.from(faded, packed);
        const packedMarks = Uint32Array.from(marks, packed);

        // Points that are set off come last, on top of the others.
        for (let pass = selecting ? 0 : 1; pass < 2; pass++) {
            for (const [start, end] of this.grid.pieces(x0, x1, y0, y1)) {
                for (let k = start; k < end; k++) {
                    const row = this.grid.rows[k] as number;
                    const cluster = labels[row] as number;
                    const group = groups[row] as number;
                    const loud = !selecting || group > 0 || (!this.anyGroup && cluster === this.loud);
                    if (loud !== (pass === 1)) continue;
                    const px = Math.round(midX + (positions[2 * row] as number) * view.scale);
                    const py = Math.round(midY - (positions[2 * row + 1] as number) * view.scale);
                    if (tiny) {
                        const colour = (group ? packedMarks[group] : loud ? packedPlain[cluster] : packedFaded[cluster]) as number;
                        const left = Math.max(0, px - halfDot);
                        const right = Math.min(width, px - halfDot + dot);
                        const bottom = Math.min(height, py - halfDot + dot);
                        for (let y = Math.max(0, py - halfDot); y < bottom; y++) {
                            for (let x = left, place = y * width + left; x < right; x++, place++) out[place] = colour;
                        }
                    } else {
                        const colour = (group ? marks[group] : loud ? plain[cluster] : faded[cluster]) as number[];
                        stamp(out, width, height, px, py, sprites[cluster % 7] as Sprite, colour, paper);
                    }
                }
            }
        }
        context.putImageData(this.pixels, 0, 0);
        this.took = performance.now() - began;
    }

    private sprite(cluster: number, radius: number): Sprite {
        const shape = clusterShape(cluster);
        const size = Math.round(4 * radius) / 4;
        const key = `${shape} ${size}`;
        let sprite = this.sprites.get(key);
        if (!sprite) {
            if (this.sprites.size > 200) this.sprites.clear();
            sprite = makeSprite(shape, size);
            this.sprites.set(key, sprite);
        }
        return sprite;
    }
}

/** Blend a shape and its rim into the picture. */
function stamp(out: Uint32Array, width: number, height: number, px: number, py: number, sprite: Sprite, colour: number[], paper: number[]): void {
    const { half, side, body, rim } = sprite;
    const [r, g, b] = colour as [number, number, number];
    const [pr, pg, pb] = paper as [number, number, number];
    const fromX = Math.max(0, half - px);
    const toX = Math.min(side, width - px + half);
    const toY = Math.min(side, height - py + half);
    for (let sy = Math.max(0, half - py); sy < toY; sy++) {
        let place = (py - half + sy) * width + px - half + fromX;
        for (let sx = fromX, at = sy * side + fromX; sx < toX; sx++, at++, place++) {
            const outer = rim[at] as number;
            if (!outer) continue;
            const inner = body[at] as number;
            if (inner === 255) {
                out[place] = ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
                continue;
            }
            const old = out[place] as number;
            const paperPart = outer - (outer * inner) / 255;
            const rest = 255 - inner - paperPart;
            const mix = (value: number, background: number, was: number): number =>
                ((value * inner + background * paperPart + was * rest) / 255) & 255;
            out[place] =
                ((255 << 24) |
                    (mix(b, pb, (old >> 16) & 255) << 16) |
                    (mix(g, pg, (old >> 8) & 255) << 8) |
                    mix(r, pr, old & 255)) >>>
                0;
        }
    }
}
