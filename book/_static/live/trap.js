// The trap: a good arm whose first pulls happen to be expensive, and an index that all but stands still.
live.pictures.trap = ({ rewards, costs, arms, rhos, rho, most, unlucky, rounds, seed, looks }, kit) => {
  const { make, axes, line, names, tidy, random } = live, kept = {}, ratios = rewards.map((r, k) => r / costs[k]);
  const marks = [...new Set(Array.from({ length: 241 }, (_, k) => Math.round(3 * (rounds / 3) ** (k / 240))))];
  const play = (rho, unlucky) => {      // round, both indices, and pulls of the good arm, at each mark
    const index = live.rule("OmegaUCB", [rho]), next = random(seed), n = [0, 0], r = [0, 0], c = [0, 0], path = [];
    for (let t = 1, at = 0; t <= rounds; t++) {
      const value = [0, 1].map(k => index(t, n[k], r[k], c[k], r[k], c[k], 0));
      const k = t < 3 ? t - 1 : value[0] >= value[1] ? 0 : 1, reward = +(next() < rewards[k]), cost = +(next() < costs[k]);
      c[k] += k === 0 && n[0] < unlucky ? 1 : cost;
      r[k] += reward;
      n[k]++;
      if (t === marks[at]) path.push([marks[at++], ...value, n[0]]);
    }
    return path;
  };
  kit.slider("t", "round", marks, marks[150]);
  kit.slider("rho", "exploration ρ", rhos, rho);
  kit.slider("unlucky", "first costs of the good arm that are 1", Array.from({ length: most + 1 }, (_, k) => k), unlucky);
  return (svg, width, { t, rho, unlucky }) => {
    const path = kept[`${rho} ${unlucky}`] ||= play(rho, unlucky), seen = path.filter(each => each[0] <= t), now = seen.at(-1);
    const wide = width > 620, box = { left: 44, top: 28, width: width - 44 - (wide ? 170 : 24), height: 230 };
    const { X, Y } = axes(svg, box, { x: [3, rounds], xlog: true, y: [.5, 100], ylog: true, xlabel: "round",
      title: wide ? "Indices of two arms: ω-UCB pulls the one whose index is larger" : "Indices (the larger is pulled)" });
    const ends = [0, 1].map(k => {
      line(svg, [[box.left, Y(ratios[k])], [box.left + box.width, Y(ratios[k])]], [looks[k][0], "2 4"], 1);
      line(svg, seen.map(each => [X(each[0]), Y(each[1 + k])]), looks[k], 2.2);
      svg.append(make("circle", { cx: X(t), cy: Y(now[1 + k]), r: 5, fill: looks[k][0], stroke: "#fff" }));
      return { text: `${arms[k]}: true ratio ${tidy(ratios[k])}`, y: Y(ratios[k]), look: looks[k] };
    });
    if (wide) names(svg, box.left + box.width, ends, box.top, box.top + box.height);
    else ends.forEach(({ text, y, look: [, , ink] }, k) =>
      svg.append(make("text", { x: box.left + box.width, y: y + (k ? 15 : -6), class: "end", fill: ink }, text)));
    const told = { indices: now.slice(1, 3), pulls: now[3] }, [good, rival] = told.indices.map(value => value < Infinity ? tidy(value) : "infinite");
    return { height: box.top + box.height + 42, told, says: `Round ${tidy(t)}, ρ = ${tidy(rho)}, first costs of 1: ${unlucky}. ` +
      `The good arm has been pulled ${told.pulls === 1 ? "once" : `${tidy(told.pulls)} times`}; its index is ${good}, the rival's ${rival}.` };
  };
};
