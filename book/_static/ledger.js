// Filters and sorts the rows of the ledger; what is chosen stands in the address.
const LETTERS = {α: "alpha", γ: "gamma", δ: "delta", ε: "epsilon", κ: "kappa", λ: "lambda", μ: "mu", ρ: "rho", τ: "tau",
                 ω: "omega"};
const named = text => text.toLowerCase().replace(/[α-ω]/g, letter => LETTERS[letter] || letter)      // rho finds ρ, ρ too
  .replace(/[“”„]/g, '"').replace(/figure(s?) /g, "fig$1. ")
  .replace(/(theorem|lemma|section)s (\S+) and (\S+)/g, "$& ($1 $2, $1 $3)");      // Theorem 1, too, finds Theorems 1 and 7
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector(".ledger-filter"), count = document.querySelector(".ledger-count");
  const body = document.querySelector("table.ledger tbody"), heads = [...document.querySelectorAll("table.ledger thead th")];
  const words_in_order = new Intl.Collator("en", {numeric: true});      // one for all: to make it takes longest
  for (const row of body.rows) heads.forEach((head, k) => row.cells[k].dataset.name = head.textContent);      // on a phone
  const rows = [...body.rows].map(row => ({row, data: row.dataset, words: named(row.textContent)}));
  const view = () => {      // what the address says, unless it is a place on this page
    const hash = location.hash.slice(1);
    return document.getElementById(hash) ? null : new URLSearchParams(hash);
  };
  let state = view() || new URLSearchParams();
  for (const key of ["paper", "verdict", "reading", "claim"]) {
    const values = [...new Set(rows.map(each => each.data[key]))];
    const select = form.appendChild(document.createElement("select"));
    select.name = key;
    select.setAttribute("aria-label", key);
    select.append(new Option(`${key}: all`, ""), ...values.map(value => new Option(`${key}: ${value}`, value)));
  }
  const words = form.appendChild(document.createElement("input"));
  Object.assign(words, {type: "search", name: "words", placeholder: 'words of a row, or "a phrase"',
                        ariaLabel: "words of a row"});
  const fill = () => {
    for (const field of form.elements) {
      field.value = state.get(field.name) || "";
      if (field.selectedIndex < 0) field.value = "";      // a word that is there no more
    }
  };
  fill();
  function show() {
    const chosen = [...form.elements].filter(field => field.value);
    const parts = (named(words.value).match(/"[^"]*"?|[^"\s]+/g) || []).map(part => part.replaceAll('"', ""));
    for (const each of rows)
      each.row.hidden = !chosen.every(field => field === words || each.data[field.name] === field.value)
        || !parts.every(part => each.words.includes(part));
    const kept = rows.filter(each => !each.row.hidden);
    [...body.rows].filter(row => !row.hidden).forEach((row, k) => row.classList.toggle("striped", k % 2 === 0));
    const claims = kind => new Set(kept.filter(each => each.data.claim === kind).map(each => each.row.cells[1].textContent));
    count.textContent = `${kept.length} of ${rows.length} rows, from ${claims("the paper's").size} claims of papers and `
      + `${claims("ours").size} questions of ours`;
    for (const field of form.elements) field.value ? state.set(field.name, field.value) : state.delete(field.name);
    if (view()) history.replaceState(null, "", "#" + state);
  }
  function sort() {
    const [column, order] = (state.get("sort") || "").split("."), at = heads.findIndex(head => head.textContent === column);
    heads.forEach((head, k) => head.ariaSort = k === at ? order : null);
    if (at < 0) return body.append(...rows.map(({row}) => row));
    const keyed = rows.map(({row}) => ({row, number: Number(row.cells[at].dataset.number), text: row.cells[at].textContent}));
    const compare = (a, b) => a.number - b.number || words_in_order.compare(a.text, b.text);
    body.append(...keyed.sort((a, b) => (order === "ascending" ? 1 : -1) * compare(a, b)).map(each => each.row));
  }
  for (const head of heads) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.onclick = () => {
      state.set("sort", `${head.textContent}.${head.ariaSort === "ascending" ? "descending" : "ascending"}`);
      sort();
      show();
    };
  }
  addEventListener("hashchange", () => {      // another view of this page was followed
    if (!view()) return;
    state = view();
    fill();
    sort();
    show();
  });
  form.onsubmit = event => event.preventDefault();
  form.oninput = show;
  sort();
  show();
});
