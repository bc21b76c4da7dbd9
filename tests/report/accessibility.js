// What a page does wrong for its readers: one line per fault, and nothing if there is none.
// Run in the page itself, once per width and colour scheme: sizes and colours are those on the screen.
const faults = [];
const all = (css, within = document) => [...within.querySelectorAll(css)];
const named = (element) => element.tagName.toLowerCase() + (element.id ? "#" + element.id : "") +
  " “" + (element.textContent || "").trim().slice(0, 40) + "”";
const shown = (element) => element.checkVisibility({ contentVisibilityAuto: true, visibilityProperty: true }) &&
  element.getClientRects().length > 0;
const said = (ids) => (ids || "").split(/\s+/).filter(Boolean)
  .map((id) => document.getElementById(id)?.textContent ?? "").join(" ").trim();
const nameOf = (element) => said(element.getAttribute("aria-labelledby")) ||
  (element.getAttribute("aria-label") || "").trim();

// The page as a whole.
if (!document.documentElement.lang) faults.push("the page does not say its language");
if (!document.title.trim()) faults.push("the page has no title");
for (const [css, many] of [["h1", 1], ["main", 1], ["body > header", 1], ["body > footer", 1], ["nav", 1]]) {
  if (all(css).length !== many) faults.push(`${all(css).length} times ${css}, not ${many}`);
}
all("nav, [role=region]").filter((part) => !nameOf(part)).forEach((part) => faults.push("no name: " + named(part)));
const labels = all("section, [role=region]").filter(shown).map(nameOf).filter(Boolean);
labels.filter((label, place) => labels.indexOf(label) !== place)
  .forEach((label) => faults.push("two parts are called " + label));
for (const child of document.body.children) {
  if (!child.matches("header, main, footer, nav, .skip") && shown(child)) faults.push("outside: " + named(child));
}

// Headings go down one step at a time.
let level = 0;
for (const heading of all("h1, h2, h3, h4, h5, h6")) {
  const next = Number(heading.tagName[1]);
  if (next > level + 1) faults.push(`heading after level ${level}: ${named(heading)}`);
  if (!heading.textContent.trim()) faults.push("an empty heading");
  level = next;
}

// Ids and what refers to them.
const ids = all("[id]").map((element) => element.id);
ids.filter((id, place) => ids.indexOf(id) !== place).forEach((id) => faults.push("twice the id " + id));
for (const attribute of ["aria-labelledby", "aria-describedby"]) {
  for (const element of all(`[${attribute}]`)) {
    if (!said(element.getAttribute(attribute))) faults.push(`${attribute} of nothing: ${named(element)}`);
  }
}
all('a[href^="#"]').filter((link) => !document.getElementById(link.hash.slice(1)))
  .forEach((link) => faults.push("a link to nothing: " + link.hash));

// Pictures, links, tables, lists.
for (const picture of all("img, svg")) {
  const name = picture.tagName === "IMG" ? picture.getAttribute("alt") : nameOf(picture);
  const inside = picture.parentElement.closest("svg");
  if (!inside && !name) {
    faults.push("a picture without words: " + named(picture));
  }
  if (!inside && picture.tagName === "svg" && picture.getAttribute("role") !== "img") {
    faults.push("a picture that is none to a screen reader: " + named(picture));
  }
}
all("figure").filter((figure) => !figure.querySelector("figcaption")?.textContent.trim())
  .forEach((figure) => faults.push("a figure without a caption: " + named(figure)));
all("a, summary, button").filter((link) => !link.textContent.trim() && !nameOf(link))
  .forEach((link) => faults.push("no text: " + named(link)));
all("[tabindex]").filter((element) => element.tabIndex > 0)
  .forEach((element) => faults.push("jumps the queue of the tab key: " + named(element)));
for (const table of all("table")) {
  if (!table.caption?.textContent.trim()) faults.push("a table without a caption: " + named(table));
  all("th", table).filter((head) => !["row", "col"].includes(head.scope) || !head.textContent.trim())
    .forEach((head) => faults.push("a head without a scope or words: " + named(head)));
  all("tbody tr", table).filter((row) => all("th[scope=row]", row).length !== 1)
    .forEach((row) => faults.push("a row without one head: " + named(row)));
  const widths = new Set(all("tr", table).map((row) => row.cells.length));
  if (widths.size > 1) faults.push("a table with ragged rows: " + named(table));
}
for (const list of all("ul, ol")) {
  if ([...list.children].some((child) => child.tagName !== "LI")) faults.push("a list of something else: " + named(list));
}

// Whatever scrolls can be reached and scrolled with the keyboard.
for (const element of all("body *")) {
  const scrolls = ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
  if (scrolls && element.scrollWidth > element.clientWidth && (element.tabIndex < 0 || !nameOf(element))) {
    faults.push("scrolls, but not with the keyboard: " + named(element));
  }
}

// Nothing is wider than the screen, no picture's words are cut, and small screens can be read and touched.
const { scrollWidth: wide, clientWidth: screenful } = document.documentElement;
if (wide > screenful) faults.push(`the page is ${wide} wide on a screen of ${screenful}`);
for (const picture of all("svg").filter(shown)) {
  const frame = picture.getBoundingClientRect();
  const words = all("text", picture).filter((word) => word.textContent.trim());
  const boxes = words.map((word) => word.getBoundingClientRect());
  boxes.forEach((box, place) => {
    const word = words[place].textContent.trim();
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 ||
        box.bottom > frame.bottom + 1) {
      faults.push("cut off in a picture: " + word);
    }
    const size = parseFloat(getComputedStyle(words[place]).fontSize) * frame.width / picture.viewBox.baseVal.width;
    if (size < 9) faults.push(`letters of ${size.toFixed(1)} pixels in a picture: ${word}`);
    boxes.slice(0, place).forEach((other, before) => {
      const across = Math.min(box.right, other.right) - Math.max(box.left, other.left);
      const down = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
      if (across > 2 && down > 3) {
        faults.push(`one over the other in a picture: ${word} | ${words[before].textContent.trim()}`);
      }
    });
  });
}
all("nav a, summary").filter(shown).filter((link) => link.getBoundingClientRect().height < 24)
  .forEach((link) => faults.push("too small to touch: " + named(link)));

// Colours: text against what is behind it, as WCAG 2 computes it.
const channels = (color) => {
  const numbers = (color.match(/[\d.]+/g) || []).map(Number);
  return numbers.length === 3 ? [...numbers, 1] : numbers;
};
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
const behind = (element) => {
  const layers = [];
  for (let at = element; at; at = at.parentElement) {
    layers.push(channels(getComputedStyle(at).backgroundColor));
  }
  return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
};
const light = ([r, g, b]) => {
  const [x, y, z] = [r, g, b].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const contrast = (one, other) => {
  const [high, low] = [light(one), light(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
let judged = 0;
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const element = node.parentElement;
  if (!node.textContent.trim() || element.closest("style, title, desc") || !shown(element)) continue;
  const style = getComputedStyle(element);
  const ink = channels(element.closest("svg") ? style.fill : style.color);
  const paper = behind(element);
  const points = parseFloat(style.fontSize) * 0.75;
  const large = points >= 18 || (points >= 14 && Number(style.fontWeight) >= 700);
  const found = contrast(over(ink, paper), paper);
  judged += 1;
  if (found < (large ? 3 : 4.5)) faults.push(`contrast ${found.toFixed(2)}: ${named(element)}`);
}
if (judged < 20) faults.push(`only ${judged} pieces of text were seen`);
return faults;
