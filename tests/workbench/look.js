// What a look at the page finds: its width, text that is too pale to read (WCAG AA), controls without a name,
// and elements that were made from the names in the data.
() => {
    const parse = text => {
        const numbers = text.match(/[\d.]+/g).map(Number);
        return text.startsWith("color(") ? [...numbers.slice(0, 3).map(v => 255 * v), numbers[3] ?? 1]
                                         : [...numbers.slice(0, 3), numbers[3] ?? 1];
    };
    const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
        .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
    const paper = element => {
        for (let at = element; at; at = at.parentElement) {
            const colour = parse(getComputedStyle(at).backgroundColor);
            if (colour[3] === 1) return colour;
        }
        return parse(getComputedStyle(document.documentElement).backgroundColor);
    };
    const pale = [], nameless = [];
    for (const element of document.querySelectorAll("body *")) {
        if (!element.checkVisibility() || element.closest(".unseen, [disabled], [aria-disabled=true], svg")) continue;
        const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
        if (own) {
            const style = getComputedStyle(element);
            const [a, b] = [light(parse(style.color)), light(paper(element))];
            const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && +style.fontWeight >= 700);
            if (contrast < (large ? 3 : 4.5)) pale.push([element.className, element.textContent.slice(0, 30), contrast]);
        }
        if (element.matches("button, a, input, select, canvas[tabindex]")) {
            const name = element.getAttribute("aria-label") || element.textContent.trim() || element.labels?.[0]?.textContent;
            if (!name) nameless.push(element.outerHTML.slice(0, 80));
        }
    }
    return {
        width: document.documentElement.scrollWidth, pale, nameless,
        evil: [...document.querySelectorAll("img[src=x], main script, main b, [style*=url]")].map(found => found.outerHTML),
    };
}
