// The mean and the median of final regrets as runs come in, one after the other.
live.pictures.luck = ({ runs, looks, follow, start }, kit) => {
  const { make, axes, line, names, legend, tidy, random } = live, labels = Object.keys(runs), N = runs[follow].length;
  const sorted = [...runs[follow]].sort((a, b) => a - b), usual = (sorted[(N - 1) >> 1] + sorted[N >> 1]) / 2;
  let seed = 0, seen;
  const shuffle = () => {      // another order of the same runs; means and medians of the first 1, 2, 3, ...
    const next = random(seed), order = Array.from({ length: N }, (_, i) => i);
    for (let i = N - 1; seed && i > 0; i--) {
      const j = Math.floor(next() * (i + 1));
      [order[i], order[j]] = [order[j], order[i]];
    }
    seen = Object.fromEntries(labels.map(label => {
      const lost = order.map(i => runs[label][i]), means = [], medians = [], sorted = [];
      let sum = 0;
      lost.forEach((value, i) => {
        let [low, high] = [0, i];
        while (low < high) {
          const middle = low + high >> 1;
          if (sorted[middle] < value) low = middle + 1; else high = middle;
        }
        sorted.splice(low, 0, value);
        means.push((sum += value) / (i + 1));
        medians.push((sorted[i >> 1] + sorted[(i + 1) >> 1]) / 2);
      });
      return [label, { lost, means, medians }];
    }));
  };
  const all = labels.flatMap(label => runs[label]), range = [Math.min(...all) * .8, Math.max(...all) * 1.3];
  const jumps = n => seen[follow].means[n - 1] > 1.1 * seen[follow].means[n - 2];
  shuffle();
  kit.slider("n", "runs seen", [...new Set(Array.from({ length: 200 }, (_, k) => Math.round(2 * (N / 2) ** (k / 199))))], start);
  kit.button("to the next jump", () => {
    let n = kit.values.n < N ? kit.values.n + 1 : 3;      // from the end back to the first
    while (n < N && !jumps(n)) n++;
    kit.set("n", Math.min(n, N));
  });
  kit.button("another order", () => {
    seed++;
    shuffle();
    kit.set("n", start);
  });
  return (svg, width, { n }) => {
    const wide = width > 620, side = wide ? 92 : 12, row = wide ? 46 : 58;
    const top = { left: side, top: 28, width: width - side - 24, height: row * labels.length };
    const { X } = axes(svg, top, { x: range, xlog: true, title: `Final regret of ${tidy(n)} runs` });
    const place = (value, m, i) => [X(value), top.top + row * (m + (wide ? .5 : .64)) + ((i * .618034) % 1 - .5) * 22];
    labels.forEach((label, m) => {
      const { lost, means, medians } = seen[label], [colour, , ink] = looks[label], [, y] = place(1, m, 0), middle = y + 11;
      svg.append(make("text", wide ? { x: side - 10, y: middle + 4, class: "end", fill: ink } : { x: side + 2, y: middle - 20, fill: ink }, label),
        make("path", { stroke: colour, "stroke-width": 3.6, "stroke-linecap": "round", opacity: n > 300 ? .25 : .45,
          d: lost.slice(0, n).map((value, i) => `M${place(value, m, i).map(at => at.toFixed(1)).join(" ")}h0`).join("") }));
      line(svg, [[X(medians[n - 1]), middle - 15], [X(medians[n - 1]), middle + 15]], ["#fff"], 5.5);
      line(svg, [[X(medians[n - 1]), middle - 15], [X(medians[n - 1]), middle + 15]], ["#000"], 2.2);
      svg.append(make("path", { d: `M${X(means[n - 1]) - 7} ${middle}l7 -7l7 7l-7 7z`, fill: ink, stroke: "#fff", "stroke-width": 1.5 }));
      if (label !== follow) return;
      const [cx, cy] = place(lost[n - 1], m, n - 1);
      svg.append(make("circle", { cx, cy, r: 6, fill: "none", stroke: "#000", "stroke-width": 1.4 }));
    });
    const key = top.top + top.height + 38;
    svg.append(make("path", { d: `M${side + 4} ${key - 4}l5 -5l5 5l-5 5z`, fill: "#333" }), make("text", { x: side + 18, y: key }, "mean"),
      make("text", { x: side + 76, y: key }, "median"), make("circle", { cx: side + 136, cy: key - 4, r: 5, fill: "none", stroke: "#000" }),
      make("text", { x: side + 146, y: key }, `newest run of ${follow}`));
    line(svg, [[side + 70, key - 11], [side + 70, key + 3]], ["#000"], 2.2);
    const box = { left: 56, top: key + 40, width: width - 56 - (wide ? 150 : 24), height: 190 };
    const tops = labels.flatMap(label => seen[label].means.slice(1));
    const level = [Math.min(...labels.flatMap(label => seen[label].medians.slice(1))) * .8, Math.max(...tops) * 1.2];
    const { X: x, Y: y } = axes(svg, box, { x: [2, N], xlog: true, y: level, ylog: true, xlabel: "runs seen",
      title: wide ? "Mean (bold) and median (thin) of the runs so far" : "Mean (bold), median (thin)" });
    const ends = labels.flatMap(label => [["mean", 2.4], ["median", 1]].map(([what, thick]) => {
      const values = seen[label][`${what}s`].slice(1, n), look = looks[label];
      line(svg, values.map((value, i) => [x(i + 2), y(value)]), look, thick);
      return { text: `${label}, ${what}`, y: y(values.at(-1)), look };
    }));
    if (wide) names(svg, x(n), ends, box.top, box.top + box.height);
    else legend(svg, box.top + box.height + 54, labels.map(text => ({ text, look: looks[text] })));
    const { lost, means, medians } = seen[follow];
    const says = n > 2 && lost[n - 1] > 10 * usual && jumps(n)
      ? `Run ${n} of ${follow} loses ${tidy(lost[n - 1])}, more than ten times the median of all ${tidy(N)}: the mean goes from ${tidy(means[n - 2])} to ` +
        `${tidy(means[n - 1])}, the median from ${tidy(medians[n - 2])} to ${tidy(medians[n - 1])}.`
      : `After ${tidy(n)} runs: ` + labels.map(label => `${label} mean ${tidy(seen[label].means[n - 1])}, ` +
        `median ${tidy(seen[label].medians[n - 1])}`).join("; ") + ".";
    const told = Object.fromEntries(labels.map(label => [label, [seen[label].means[n - 1], seen[label].medians[n - 1]]]));
    return { height: box.top + box.height + (wide ? 42 : 64), says, told };
  };
};
