// Three fillings of a budget, and how far each stays below the fractional value, which cuts the last item.
live.pictures.fillings = ({ values, costs, arms, methods, colours, looks, budget, least, most }, kit) => {
  const { make, axes, line, names, legend, tidy } = live, none = costs.map(() => 0);
  const order = costs.map((_, k) => k).sort((a, b) => values[b] / costs[b] - values[a] / costs[a]), best = order[0];
  const worth = counts => counts.reduce((sum, n, k) => sum + n * values[k], 0);
  const greedy = (rest, arms) => arms.reduce((counts, k) => {
    counts[k] = Math.floor(rest / costs[k]);
    rest -= counts[k] * costs[k];
    return counts;
  }, [...none]);
  const optimum = [none];      // of each whole budget
  for (let B = 1; B <= most; B++) optimum[B] = order.filter(k => costs[k] <= B).reduce((found, k) => {
    const more = optimum[B - costs[k]].map((n, i) => n + (i === k));
    return worth(more) > worth(found) + 1e-9 ? more : found;
  }, optimum[B - 1]);
  const fill = B => [greedy(B, [best]), greedy(B, order), optimum[B]];
  const gap = (counts, B) => B / costs[best] - worth(counts) / values[best];      // in pulls of the densest arm
  const grid = Array.from({ length: most - least + 1 }, (_, k) => least + k);
  const gaps = methods.map((_, m) => grid.map(B => gap(fill(B)[m], B)));
  kit.slider("budget", "budget (cost units)", grid, budget);
  return (svg, width, { budget: B }) => {
    const wide = width > 620, side = 118, half = wide ? Math.round(width * .43) : width, fillings = fill(B);
    const left = { left: side, top: 30, width: half - side - 14, height: 118 };
    const right = wide ? { left: half + 46, top: 30, width: width - half - 172, height: 118 }
      : { left: 40, top: 222, width: width - 54, height: 130 };
    const { X } = axes(svg, left, { x: [0, B], title: wide ? `Three fillings of a budget of ${B}` : `Fillings of a budget of ${B}` });
    fillings.forEach((counts, m) => {
      const y = left.top + 4 + m * 39;
      let at = 0;
      svg.append(make("text", { x: side - 8, y: y + 21, class: "end", fill: looks[m][2] }, methods[m]));
      for (const k of order) for (let i = 0; i < counts[k]; i++, at += costs[k]) {
        const w = X(at + costs[k]) - X(at);
        svg.append(make("rect", { x: X(at) + .5, y, width: Math.max(w - 1, .5), height: 32, fill: colours[k] }));
        if (w > 15) svg.append(make("text", { x: X(at) + w / 2, y: y + 21, class: "middle", fill: "#fff" }, arms[k]));
      }
      if (at < B) svg.append(make("rect", { x: X(at) + 1, y: y + 1, width: Math.max(X(B) - X(at) - 2, .5), height: 30, fill: "none",
        stroke: "#7F7F7F", "stroke-dasharray": "3 3" }));
    });
    const { X: x, Y: y } = axes(svg, right, { x: [0, most], y: [0, 1.05], yticks: [0, .5, 1], xlabel: "budget (cost units)",
      title: `Pulls of ${arms[best]} below the fractional value` });
    line(svg, [[x(B), right.top], [x(B), right.top + right.height]], ["#7F7F7F"], 1);
    gaps.forEach((each, m) => line(svg, each.map((g, k) => [x(grid[k]), y(g)]), looks[m]));
    gaps.forEach((each, m) => svg.append(make("circle", { cx: x(B), cy: y(each[B - least]), r: 5, fill: looks[m][0], stroke: "#fff" })));
    const ends = methods.map((text, m) => ({ text, y: y(gaps[m].at(-1)), look: looks[m] }));
    if (wide) names(svg, x(most), ends, right.top, right.top + right.height, 15); else legend(svg, 406, ends);
    const told = fillings.map((counts, m) => [counts, gaps[m][B - least]]);
    return { height: wide ? 200 : 414, told, says: `Budget ${B}: ` + told.map(([counts, below], m) => `${methods[m]} ` +
      `${order.filter(k => counts[k]).map(k => `${counts[k]} ${arms[k]}`).join(" + ") || "nothing"}, ${tidy(below)} pulls below`).join("; ") + "." };
  };
};
