// Arms as rectangles in the plane of cost and reward: Budget-UCB pulls the one whose ray is steepest, near its upper left corner.
live.pictures.rays = ({ rewards, costs, arms, least, explorations, exploration, run, rounds, looks }, kit) => {
  const { make, axes, line, tidy, random } = live, kept = {}, ratios = rewards.map((r, k) => r / costs[k]);
  const right = ratios.indexOf(Math.max(...ratios)), K = arms.length;
  const marks = [...new Set(Array.from({ length: 121 }, (_, k) => Math.round(20 * (rounds / 20) ** (k / 120))))];
  const play = (a, run) => {      // state before each marked round: pulls, means, half-width, index
    const index = live.rule("BudgetUCB", [a]), next = random(run), n = rewards.map(() => 0), r = [...n], c = [...n], seen = {};
    for (let t = 1; t <= rounds; t++) {
      const value = n.map((n, k) => index(t, n, r[k], c[k], r[k], c[k], least));
      const k = t <= K ? t - 1 : value.indexOf(Math.max(...value));
      if (marks.includes(t)) seen[t] = n.map((n, i) => ({ n, r: r[i] / n, c: c[i] / n, eps: a * Math.sqrt(2 * Math.log(t - 1) / n),
        index: value[i], next: i === k }));
      r[k] += next() < rewards[k];
      c[k] += next() < costs[k];
      n[k]++;
    }
    return seen;
  };
  kit.slider("t", "round", marks, marks[60]);
  kit.slider("a", "exploration a", explorations, exploration);
  kit.slider("run", "run", Array.from({ length: 40 }, (_, k) => k + 1), run);
  return (svg, width, { t, a, run }) => {
    const told = (kept[`${a} ${run}`] ||= play(a, run))[t], size = Math.min(width - 60, 420);
    const box = { left: 40, top: 28, width: size, height: Math.min(size, 300) };
    const { X, Y } = axes(svg, box, { x: [0, 1], y: [0, 1], xlabel: "cost of a pull", title: "Reward of a pull, and what it may be" });
    told.forEach(({ r, c, eps, index, next }, k) => {
      const [colour, , ink] = looks[k], end = index > 1 ? [1 / index, 1] : [1, index];
      line(svg, [[X(0), Y(0)], [X(end[0]), Y(end[1])]], [colour, next ? "" : "3 3"], next ? 2.4 : 1);
      svg.append(make("rect", { x: X(c - eps), y: Y(r + eps), width: X(c + eps) - X(c - eps), height: Y(r - eps) - Y(r + eps), fill: colour,
        "fill-opacity": next ? .3 : .12, stroke: colour }), make("circle", { cx: X(c), cy: Y(r), r: 3.5, fill: colour }),
        make("circle", { cx: X(Math.max(c - eps, least)), cy: Y(r + eps), r: 3, fill: "#fff", stroke: colour, "stroke-width": 1.5 }),
        make("text", { x: Math.min(X(c) + 7, X(1) - 60), y: Y(r) - 5, fill: ink }, arms[k]));
    });
    const pulled = told.findIndex(each => each.next), most = told.findIndex(each => each.n === Math.max(...told.map(each => each.n)));
    const stuck = most !== right && told[most].n > .9 * t ? ` More than nine tenths of the pulls were of ${arms[most]}, which is not the best.` : "";
    const index = k => told[k].index < Infinity ? tidy(told[k].index) : "infinite";
    return { height: box.top + box.height + 42, told, says: `Round ${tidy(t)}, a = ${tidy(a)}. Pulls so far: ` +
      told.map(({ n }, k) => `${arms[k]} ${tidy(n)}`).join(", ") + `. Next is ${arms[pulled]}, whose index is ${index(pulled)}` +
      `${pulled === right ? "" : `; that of ${arms[right]}, the best with a true ratio of ${tidy(ratios[right])}, is ${index(right)}`}.${stuck}` };
  };
};
