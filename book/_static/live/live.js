// Pictures that move. <div class="live" data-live="name"> holds a still image and, as JSON, the data behind it. Paper, and
// readers without JavaScript, see the image; on a screen it gives way to what live.pictures[name] draws: a function
// (data, kit) that makes its sliders and returns draw(svg, width, values) -> { height, says, told }.
const live = (() => {
  const pictures = {}, HTML = ["div", "label", "input", "output", "button", "span"];
  const make = (tag, attributes = {}, ...inside) => {
    const node = HTML.includes(tag) ? document.createElement(tag) : document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...inside);
    return node;
  };
  const tidy = value => {      // three digits, or whole with commas; what rounding leaves of nothing is 0
    const short = Number(value.toPrecision(3)), size = Math.abs(short);
    if (size < 1e-3) return size < 1e-9 ? "0" : "less than 0.001";
    return size >= 1000 ? Math.round(value).toLocaleString("en") : String(short);
  };
  const power = value => {      // from a million on as a power of ten, with one digit before it
    if (value < 1e6) return tidy(value);
    const [digit, exponent] = value.toExponential(0).split("e+");
    return `${digit === "1" ? "" : `${digit}·`}10${exponent.replace(/\d/g, k => "⁰¹²³⁴⁵⁶⁷⁸⁹"[k])}`;
  };
  const random = seed => () => {      // mulberry32: the same numbers in every browser
    seed = seed + 0x6D2B79F5 | 0;
    let t = Math.imul(seed ^ seed >>> 15, 1 | seed);
    t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
    return ((t ^ t >>> 14) >>> 0) / 4294967296;
  };
  const scale = ([a, b], [from, to], log) => {
    const f = log ? Math.log : x => x;
    return x => from + (f(Math.min(Math.max(x, a), b)) - f(a)) / (f(b) - f(a)) * (to - from);      // within its axis
  };
  const ticks = ([a, b], log, about) => {
    if (log) return Array.from({ length: 20 }, (_, k) => 10 ** (k - 3)).filter(x => x >= a * (1 - 1e-9) && x <= b * (1 + 1e-9))
      .filter((_, k, all) => k % Math.ceil(all.length / 8) === 0);
    const raw = (b - a) / about, unit = 10 ** Math.floor(Math.log10(raw)), step = unit * [1, 2, 5, 10].find(m => m * unit >= raw);
    return Array.from({ length: 20 }, (_, k) => Math.ceil(a / step - 1e-9) * step + k * step).filter(x => x <= b + 1e-9);
  };
  const axes = (into, box, { x, y, xlog, ylog, title, xlabel, yticks }) => {
    const bottom = box.top + box.height, right = box.left + box.width, text = (...all) => into.append(make("text", ...all));
    const X = scale(x, [box.left, right], xlog), Y = y && scale(y, [bottom, box.top], ylog);
    for (const at of ticks(x, xlog, box.width / 70)) {
      into.append(make("path", { d: `M${X(at)} ${box.top}V${bottom}`, class: "grid" }));
      text({ x: X(at), y: bottom + 16, class: "tick middle" }, power(at));
    }
    for (const at of y ? yticks || ticks(y, ylog, 5) : []) {
      into.append(make("path", { d: `M${box.left} ${Y(at)}H${right}`, class: "grid" }));
      text({ x: box.left - 6, y: Y(at) + 4, class: "tick end" }, tidy(at));
    }
    into.append(make("path", { d: `M${box.left} ${y ? box.top : bottom}V${bottom}H${right}`, class: "axis" }));
    text({ x: box.left, y: box.top - 10, class: "title" }, title);
    if (xlabel) text({ x: (box.left + right) / 2, y: bottom + 33, class: "middle" }, xlabel);
    return { X, Y };
  };
  const line = (into, points, [colour, dash = ""], width = 1.6) => into.append(make("path", {
    d: "M" + points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L"),
    stroke: colour, "stroke-dasharray": dash, "stroke-width": width, fill: "none" }));
  const names = (into, x, wanted, least, most, gap = 14) => {      // at the ends of lines, moved apart
    const all = wanted.map(each => ({ ...each, at: each.y })).sort((a, b) => a.y - b.y);
    all.forEach((each, k) => each.at = Math.max(each.at, k ? all[k - 1].at + gap : least));
    for (let k = all.length - 1; k >= 0; k--) all[k].at = Math.min(all[k].at, k < all.length - 1 ? all[k + 1].at - gap : most);
    for (const { text, y, at, look: [colour, , ink = colour] } of all) {
      line(into, [[x, y], [x + 12, at]], [colour], .7);
      into.append(make("text", { x: x + 15, y: at + 4, fill: ink }, text));
    }
  };
  const legend = (into, y, wanted) => wanted.reduce((x, { text, look }) => {      // below, where ends have no room
    line(into, [[x, y - 4], [x + 18, y - 4]], look);
    into.append(make("text", { x: x + 22, y, fill: look[2] || look[0] }, text));
    return x + 7 * text.length + 36;
  }, 12);
  const rule = (name, parameters) => {      // a rule of the library, of numbers: rules.js has its code
    const memory = new WebAssembly.Memory({ initial: 1 }), result = new Float64Array(memory.buffer, 0, 1);
    const env = { __linear_memory: memory, log: Math.log, log1p: Math.log1p, exp: Math.exp, expm1: Math.expm1 };
    const code = Uint8Array.from(atob(live.rules[name]), sign => sign.charCodeAt(0));
    const { rule } = new WebAssembly.Instance(new WebAssembly.Module(code), { env }).exports;
    return (...told) => {
      rule(0, 8, ...told, ...parameters);
      return result[0];
    };
  };
  const start = root => {
    if (root.classList.contains("on")) return;      // another script of the page was first
    const data = JSON.parse(root.querySelector("script").textContent), values = {}, inputs = {};
    const svg = make("svg", { role: "img" }), said = make("output", { class: "said" }), bar = make("div", { class: "bar" });
    const stage = make("div", { class: "stage" }, bar, svg, said);
    let asked = 0;
    const draw = () => {
      asked = 0;
      const width = Math.round(stage.clientWidth);
      if (!width) return;
      svg.replaceChildren();
      const drawn = picture(svg, width, values);
      svg.setAttribute("viewBox", `0 0 ${width} ${drawn.height}`);
      svg.setAttribute("aria-label", drawn.says);
      if (said.textContent !== drawn.says) said.textContent = drawn.says;
      return drawn;
    };
    const again = () => asked ||= requestAnimationFrame(draw);
    const set = (key, value) => {
      values[key] = value;
      inputs[key].show(value);
      again();
    };
    const field = (key, label, value, attributes, show, read) => {
      const input = inputs[key] = make("input", { name: key, ...attributes }), shown = make("span", { class: "value" });
      input.show = to => show(input, to, shown);
      input.oninput = () => {
        values[key] = read(input, values[key]);
        show(input, values[key], shown);
        again();
      };
      bar.append(make("label", {}, make("span", {}, label), input, shown));
      input.show(values[key] = value);
    };
    const slider = (key, label, steps, value) => field(key, label, value, { type: "range", min: 0, max: steps.length - 1 },
      (input, to, shown) => {      // steps: the values it can take
        input.value = steps.findLastIndex(step => step <= to);
        input.ariaValueText = shown.textContent = tidy(to);
      }, input => steps[input.value]);
    const button = (label, does) => {
      const made = make("button", { type: "button", class: "btn btn-sm" }, label);
      made.onclick = () => does(made);
      bar.append(made);
    };
    const picture = pictures[root.dataset.live](data, { values, set, field, slider, button });
    stage.addEventListener("keydown", event => event.stopPropagation());      // JupyterLab has other uses for arrows
    root.append(stage);
    root.classList.add("on");
    new ResizeObserver(again).observe(stage);
    root.at = wanted => {      // what it draws and says there
      for (const [key, value] of Object.entries(wanted)) set(key, value);
      return draw();
    };
    draw();
  };
  const begin = () => {      // only where a reader comes near
    const near = new IntersectionObserver(seen => seen.filter(each => each.isIntersecting).forEach(({ target }) => {
      near.unobserve(target);
      try { start(target); } catch (error) {      // the image stays
        console.error(error);
        target.classList.remove("on");
        target.querySelector(":scope > .stage")?.remove();
      }
    }), { rootMargin: "600px" });
    const known = [...document.querySelectorAll("[data-live]:not(.on)")].filter(root => pictures[root.dataset.live]);
    known.forEach(root => near.observe(root));
  };
  if (document.readyState !== "complete") document.addEventListener("DOMContentLoaded", begin);
  return { begin, pictures, make, tidy, power, random, rule, axes, line, names, legend };
})();
