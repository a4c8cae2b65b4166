// The trap: a good arm whose first pulls happen to be expensive, and an index that all but stands still.
live.pictures.trap = ({ rewards, costs, arms, level, rhos, rho, most, unlucky, rounds, last, seed, looks }, kit) => {
  const { make, axes, line, tidy, power, random } = live, kept = {}, [blue, red, orange] = looks;
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
  kit.slider("unlucky", "coins at the first pulls of gold", Array.from({ length: most + 1 }, (_, k) => k), unlucky);
  return (svg, width, { t, rho, unlucky: s }) => {
    const path = kept[`${rho} ${s}`] ||= play(rho, s), seen = path.filter(each => each[0] <= t), now = seen.at(-1);
    const box = { left: 44, top: 28, width: width - 68, height: 230 };
    const { X, Y } = axes(svg, box, { x: [1, last], xlog: true, y: [0, 220], xlabel: "round",
      title: width > 620 ? "Indices of gold and silver: ω-UCB pulls the one whose index is larger" : "Indices (the larger is pulled)" });
    const across = (y, text, [colour, , ink], dash) => {
      line(svg, [[box.left, Y(y)], [box.left + box.width, Y(y)]], [colour, dash], 1);
      svg.append(make("text", { x: box.left + box.width, y: Y(y) - 6, class: "end", fill: ink }, text));
    };
    across(rewards[0] / costs[0], `${arms[0]}'s true ratio`, blue, "2 4");
    across(level, `a rival held at ${level}`, ["#7F7F7F", "", "#595959"], "5 4");
    // An arm of which all s pulls have cost 1 and paid 1: its index under two rules, and when each is at the level.
    const rules = [[u => 1 + 2 * rho * Math.log(u) / s, Math.exp((level - 1) * s / (2 * rho)), blue],
      [u => u ** (rho / s), level ** (s / rho), orange]];
    const back = s ? rules.map(([, round]) => Math.ceil(round * (1 - 1e-12))) : [];
    for (const [index, round, look] of s ? rules : []) {
      const end = Math.min(round, last);
      line(svg, Array.from({ length: 121 }, (_, k) => end ** (k / 120)).map(u => [X(u), Y(index(u))]), [look[0], "4 3"], 1.2);
      if (round <= last) svg.append(make("circle", { cx: X(round), cy: Y(level), r: 4, fill: "#000" }));
    }
    [blue, red].forEach((look, k) => {
      line(svg, seen.map(each => [X(each[0]), Y(each[1 + k])]), look, 2.2);
      svg.append(make("circle", { cx: X(t), cy: Y(now[1 + k]), r: 5, fill: look[0], stroke: "#fff" }),
        make("text", { x: X(t) + 8, y: Y(now[1 + k]) + (k ? -6 : 14), fill: look[2] }, arms[k]));
    });
    const told = { indices: now.slice(1, 3), pulls: now[3], back }, [gold, silver] = told.indices.map(value => value < Infinity ? tidy(value) : "infinite");
    return { height: box.top + box.height + 42, told, says: `Round ${tidy(t)}, ρ = ${tidy(rho)}: ${arms[0]} has been pulled ` +
      `${told.pulls === 1 ? "once" : `${tidy(told.pulls)} times`}, its index is ${gold}, and that of ${arms[1]} ${silver}.` +
      (s ? ` An arm of which ${s === 1 ? "the only pull" : `all ${s} pulls`} cost a coin reaches a rival held at ${level} in round ` +
        `${power(back[0])}; by the rule of section 7 in round ${power(back[1])}.` : "") };
  };
};
