// What scrolls can be reached by keyboard. The theme measures all of it at once, which takes a third of the time in which
// a long page loads: here each thing is measured when it comes near.
{
  const everything = document.querySelectorAll.bind(document), near = new IntersectionObserver(seen => {
    const scrolls = seen.filter(each => each.isIntersecting).map(({target: it}) =>
      [it, it.scrollWidth > it.clientWidth || it.scrollHeight > it.clientHeight]);
    for (const [it, does] of scrolls) it.tabIndex = does ? 0 : -1;
  }, {rootMargin: "400px"});
  document.querySelectorAll = selector => {
    const found = everything(selector);
    if (!selector.startsWith("pre, .nboutput")) return found;
    found.forEach(each => { near.unobserve(each); near.observe(each); });      // it is told of each anew
    return [];
  };
}
// Code is folded; one switch opens all of it, and is remembered. A link into something folded opens it.
document.addEventListener("DOMContentLoaded", () => {
  const folded = document.querySelectorAll("details.above-input, details.below-input");
  if (folded.length) {
    const button = document.createElement("button");
    button.className = "btn btn-sm code-switch";
    const set = open => {
      folded.forEach(each => each.open = open);
      document.body.classList.toggle("all-code", open);
      button.textContent = open ? "hide all code" : "show all code";
      button.dataset.open = open;
      try { localStorage.setItem("code", open ? "shown" : ""); } catch (error) { /* nothing is remembered */ }
    };
    let before = "";
    try { before = localStorage.getItem("code"); } catch (error) { /* nothing was remembered */ }
    button.onclick = () => set(button.dataset.open !== "true");
    (document.querySelector(".article-header-buttons") || document.querySelector("main")).prepend(button);
    set(before === "shown");
  }
  for (const each of folded) {      // code with nothing to show opens with that below it
    const cell = each.closest(".cell"), above = cell.previousElementSibling;
    if (cell.matches(".tag_plumbing") || !above?.matches(".cell:not(.tag_plumbing, .tag_solution, :has(.cell_output))")) continue;
    above.classList.add("merged");
    each.addEventListener("toggle", () => above.querySelector("details").open = each.open);
  }
  for (const each of document.querySelectorAll("td code"))      // a short name in a table stays in one piece
    each.classList.toggle("name", each.textContent.length <= 24);
  for (const each of document.querySelectorAll("td code:not(.name) .pre"))      // a long one breaks between its words
    each.innerHTML = each.innerHTML.replace(/_/g, "_<wbr>");
  for (const head of document.querySelectorAll(".cell_output table thead")) {      // names of rows beside those of columns
    const [columns, names] = head.rows.length === 2 ? [...head.rows].map(row => [...row.cells]) : [[], []];
    const fit = columns.length === names.length && columns.every((cell, k) => !cell.textContent || !names[k].textContent);
    if (!fit || !names.length) continue;
    names.forEach((cell, k) => cell.textContent && columns[k].replaceWith(cell));
    head.rows[1].remove();
  }
  for (const table of document.querySelectorAll(".cell_output table")) {      // a column of numbers stays at the right
    const rows = [...table.rows].map(row => [...row.cells].reverse());      // row names span rows: count from the right
    for (let k = 0; k < rows.at(-1).length; k++) {
      const column = rows.map(row => row[k]).filter(cell => cell && cell.colSpan === 1);
      const data = column.filter(cell => cell.matches("td"));
      const words = data.filter(cell => /\p{L}{3}/u.test(cell.textContent.replace(/inf/g, "")));
      const kind = 2 * words.length < data.length ? "numbers" : "words";      // names of rows are words, too
      for (const cell of column) cell.classList.add(kind);
    }
  }
  for (const each of document.querySelectorAll("td.words"))      // code in a cell breaks before its arguments and values
    if (!each.childElementCount) each.innerHTML = each.innerHTML.replace(/[(=](?=\S{8})/g, "$&<wbr>");
  for (const image of document.querySelectorAll(".bd-article img")) {      // a click shows a picture alone
    if (image.closest("a")) continue;
    const link = document.createElement("a");
    link.href = image.src;
    link.setAttribute("aria-label", `the picture alone: ${image.alt}`);
    image.replaceWith(link);
    link.append(image);
  }
  const phone = matchMedia("(max-width: 600px)").matches, points = (image, side) => image.getAttribute(side) * .75;
  for (const each of phone ? document.querySelectorAll("[data-panels]") : []) {      // one panel below the other
    const image = each.querySelector("img"), [wide, high] = [points(image, "width"), points(image, "height")];
    image.replaceWith(...JSON.parse(each.dataset.panels).map(([top, bottom, ...ends], k) => {
      const panel = document.createElement("span"), tall = (bottom - top) * high;
      panel.className = "panel";
      for (let i = 0; i < ends.length; i += 2) {      // the names of its rows, if they stand elsewhere, and itself
        const part = panel.appendChild(image.cloneNode()), width = (ends[i + 1] - ends[i]) * wide;
        part.src = `${image.src}#svgView(viewBox(${ends[i] * wide},${top * high},${width},${tall}))`;
        Object.assign(part.style, {flex: `${width} 1 0`, aspectRatio: `${width} / ${tall}`});
        if (k || i) part.alt = "";
      }
      const width = ends.reduce((sum, end, i) => sum + (i % 2 ? end : -end), 0) * wide;
      panel.style.maxWidth = `${width * 4 / 3}px`;
      return panel;
    }));
  }
  for (const image of phone ? document.querySelectorAll("p > a > img") : [])      // letters of 9 points: at least 6.5 px
    if (points(image, "width") > 540) image.style.minWidth = `${points(image, "width") * .8}px`;
  const laid = selector => [...document.querySelectorAll(selector)]      // what is far off waits for its turn
    .filter(each => each.checkVisibility?.({contentVisibilityAuto: true}) ?? true);
  const fit = () => {      // once the font is there: Chromium leaves room after a root as if its sign were the largest
    const roots = laid("msqrt:not([style])").map(root => [root, root.lastElementChild]
      .map(part => part.getBoundingClientRect().right).concat(root));
    for (const [right, end, root] of roots) if (right) root.style.marginRight = `${end - right}px`;
    const long = laid(":is(p, li) math").map(each => [each, each.closest("p, li")])
      .filter(([each, text]) => each.getBoundingClientRect().right > text.getBoundingClientRect().right + 1);
    for (const [, text] of long) text.classList.add("wide");
  };
  document.fonts.ready.then(fit);
  for (const event of ["toggle", "contentvisibilityautostatechange"]) addEventListener(event, fit, true);
  for (const side of ["primary", "secondary"]) {      // the theme listens to the first of each, in the hidden header
    const [first, ...others] = document.querySelectorAll(`.${side}-toggle`);
    for (const button of others) button.addEventListener("click", () => first.click());
  }
  for (const dialog of document.querySelectorAll("dialog"))      // a place on this page is seen once the menu is shut
    dialog.addEventListener("click", event => event.target.closest("a[href^='#']") && dialog.close());
  const reach = () => {
    let name = location.hash.slice(1);
    try { name = decodeURIComponent(name); } catch (error) { /* a % that stands for itself */ }
    const place = document.getElementById(name);
    if (!place) return;
    document.documentElement.classList.add("whole");      // a place is found only where all before it has its height
    fit();
    const below = (place.closest("p") || place).nextElementSibling;
    for (const each of [place.closest("details"), place.querySelector(":scope > details"), below])
      if (each && each.tagName === "DETAILS") each.open = true;
    place.scrollIntoView();
  };
  const root = document.documentElement, unfolded = [];      // paper is light, and nobody can open an answer on it
  addEventListener("beforeprint", () => {
    root.dataset.screen = root.dataset.theme;
    root.dataset.theme = "light";
    unfolded.push(...document.querySelectorAll("details:not([open], .cell:not(.tag_solution) > *)"));
    for (const each of unfolded) each.open = true;
  });
  addEventListener("afterprint", () => {
    root.dataset.theme = root.dataset.screen;
    for (const each of unfolded.splice(0)) each.open = false;
  });
  addEventListener("hashchange", reach);
  if (location.hash) reach();
});
