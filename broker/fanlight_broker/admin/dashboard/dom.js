// Elements, made without HTML text: what a broker's clients called themselves can never become markup.
//
//   h("button", {type: "button", onclick: save, class: "main"}, "Save")
//   s("path", {d: "M0 0L1 1"})                       the same for SVG

function make(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function h(tag, attributes, ...children) {
  return make(document.createElement(tag), attributes, children);
}

export function s(tag, attributes, ...children) {
  return make(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// A field with its label above it.
export function field(label, input, attributes) {
  return h("label", attributes, h("span", null, label), input);
}

export function select(options, attributes) {
  return h("select", attributes, options.map((each) => {
    const [value, text] = Array.isArray(each) ? each : [each, each];
    return h("option", {value}, text);
  }));
}

export function badge(text, kind = "") {
  return h("span", {class: `badge ${kind}`}, text);
}

// The head of a page: its title, and in a sentence what it is for.
export function head(title, lead, ...beside) {
  return h("div", {class: "head"}, h("div", {class: "row"}, h("h1", null, title), beside), lead && h("p", {class: "lead"}, lead));
}

// Facts, by their names.
export function facts(rows) {
  return h("dl", {class: "facts"}, rows.filter(Boolean).map(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
}
