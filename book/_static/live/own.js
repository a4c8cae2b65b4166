// A problem that a reader types, played in the page by rules of the library.
live.pictures.own = ({ rewards, costs, spread, budget, policies, runs, most, looks }, kit) => {
  const { make, axes, line, tidy, random } = live, labels = Object.keys(policies), K = rewards.length, arms = rewards.map((_, k) => k);
  const rules = Object.fromEntries(labels.map(label => [label, live.rule(...policies[label])]));
  const outcomes = (seed, mean, spread) => {      // a coin, drawn towards its mean; the i-th is the same for every policy
    const next = random(seed), drawn = [];
    return i => {
      while (drawn.length <= i) drawn.push(mean + spread * ((next() < mean) - mean));
      return drawn[i];
    };
  };
  const play = (label, { r, c, spread, budget }, seed) => {      // pulls of each arm until the budget is spent
    const value = rules[label], sums = arms.map(() => [0, 0, 0, 0, 0]), least = Math.min(...c);
    const coming = arms.map(k => [outcomes(2000 * k + seed, r[k], spread), outcomes(2000 * k + 1000 + seed, c[k], spread)]);
    for (let t = 1, spent = 0; spent < budget; t++) {
      let index = sums => value(t, ...sums, least);
      if (policies[label][0] === "MomentIMED") {      // the least index, beside the largest ratio
        const rho = Math.max(...sums.map(([, r, c]) => c ? r / c : 0));
        index = sums => sums[2] ? -value(...sums, rho) : Infinity;
      }
      const values = sums.map(index), k = t <= K ? t - 1 : values.indexOf(Math.max(...values)), n = sums[k][0];
      const [reward, cost] = coming[k].map(outcome => outcome(n));
      [1, reward, cost, reward * reward, cost * cost].forEach((more, i) => sums[k][i] += more);
      spent += cost;
    }
    return sums.map(([n]) => n);
  };
  const number = (key, label, value) => kit.field(key, label, value, { type: "number", min: 0, step: "any" },
    (input, to) => input === document.activeElement || (input.value = to), input => input.valueAsNumber);
  arms.forEach(k => {
    number(`r${k}`, `arm ${k + 1}: mean reward`, rewards[k]);
    number(`c${k}`, `arm ${k + 1}: mean cost`, costs[k]);
  });
  number("top", "largest reward", 1);
  number("dear", "largest cost", 1);
  number("budget", "budget", budget);
  kit.slider("spread", "spread (0 none, 1 all or nothing)", Array.from({ length: 21 }, (_, k) => k / 20), spread);
  return (svg, width, values) => {
    const { top, dear, spread, budget } = values, r = arms.map(k => values[`r${k}`] / top), c = arms.map(k => values[`c${k}`] / dear);
    const wrong = [[r.every(x => x >= 0 && x <= 1), "Each mean reward must lie between 0 and the largest reward."],
      [c.every(x => x > 0 && x <= 1), "Each mean cost must be above 0 and at most the largest cost."],
      [budget > 0 && (budget / dear + 1) / Math.min(...c) <= most,      // the last pull costs at most 1 more: so a game ends
        `The budget must be above 0, and last for at most ${tidy(most)} pulls of the cheapest arm.`]]
      .find(([right]) => !right);
    if (wrong) return { height: 20, says: wrong[1], told: null };
    const ratios = r.map((x, k) => x / c[k]), best = Math.max(...ratios), first = arms.find(k => ratios[k] === best);
    const told = Object.fromEntries(labels.map(label => [label, Array.from({ length: runs }, (_, seed) =>
      play(label, { r, c, spread, budget: budget / dear }, seed).reduce((sum, n, k) => sum + n * c[k] * (best - ratios[k]) * top, 0))]));
    const mean = label => told[label].reduce((sum, lost) => sum + lost, 0) / runs, order = [...labels].sort((a, b) => mean(a) - mean(b));
    const box = { left: 120, top: 28, width: width - 150, height: 34 * labels.length }, all = Object.values(told).flat();
    const worst = Math.max(...all);      // 0 where all arms are as good
    const { X } = axes(svg, box, { x: [0, worst > 1e-9 ? worst * 1.05 : 1], xlabel: "loss of a run; bar: mean", title: `Loss of ${runs} runs each` });
    labels.forEach((label, m) => {
      const y = box.top + 34 * m + 17, [colour, , ink] = looks[label];
      svg.append(make("text", { x: box.left - 8, y: y + 4, class: "end", fill: ink }, label),
        make("rect", { x: X(0), y: y - 11, width: X(mean(label)) - X(0), height: 22, fill: colour, opacity: .35 }));
      told[label].forEach((lost, i) => svg.append(make("circle", { cx: X(lost), cy: y + ((i * .618034) % 1 - .5) * 18, r: 2.5, fill: colour })));
    });
    return { height: box.top + box.height + 42, told, says: `Arm ${first + 1} earns most per unit of cost; alone it would earn ` +
      `${tidy(best * budget / dear * top)}. Mean losses: ${order.map(label => `${label} ${tidy(mean(label))}`).join(", ")}.` };
  };
};
